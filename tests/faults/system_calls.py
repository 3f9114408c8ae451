#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""system_calls.py TOOL ROOT: system calls on outputs, checkpoints, cache and tuning files fail, or the process is killed
at them: never a half-written file, a message that names the file, the earlier file intact, and the next run works.

strace injects; only calls of the main thread count, which reads and writes all files.  A twelfth of ATTNCL_FAULTS_SAMPLES:
at how many calls of a kind each error comes; without it, one error of each kind at one call, and a kill.  Exit status 77 without
strace or a device.
"""
import hashlib
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "tools"))
from training import config_with, digest, load, main, results_of, text_of, write  # noqa: E402

N_SAMPLES = int(os.environ.get("ATTNCL_FAULTS_SAMPLES", "0")) // 12

# Calls, and how each fails.  close() has closed when it fails, and EINTR of a transfer is no failure.
ERRORS = {
    "openat": ("EMFILE", "ENOSPC", "EACCES", "EIO"),
    "read": ("EIO", "EINTR"),
    "write": ("ENOSPC", "EIO", "EINTR"),
    "close": ("EIO", "EINTR"),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "rename": ("EIO", "ENOSPC", "EROFS"),
    "renameat": ("EIO", "ENOSPC"),
    "newfstatat": ("EIO", "EACCES"),
    "mkdir": ("ENOSPC", "EROFS"),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "readlink": ("EIO",),
    "utimensat": ("EIO",),
}
LINE = re.compile(r"^(\w+)\(")


def touched(line, directory):
    """The path below the directory that a line of strace names, relative to it; None where it names none."""
    found = re.findall(re.escape(directory) + r"/([^>\"]*)", line)
    return found[-1].rstrip("/") if found else None


def name_of(path):
    """What a message says of a path: the file of a temporary one, the directory of one with a random name."""
    name = os.path.basename(path)
    return os.path.basename(os.path.dirname(path)) if re.match(r"[0-9a-f]{32}\.tmp", name) else re.split(r"\.tmp|\.part$", name)[0]


def is_sound_entry(path):
    """Whether a file of the program cache is what its hash says."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 64:
        return False
    key_bytes, payload_bytes = struct.unpack("<16xQQ", data[:32])
    return (data[:8] == b"ATTNCLPB" and len(data) == 64 + key_bytes + payload_bytes and
            hashlib.sha256(data[:32] + data[64:]).digest() == data[32:64])


class Command:
    """A command in a directory: what is there before, what it runs, and what must hold afterwards."""

    def __init__(self, c, name, environment=None):
        self.c, self.name = c, name
        self.before, self.at = c.at(name + ".before"), c.at(name)
        self.environment = dict(os.environ, **{"ATTNCL_TUNE": "off", "ATTNCL_CACHE": "off", **(environment or {})})
        os.mkdir(self.before)
        self.prepare()
        self.reset()

    def file(self, name):
        return os.path.join(self.at, name)

    def reset(self):
        shutil.rmtree(self.at, ignore_errors=True)
        shutil.copytree(self.before, self.at)

    def run(self, *strace):
        done = subprocess.run([*strace, self.c.tool, *self.words()], env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=600)
        return done.returncode, done.stderr.decode(errors="replace")

    def traced(self, *inject):
        """Exit status, stderr and the calls."""
        log = self.c.at("calls")
        status, err = self.run("strace", "-y", "-o", log, "-e", "trace=" + ",".join(ERRORS), *inject)
        with open(log, errors="replace") as f:
            return status, err, f.read().splitlines()

    def calls(self):
        """Number among its kind of each call below the directory: {kind: [1, 4, ...]}."""
        status, err, lines = self.traced()
        self.c.check(status == 0 and err == "", "%s: status %d, %s" % (self.name, status, err))
        counts, found = {}, {}
        for kind, line in [(LINE.match(line)[1], line) for line in lines if LINE.match(line)]:
            counts[kind] = counts.get(kind, 0) + 1
            if touched(line, self.at):
                found.setdefault(kind, []).append(counts[kind])
        return found

    def check_fault(self, what, status, err, path):
        if status == 0:
            self.c.check(self.state() == self.after, "%s: exit status 0 and another result" % what)
        else:
            self.c.check(status == 1 and err.count("\n") == 1 and name_of(path) in err,
                         "%s: status %d, '%s' does not name %s" % (what, status, err.strip(), name_of(path)))

    def inject(self, kind, n, how):
        """One fault; whether it hit a file of ours."""
        what = "%s: %s %d: %s" % (self.name, kind, n, how)
        killed = how == "KILL"
        self.reset()
        status, err, lines = self.traced("-e", "inject=%s:%s:when=%d" % (
            kind, "signal=KILL" if killed else "error=" + how, n))
        hit = [line for line in lines if line.startswith(kind + "(")][-1:] if killed else [
            line for line in lines if "(INJECTED)" in line]
        path = touched(hit[0], self.at) if hit else None
        if not path or killed and status not in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return False
        what += " of " + path
        self.check_files(what)
        if not killed:
            self.check_fault(what, status, err, path)
            left = [name for _, _, names in os.walk(self.at) for name in names if re.search(r"\.tmp|\.part$", name)]
            self.c.check(not left or kind.startswith("unlink"), "%s: left %s" % (what, left))
        status, err = self.run()
        self.c.check(status == 0 and self.state() == self.after, "%s: then status %d, %s" % (what, status, err.strip()))
        return True

    def sweep(self, rng):
        calls = self.calls()
        self.after = self.state()
        n_planned = n_hit = 0
        for kind, numbers in sorted(calls.items()):
            for how in (*(ERRORS[kind] if N_SAMPLES else (rng.choice(ERRORS[kind]),)), "KILL"):
                for n in rng.sample(numbers, min(len(numbers), N_SAMPLES or 1)):
                    n_planned += 1
                    n_hit += self.inject(kind, n, how)
        print("%s: %d faults at %d calls of files" % (self.name, n_hit, sum(map(len, calls.values()))), flush=True)
        # Drivers do not make the same calls each time.
        self.c.check(n_hit > 0.7 * n_planned, "%s: only %d of %d faults hit a file" % (self.name, n_hit, n_planned))


