#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""selftest.py TOOL ROOT: attncl selftest passes on this device in a minute, and names the op whose kernel is wrong.

Kernels are changed in a copy of cl/, one at a time.  Standard library only.  Exit status 77 when there is no device.
"""
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import main  # noqa: E402

# What is changed in copies of cl/: a file, texts, and the op that is wrong then.  Other ops stay right.
COPIES = [
    [("norm/softmax.cl", [("1.0f / sum", "1.001f / sum"), ("1.0f / r.sum", "1.001f / r.sum")], "softmax"),
     ("aft/aft_bwd.cl", [("sigmoid_v(-load_some(q", "sigmoid_v(load_some(q")], "aft"),  # in its gradient alone
     ("train/adam.cl", [("old.m * k->beta1 + g", "old.m * k->beta1 - g")], "adam"),
     ("train/update.cl", [("norm = sqrt(plain)", "norm = 2.0f * sqrt(plain)")], "clip_grad_norm"),
     ("common/dropout.clh", [(">= d->threshold", "< d->threshold")], "dropout"),
     ("norm/argmax.cl", [("y[row] = place", "if (row != 1) y[row] = place")], "argmax"),  # an element is not written
     ("aft/aft_prefill.cl", [("s->a += odd.a", "s->a -= odd.a")], "decoding, aft_local")],  # in a prompt's state alone
    [("norm/softmax.cl", [("KERNEL void", "KERNEL broken")], "softmax")],  # does not compile
]
RIGHT = {"add", "mul", "activation", "layer_norm", "bmm", "gru", "sgd"}


def run(c):
    check = c.check

    def selftest(*options, **environment):
        done = subprocess.run([c.tool, "selftest", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                              env=dict(os.environ, ATTNCL_CACHE="off", ATTNCL_TUNE="off", **environment))
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    start = time.monotonic()
    status, out, err = selftest("--json")
    print("%.1f s" % (time.monotonic() - start))
    report = json.loads(out)
    check(status == 0 and err == "" and report["passed"] and all(c["passed"] for c in report["checks"]),
          "--json: status %d, %s%s" % (status, out, err))
    check(report["driver_version"] and report["device"] and len(report["checks"]) > 30, "--json: " + out)

    status, out, err = selftest("--device", "no such device")
    check(status == 1 and err.count("\n") == 1 and "no such device" in err, "--device: status %d, %s" % (status, err))

    for i, changed_files in enumerate(COPIES):
        copy = c.at(str(i))
        shutil.copytree(os.path.join(c.root, "cl"), copy)
        for path, changes, _ in changed_files:
            with open(os.path.join(copy, path)) as file:
                text = changed = file.read()
            for old, new in changes:
                changed = changed.replace(old, new)
            check(changed != text, "%s: nothing to change" % path)
            with open(os.path.join(copy, path), "w") as file:
                file.write(changed)
        ops = {op for _, _, op in changed_files}
        status, out, err = selftest(*([] if i else ["--json"]), ATTNCL_CL_DIR=copy)
        if i:  # as lines: "ok   softmax  0.1 of the tolerance"
            failed = {line[5:33].strip() for line in out.split("\n") if line.startswith("FAIL ")}
            check(out.count("\n") > 30 and "ok   add " in out, "%s wrong: %s" % (sorted(ops), out))
        else:
            report = json.loads(out)
            failed = {c["op"] for c in report["checks"] if not c["passed"]}
            check(report["passed"] is False, "%s wrong: passed" % sorted(ops))
        said = err.split("\n")[-2:]  # a driver's compiler may write lines of its own before
        check(status == 1 and ops <= failed and all(op in said[0] for op in ops) and said[1] == "" and not failed & RIGHT,
              "%s wrong: status %d, %s fail, %s" % (sorted(ops), status, sorted(failed), err))


if __name__ == "__main__":
    sys.exit(main(run))
