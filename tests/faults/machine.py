#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""machine.py TOOL ROOT: kills at any moment, processes that race for an empty cache, a full disk, a directory that cannot
be written to, few descriptors: nothing half-written, a message that names the file, and the next run works.

ATTNCL_FAULTS_KILLS: how many runs are killed (20).  Exit status 77 without a device.
"""
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir, "tools")]
from system_calls import is_sound_entry  # noqa: E402
from training import digest, main, write  # noqa: E402

N_KILLS = int(os.environ.get("ATTNCL_FAULTS_KILLS", "20"))
N_PROCESSES = 16


class Work:
    """attncl run over an earlier output, with a program cache of its own."""

    def __init__(self, c):
        self.c, self.programs = c, c.at("programs")
        self.environment = dict(os.environ, ATTNCL_TUNE="off", ATTNCL_CACHE="rw", ATTNCL_CACHE_DIR=self.programs)
        write(c.at("model"), {}, {"attncl.arch": "softmax", "attncl.config": "{}"})
        write(c.at("input"), {"x": ("F32", [16, 1024], [i % 7 for i in range(16 * 1024)])})
        c.works(*self.words("result"), env=self.environment)
        self.old, self.new = digest(c.at("input")), digest(c.at("result"))

    def words(self, out):
        return ["run", self.c.at("model"), self.c.at("input"), self.c.at(out)]

    def start(self, out, **options):
        return subprocess.Popen([self.c.tool, *self.words(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment, **options)

    def begin(self, out="out"):
        """An earlier output, and no cache."""
        shutil.copy(self.c.at("input"), self.c.at(out))
        shutil.rmtree(self.programs, ignore_errors=True)

    def is_whole(self, what, out="out"):
        self.c.check(digest(self.c.at(out)) in (self.old, self.new), "%s: neither the old nor the new output" % what)
        entries = os.listdir(self.programs) if os.path.isdir(self.programs) else []
        for entry in [e for e in entries if e.endswith(".program")]:
            self.c.check(is_sound_entry(os.path.join(self.programs, entry)), "%s: a broken entry of the cache" % what)

    def works(self, what):
        self.c.works(*self.words("out"), env=self.environment)
        self.c.check(digest(self.c.at("out")) == self.new, "%s: the next run has another result" % what)

    def works_without_cache(self, why):
        """With one warning, which says why there is none."""
        status, _, err = self.c.attncl(*self.words("out"), env=self.environment)
        self.c.check(status == 0 and err.count("\n") == 1 and "warning: " in err and why in err,
                     "no cache: status %d, '%s' lacks '%s'" % (status, err.strip(), why))
        self.c.check(digest(self.c.at("out")) == self.new, "no cache: another result")

    def refuses(self, what, name, out="out", **options):
        """Fails with one line that names the file, and leaves the output; or works as if nothing were wrong."""
        child = self.start(out, **options)
        err = child.communicate(timeout=600)[1].decode(errors="replace")
        self.is_whole(what, out)
        ok = child.returncode == 0 or child.returncode == 1 and err.count("\n") == 1 and name in err
        self.c.check(ok, "%s: status %d, '%s' does not name %s" % (what, child.returncode, err.strip(), name))
        return child.returncode


def kills(c, work):
    rng = random.Random(3)
    begin = time.monotonic()
    work.begin()
    work.works("no kill")
    seconds, n_killed = time.monotonic() - begin, 0
    for n in range(N_KILLS):
        if n % 2 == 0:
            work.begin()
        child = work.start("out")
        try:
            child.wait(rng.uniform(0, 1) * seconds)
        except subprocess.TimeoutExpired:
            child.kill()
        child.communicate()
        killed = child.returncode == -signal.SIGKILL
        seconds *= 1.1 if killed else 0.7  # a machine with other work is slower at times
        n_killed += killed
        work.is_whole("kill %d" % n)
        if n % 16 == 15 or n == N_KILLS - 1:
            work.works("kill %d" % n)
    print("%d of %d runs were killed before they ended" % (n_killed, N_KILLS))
    c.check(n_killed > N_KILLS / 4, "only %d of %d runs were killed" % (n_killed, N_KILLS))


def races(c, work):
    """Processes that start together with an empty cache."""
    work.begin()
    children = [work.start("out-%d" % i) for i in range(N_PROCESSES)]
    for i, child in enumerate(children):
        err = child.communicate(timeout=600)[1].decode()
        c.check(child.returncode == 0 and err == "", "process %d: status %d, %s" % (i, child.returncode, err))
        c.check(digest(c.at("out-%d" % i)) == work.new, "process %d: another result" % i)
    work.is_whole("race")
    entries = os.listdir(work.programs)
    c.check(len(entries) == 1 and entries[0].endswith(".program"), "race: the cache has %s" % entries)


def mounted(directory, options):
    """A small file system of its own there, where this process may mount one."""
    os.makedirs(directory, exist_ok=True)
    return os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory],
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def full_disk(c, work):
    """A file system with 4 KiB left; else a limit on the size of files.  The driver writes elsewhere."""
    disk = c.at("disk")
    if mounted(disk, "size=128k"):
        try:
            shutil.copy(c.at("input"), os.path.join(disk, "out"))
            with open(os.path.join(disk, "filler"), "wb") as f:
                f.write(bytes(56 << 10))
            status = work.refuses("full disk", "disk/out: No space left on device", "disk/out")
            c.check(status == 1 and sorted(os.listdir(disk)) == ["filler", "out"],
                    "full disk: status %d, there are %s" % (status, os.listdir(disk)))
            work.environment["ATTNCL_CACHE_DIR"] = os.path.join(disk, "programs")
            work.begin()
            work.works_without_cache("cannot be written into %s/programs" % disk)
            left = [name for _, _, names in os.walk(os.path.join(disk, "programs")) for name in names]
            c.check(left == [], "full disk: the cache has %s" % left)
        finally:
            work.environment["ATTNCL_CACHE_DIR"] = work.programs
            subprocess.run(["umount", disk])
    else:
        print("no small file system can be mounted: a limit on the size of files instead")
    work.begin()
    work.works("before the limit")
    shutil.copy(c.at("input"), c.at("out"))
    status = work.refuses("limit of file sizes", "out: File too large", preexec_fn=lambda: (
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))))
    c.check(status == 1, "limit of file sizes: status %d" % status)


def read_only(c, work):
    """Root writes everywhere but to a file system that is mounted so."""
    work.begin()
    disk = c.at("closed")
    if os.geteuid() == 0:
        if not mounted(disk, "size=1m"):
            print("skipped: a read-only directory: root cannot mount one here")
            return
        shutil.copy(c.at("input"), os.path.join(disk, "out"))
        c.check(subprocess.run(["mount", "-o", "remount,ro", disk]).returncode == 0, "remount")
    else:
        os.makedirs(disk)
        shutil.copy(c.at("input"), os.path.join(disk, "out"))
        os.chmod(disk, 0o500)
    try:
        status = work.refuses("read-only", "closed/out", "closed/out")
        c.check(status == 1, "read-only: status %d" % status)
        work.environment["ATTNCL_CACHE_DIR"] = os.path.join(disk, "programs")
        work.works_without_cache("no program cache in %s/programs" % disk)
    finally:
        work.environment["ATTNCL_CACHE_DIR"] = work.programs
        if os.geteuid() == 0:
            subprocess.run(["umount", disk])
        else:
            os.chmod(disk, 0o700)


def few_descriptors(c, work):
    """From none at all up to where it works.  Drivers may die of it: then they do, with the output whole."""
    codes = {}
    for n in (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 64):
        work.begin()
        child = work.start("out", preexec_fn=lambda n=n: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        err = child.communicate(timeout=600)[1].decode(errors="replace")
        codes[n] = child.returncode
        work.is_whole("%d descriptors" % n)
        c.check(child.returncode == 0 or err != "", "%d descriptors: status %d and no message" % (n, child.returncode))
        c.check(child.returncode != 0 or digest(c.at("out")) == work.new, "%d descriptors: another result" % n)
    print("exit status by descriptors: %s" % codes)
    c.check(codes[64] == 0, "64 descriptors: status %d" % codes[64])
    work.works("few descriptors")


def run(c):
    work = Work(c)
    for part in (kills, races, full_disk, read_only, few_descriptors):
        part(c, work)


if __name__ == "__main__":
    sys.exit(main(run))
