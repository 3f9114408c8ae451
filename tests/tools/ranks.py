#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks.py TOOL ROOT: attncl under mpirun, which RANKS_MPIRUN says how to call.

Standard library only.  Exit status 77 when there is no device or no mpirun.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import Checks, log_of  # noqa: E402

MPIRUN = os.environ.get("RANKS_MPIRUN", "").split()
TEXT = "What light through yonder window breaks?\n" * 60


class Ranks(Checks):
    """The command on any number of ranks."""

    def start(self, n, *words):
        launcher = [*MPIRUN, "-n", str(n)] if n else []
        return subprocess.Popen([*launcher, self.tool, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, n, *words):
        """Status, stdout and stderr; n 0: without mpirun."""
        process = self.start(n, *words)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err

    def works(self, n, *words):
        status, out, err = self.run(n, *words)
        self.check(status == 0, "%d ranks, %s: status %d, %s" % (n, words[0], status, err.strip()))
        return out


def test_eval(ranks, root):
    """Any number of ranks prints what one does, once."""
    model = os.path.join(root, "examples/models/shakespeare.safetensors")
    text = ranks.at("text")
    with open(text, "w", encoding="utf-8") as f:
        f.write(TEXT)
    command = ("eval", model, text, "--batch", "1")
    want = ranks.works(0, *command).splitlines()
    for n in (1, 2, 4):
        got = ranks.works(n, *command).splitlines()
        ranks.check(got[:1] == want[:1] and len(got) == 2, "%d ranks, eval: %s, one: %s" % (n, got, want))
    got = ranks.works(2, *command, "--device", "0:0,0:0")
    ranks.check(got.splitlines()[:1] == want[:1], "devices by list: %s" % got)


def test_failures(ranks, root):
    """What fails on every rank is said by rank 0, and all end."""
    began = time.monotonic()
    status, out, err = ranks.run(3, "eval", "/nowhere", os.path.join(root, "README.md"))
    ranks.check(status != 0 and out == "" and "attncl: rank 0: /nowhere: " in err and "rank 1: /nowhere" not in err,
                "no model: status %d, %s, %s" % (status, out, err))
    model = os.path.join(root, "examples/models/shakespeare.safetensors")
    status, out, err = ranks.run(2, "eval", model, ranks.at("text"), "--device", "0:0,none such")
    ranks.check(status != 0 and out == "" and "attncl: rank 1: " in err and "none such" in err,
                "no device on rank 1: status %d, %s, %s" % (status, out, err))
    ranks.check(time.monotonic() - began < 60, "failures took %.1f s" % (time.monotonic() - began))
    env, os.environ["ATTNCL_MPI_PLUGIN"] = os.environ["ATTNCL_MPI_PLUGIN"], "/nowhere/plugin.so"
    status, out, err = ranks.run(2, "eval", model, ranks.at("text"))
    os.environ["ATTNCL_MPI_PLUGIN"] = env
    ranks.check(status != 0 and "/nowhere/plugin.so" in err, "no plugin: status %d, %s, %s" % (status, out, err))


CONFIG = {"arch": "lm", "model": {"layer": "transformer", "d_model": 16, "heads": 2, "d_ff": 16, "n_layers": 1},
          "train": {"batch_size": 6, "seq_len": 8, "steps": 30, "eval_every": 15, "checkpoint_every": 5,
                    "optimizer": {"learning_rate": 0.01}}}


def losses(run):
    return [line["loss"] for line in log_of(run) if "loss" in line]


def train(ranks, name, *more):
    """The words of a small training into directory `name`."""
    config, text = ranks.at("config.json"), ranks.at("text")
    with open(config, "w", encoding="utf-8") as f:
        json.dump(CONFIG, f)
    with open(text, "w", encoding="utf-8") as f:
        f.write(TEXT)
    return ("train", "--config", config, "--data", text, "--out", ranks.at(name), *more)


def compare(ranks, name, want, least=None):
    """That the losses in the log of `name` begin as these, at least so many of them, default all."""
    got = losses(ranks.at(name))[:len(want)]
    ranks.check(len(got) >= (least or len(want)) and all(abs(a - b) <= 1e-5 * b for a, b in zip(got, want)),
                "%s: %s, expected %s" % (name, got, want))


def test_train(ranks, _root):
    """Losses are those of one rank."""
    ranks.works(0, *train(ranks, "one"))
    ranks.works(2, *train(ranks, "two"))
    compare(ranks, "two", losses(ranks.at("one")))


def main(tests, tool, root):
    """Runs the tests in a directory; the exit status."""
    if not MPIRUN or subprocess.run([tool, "devices"], capture_output=True, check=False).returncode != 0:
        print("skipped: no mpirun or no device", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as directory:
        ranks = Ranks(tool, directory)
        for test in tests:
            began = time.monotonic()
            test(ranks, root)
            print("%s: %.1f s" % (test.__name__, time.monotonic() - began))
    return 1 if ranks.failures else 0


if __name__ == "__main__":
    sys.exit(main((test_eval, test_failures, test_train), *sys.argv[1:]))
