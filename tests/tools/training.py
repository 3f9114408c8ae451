# SPDX-License-Identifier: MIT
"""What tests of the command line share: running it, and of attncl train a small configuration and a text."""
import glob
import hashlib
import json
import os
import random
import subprocess
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, TESTS)
from support.safetensors_file import load, read, write  # noqa: E402,F401

T, B = 16, 4
CONFIG = {
    "arch": "lm",
    "model": {"layer": "aft_local", "d_model": 16, "n_layers": 1, "d_ff": 32, "seq_len": T, "local_window_size": 4},
    "train": {"batch_size": B, "seq_len": T, "steps": 40, "eval_every": 15, "checkpoint_every": 10, "keep": 2,
              "sample": 5, "optimizer": {"kind": "adam", "learning_rate": 0.01}, "dropout": 0.1},
}


def text_of(n):
    """n characters of two to five bytes' words, drawn from a few: a model learns them quickly."""
    rng, words = random.Random(4), ("ab ", "cde ", "fgé ", "hij ")
    return "".join(rng.choice(words) for _ in range(n))[:n]


def config_with(**train):
    return {**CONFIG, "train": {**CONFIG["train"], **train}}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def log_of(run):
    with open(os.path.join(run, "log.jsonl")) as f:
        return [json.loads(line) for line in f]


def results_of(run):
    """All that two equal trainings have in common: files by name, the log without its speeds."""
    names = ["model.safetensors", "best.safetensors"]
    names += [os.path.join("checkpoints", os.path.basename(p)) for p in glob.glob(os.path.join(run, "checkpoints", "*"))]
    log = [{k: v for k, v in line.items() if k != "tokens_per_s"} for line in log_of(run)]
    return {name: digest(os.path.join(run, name)) for name in names}, log


def difference(got, expected):
    """What differs of two results."""
    names = [name for name in sorted({*got[0], *expected[0]}) if got[0].get(name) != expected[0].get(name)]
    lines = [pair for pair in zip(got[1], expected[1]) if pair[0] != pair[1]][:1]
    return "%s; %d and %d lines of log, %s" % (names, len(got[1]), len(expected[1]), lines)


# In place of gnuplot: the picture is the text of its commands.
GNUPLOT = r"""#!/bin/sh
text=$(cat)
printf '%s\n' "$text" >"$(printf '%s\n' "$text" | sed -n "s/^set output '\(.*\)'$/\1/p")"
"""


class Checks:
    """Runs the command in a directory of its own and collects what is wrong."""

    def __init__(self, tool, directory):
        self.tool, self.directory, self.failures = tool, directory, []

    def at(self, name):
        return os.path.join(self.directory, name)

    def check(self, ok, what):
        if not ok:
            self.failures.append(what)
            print(what, file=sys.stderr)

    def save(self, name, content):
        content = content if isinstance(content, (str, bytes)) else json.dumps(content)
        with open(self.at(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return self.at(name)

    def attncl(self, *words, **options):
        done = subprocess.run([self.tool, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600, **options)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def works(self, *words, **options):
        status, out, err = self.attncl(*words, **options)
        self.check(status == 0 and err == "", "%s: status %d, %s" % (" ".join(words), status, err.strip()))
        return out

    def refused(self, words_in_error, *words, status=1, **options):
        got, _, err = self.attncl(*words, **options)
        self.check(got == status and err.count("\n") == 1 and words_in_error in err,
                   "%s: status %d, '%s' lacks '%s'" % (" ".join(words), got, err.strip(), words_in_error))


def main(run):
    """run(checks) for the command's arguments TOOL ROOT; the exit status."""
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        checks = Checks(os.path.abspath(sys.argv[1]), directory)
        os.mkdir(checks.at("bin"))
        os.chmod(checks.save("bin/gnuplot", GNUPLOT), 0o755)
        os.environ["PATH"] = checks.at("bin") + os.pathsep + os.environ["PATH"]
        if checks.attncl("devices")[0] != 0:
            print("skipped: no device", file=sys.stderr)
            return 77
        checks.root = sys.argv[2]
        run(checks)
        return 1 if checks.failures else 0
