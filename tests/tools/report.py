#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report.py TOOL ROOT: attncl report writes a valid file after each phase, whatever a phase or the command meets.

It runs a copy of the build's tree, whose benchmark is a script in most cases.  Exit status 77 when there is no device.
"""
import contextlib
import glob
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, os.pardir, "bench")]
from reporting import html, merge, tables  # noqa: E402
from training import main  # noqa: E402

PHASES = ["devices", "selftest", "selftest tf32", "selftest bf16", "model", "bench"]
USER, HOST = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()
# Scripts in place of attncl-bench.
CRASHES = '#!/bin/sh\necho "$(hostname): no -I$HOME/x or /x/%s-1/y" >&2\nkill -SEGV $$\n' % USER
HANGS = ('#!/bin/sh\nwhile [ "$1" != --json ]; do shift; done\necho \'{"schema": 2, "devices": [], "command": "private"}\' >"$2"\n'
         'sleep 600\n')


def phases_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["phases"]


def poll(what):
    for _ in range(3000):
        found = what()
        if found:
            return found
        time.sleep(0.01)
    raise TimeoutError("nothing came")


def child_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return int((file.read().split() or [0])[0])


def crash_child(process, tree):
    """Sends the phase's process SIGBUS, and says whether a phase that ended has crashed."""
    child = child_of(process.pid) if process.poll() is None else 0
    if child:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(child, signal.SIGBUS)
    return any(p["outcome"] == "crashed" for p in phases_of(tree.out))