class Run(Command):
    """attncl run over an earlier output, and with an empty program cache, whose faults fail nothing."""

    def prepare(self):
        write(os.path.join(self.before, "model"), {}, {"attncl.arch": "softmax", "attncl.config": "{}"})
        write(os.path.join(self.before, "input"), {"x": ("F32", [1, 4], [1, 2, 3, 4])})
        shutil.copy(os.path.join(self.before, "input"), os.path.join(self.before, "out"))

    def words(self):
        return ["run", self.file("model"), self.file("input"), self.file("out")]

    def state(self):
        return digest(self.file("out"))

    def check_files(self, what):
        old = digest(os.path.join(self.before, "out"))
        self.c.check(self.state() in (old, self.after), "%s: the output is neither the old nor the new one" % what)
        entries = os.listdir(self.file("programs")) if os.path.isdir(self.file("programs")) else []
        for entry in entries:
            self.c.check(not entry.endswith(".program") or is_sound_entry(os.path.join(self.file("programs"), entry)),
                         "%s: a broken entry of the cache" % what)

    def check_fault(self, what, status, err, path):
        self.c.check("programs" not in path or status == 0 and err.count("\n") == err.count("attncl: warning: "), "%s: status %d, %s" % (what, status, err.strip()))
        super().check_fault(what, status, err, path)


class Import(Command):
    """Entries of a tuning file, taken into the user's."""

    def prepare(self):
        version = subprocess.run([self.c.tool, "--version"], stdout=subprocess.PIPE).stdout.decode().split()[1]
        for name, rows in (("tune.txt", (64,)), ("entries", (32, 64))):
            with open(os.path.join(self.before, name), "w") as f:
                f.write("attncl-tune 1 %s\n" % version)
                f.writelines("d%d\tdriver\trows_gpu\twide\tLS=%d\n" % (n, n) for n in rows)

    def words(self):
        return ["tune", "--import", self.file("entries")]

    def state(self):
        return digest(self.file("tune.txt"))

    def check_files(self, what):
        old = digest(os.path.join(self.before, "tune.txt"))
        self.c.check(self.state() in (old, self.after), "%s: the table is neither the old nor the new one" % what)


class Training(Command):
    """The second half of a training, which goes on from a checkpoint and writes others."""

    def prepare(self):
        self.c.save(os.path.join(self.before, "text"), text_of(2000))
        self.c.save(os.path.join(self.before, "c.json"), config_with(steps=12, checkpoint_every=4, eval_every=6, sample=0))
        os.symlink(self.before, self.at)
        status, err = self.run("env")
        os.unlink(self.at)
        self.c.check(status == 0 and err == "", "training: status %d, %s" % (status, err))

    def words(self):
        return ["train", "--config", self.file("c.json"), "--data", self.file("text"), "--out", self.file("run"), "--resume",
                "--steps", "12" if os.path.exists(self.file("run")) else "6"]

    def state(self):
        return results_of(self.file("run"))

    def check_files(self, what):
        for directory, _, names in os.walk(self.file("run")):
            for name in [name for name in names if name.endswith(".safetensors")]:
                self.c.check(len(load(os.path.join(directory, name))[0]) > 0, "%s: %s is broken" % (what, name))


def run(c):
    if not shutil.which("strace") or subprocess.run(["strace", "-e", "inject=mkdir:error=EIO", "true"],
                                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        print("skipped: no strace that injects", file=sys.stderr)
        sys.exit(77)
    rng = random.Random(5)
    Run(c, "run").sweep(rng)
    Run(c, "cold", {"ATTNCL_CACHE": "rw", "ATTNCL_CACHE_DIR": os.path.join(c.at("cold"), "programs")}).sweep(rng)
    Import(c, "import", {"ATTNCL_TUNE": os.path.join(c.at("import"), "tune.txt")}).sweep(rng)
    Training(c, "training").sweep(rng)


if __name__ == "__main__":
    sys.exit(main(run))