def lives(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Tree:
    """A copy of the build's tree below a directory with the user's name in its path."""

    def __init__(self, c):
        self.c, self.top = c, c.at(os.path.join("x", USER, "tree"))
        build = os.path.dirname(os.path.dirname(c.tool))
        self.tool, self.bench = os.path.join(self.top, "tools", "attncl"), os.path.join(self.top, "bench", "attncl-bench")
        self.real_bench = os.path.join(build, "bench", "attncl-bench")
        self.home, self.variables = c.at("home of someone"), {}
        for path in (self.tool, self.bench):
            os.makedirs(os.path.dirname(path))
        os.mkdir(self.home)
        shutil.copy(c.tool, self.tool)
        for library in glob.glob(os.path.join(build, "libattncl.so*")):
            shutil.copy(library, self.top, follow_symlinks=False)
        os.symlink(os.path.join(os.path.abspath(c.root), "examples"), os.path.join(self.top, os.pardir, "examples"))
        self.out = os.path.join(self.home, "out.json")

    def put_bench(self, text):
        if os.path.lexists(self.bench):
            os.remove(self.bench)
        if text:
            with open(self.bench, "w") as file:
                file.write(text)
            os.chmod(self.bench, 0o755)

    def start(self, *options):
        # Drivers keep programs in the home directory: their cache stays where it was.
        environment = dict(os.environ, HOME=self.home, **self.variables)
        environment.setdefault("POCL_CACHE_DIR", os.path.expanduser("~/.cache/pocl"))
        return subprocess.Popen([self.tool, "report", self.out, *options], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, *options):
        process = self.start(*options)
        out, err = process.communicate(timeout=900)
        with open(self.out, encoding="utf-8") as file:
            text = file.read()
        report = json.loads(text)
        self.c.check(process.returncode == 0 and err == b"" and report["complete"] is True and
                     [p["name"] for p in report["phases"]] == PHASES and out.count(b"\n") == len(PHASES),
                     "%s: status %d, %s%s" % (options, process.returncode, out.decode(), err.decode()))
        for private in (self.home, self.top, "/%s/" % USER):
            self.c.check(private not in text, "%s: '%s' is in the file" % (options, private))
        # A name of few letters may be a part of another word, as the command knows.
        found = HOST in text if len(HOST) > 3 else re.search("(?<![A-Za-z0-9])%s(?![A-Za-z0-9])" % re.escape(HOST), text)
        self.c.check(not found, "%s: '%s' is in the file" % (options, HOST))
        self.printed = out.decode()
        self.c.check(os.listdir(self.home) == ["out.json"], "%s: %s" % (options, os.listdir(self.home)))
        return {p["name"]: p for p in report["phases"]}, report


def page_of(path):
    """What bench/report shows of the file, as text, and the devices that it knows."""
    joined = merge.join([path])
    (_, kit), = joined.kits
    shown = [tables.phases(kit), tables.kernels(kit), tables.log_of(kit)]
    return "".join(html.serialise(e) for e in shown if e is not None), joined.own(), joined.problems


def check_content(c, tree):
    tree.put_bench(None)
    os.symlink(tree.real_bench, tree.bench)
    phases, report = tree.run("--fast")
    for phase in phases.values():
        c.check(phase["outcome"] == "ok" and phase["exit_status"] == 0, "%s: %s" % (phase["name"], str(phase)[:2000]))
    device = phases["devices"]["result"][0]
    c.check("cl_khr_icd" in device["extensions"] or len(device["extensions"]) > 3, "extensions: %s" % device)
    c.check(device["limits"]["ADDRESS_BITS"] in (32, 64) and len(device["limits"]["MAX_WORK_ITEM_SIZES"]) == 3,
            "limits: %s" % device["limits"])
    c.check("OpenCL" in report["loader"]["library"] and "no" in report["private"], "loader: %s" % report["loader"])
    programs = phases["selftest"]["programs"]
    kernels = [k for p in programs for k in p["kernels"]]
    c.check(len(programs) > 3 and any("#define" in p["macros"] for p in programs) and all(p["build_s"] > 0 for p in programs) and
            all(k["work_group"] > 0 and k["local_bytes"] >= 0 for k in kernels) and len(kernels) >= len(programs),
            "programs: %s" % str(programs)[:2000])
    c.check(phases["model"]["programs"] and phases["model"]["result"]["perplexity"] < 5, "model: %s" % phases["model"]["result"])
    cases = {r["case"]: r["outcome"] for d in phases["bench"]["result"]["devices"] for r in d["results"]}
    for word in ("copy", "FMA", "own product", "CLBlast product", "attention", "AFT", "gMLP", "decode", "train step"):
        c.check(any(word in name and outcome == "ok" for name, outcome in cases.items()), "bench: no %s in %s" % (word, cases))
    page, devices, _ = page_of(tree.out)
    c.check(kernels[0]["name"] in page and "selftest" in page and "checks passed" in page and devices[0].results, "the page: " + page[:2000])


def check_faults(c, tree):
    tree.put_bench(CRASHES)
    with open(tree.out, "w") as file:
        file.write("old")
    os.link(tree.out, c.at("link"))
    phases, _ = tree.run("--fast", "--limit", "1")
    with open(c.at("link")) as file:
        c.check(file.read() == "old", "the file is rewritten in place")
    bench = phases["bench"]
    c.check(bench["outcome"] == "crashed" and bench["signal"] == "Segmentation fault" and
            bench["log"] == ["<HOST>: no -I<HOME>/x or /x/<USER>-1/y"], "a crash: %s" % bench)

    tree.put_bench(HANGS)
    phases, _ = tree.run("--fast", "--limit", "1")
    bench = phases["bench"]
    c.check(bench["outcome"] == "time limit" and bench["limit_s"] == 1 and bench["result"]["command"][0] == "attncl-bench",
            "a hang: %s" % bench)

    tree.put_bench(None)
    phases, _ = tree.run("--fast", "--device", "no such device")
    c.check(phases["bench"]["outcome"] == "not run" and "beside" in phases["bench"]["reason"], "no bench: %s" % phases["bench"])
    page, devices, problems = page_of(tree.out)
    c.check("no such device" in page and devices[0].name == phases["devices"]["result"][0]["name"] and
            "not beside" in problems[0].what, "the page without a benchmark: %s" % page[:2000])
    c.check(phases["selftest"]["outcome"] == "failed" and phases["selftest"]["exit_status"] == 1 and
            "no such device" in phases["selftest"]["log"][-1] and "no such device" in tree.printed, "no device: %s" % phases["selftest"])

    os.mkdir(c.at("vendors"))
    with open(c.at("vendors/none.icd"), "w") as file:
        file.write("libnone.so\n")
    tree.variables = {"OCL_ICD_VENDORS": c.at("vendors")}
    loader = tree.run("--fast")[1]["loader"]
    c.check(loader["drivers"] == {"none.icd": "libnone.so"}, "the drivers of another directory: %s" % loader)
    tree.variables = {}

    # A driver that crashes: what was written before stays, and the next phases run.  A warm self-test can end before the signal
    # comes, so each phase is sent one until one was met.
    process = tree.start("--fast", "--limit", "1")
    poll(lambda: os.path.exists(tree.out) and phases_of(tree.out) and phases_of(tree.out)[-1]["name"] == "selftest")
    poll(lambda: crash_child(process, tree) or process.poll() is not None)
    process.communicate(timeout=100)
    found = phases_of(tree.out)
    crashed = [p for p in found if p["outcome"] == "crashed"]
    c.check([p["name"] for p in found] == PHASES and len(crashed) > 0 and all(p["signal"] == "Bus error" for p in crashed),
            "a crash in a phase: %s" % str(found)[:2000])


def check_kills(c, tree):
    tree.put_bench(HANGS)
    for i, name in enumerate(PHASES):
        os.remove(tree.out)
        process = tree.start("--fast", "--limit", "1")
        poll(lambda: os.path.exists(tree.out) and len(phases_of(tree.out)) > i)
        child = poll(lambda: child_of(process.pid)) if i else 0  # the first ends at once
        process.kill()
        process.communicate()
        found = phases_of(tree.out)
        c.check([p["name"] for p in found] == PHASES[:len(found)] and len(found) > i and found[-1]["outcome"] == "running" and
                all(p["outcome"] != "running" and "log" in p for p in found[:-1]), "killed in %s: %s" % (name, str(found)[:2000]))
        c.check(not child or poll(lambda: not lives(child)), "killed in %s: its process goes on" % name)
        for left in glob.glob(tree.out + ".*"):
            os.remove(left)


def run(c):
    tree = Tree(c)
    check_faults(c, tree)
    check_kills(c, tree)
    if os.path.exists(tree.real_bench) and not c.failures:
        check_content(c, tree)


if __name__ == "__main__":
    sys.exit(main(run))
