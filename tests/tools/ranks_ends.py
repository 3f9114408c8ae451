#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks_ends.py TOOL ROOT: how a training of several ranks ends when one of them is killed, stops, or is interrupted.

Standard library only.  Exit status 77 when there is no device or no mpirun.
"""
import os
import signal
import sys
import time

from ranks import CONFIG, compare, losses, main, train

ENDLESS = ("--steps", "100000")


def processes(words):
    """Those of the command itself whose words contain `words`, mpirun apart."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                line = f.read().split(b"\0")
        except OSError:
            continue
        if words.encode() in line and os.path.basename(line[0]) == b"attncl":
            found.append(int(pid))
    return found


def start(ranks, n, name):
    """A training without end on n ranks that has written a checkpoint."""
    process = ranks.start(n, *train(ranks, name, *ENDLESS))
    checkpoints, deadline = os.path.join(ranks.at(name), "checkpoints"), time.monotonic() + 300
    while time.monotonic() < deadline and not (os.path.isdir(checkpoints) and os.listdir(checkpoints)):
        time.sleep(0.05)
    return process


def end(ranks, process, name, limit_s):
    """Waits for all of it, the processes that the launcher leaves behind too; what was printed."""
    began = time.monotonic()
    text = "".join(process.communicate(timeout=300))
    ranks.check(process.returncode != 0 and text, "%s: status %d, %s" % (name, process.returncode, text))
    while processes(ranks.at(name)) and time.monotonic() - began < limit_s:
        time.sleep(0.05)
    left = processes(ranks.at(name))
    ranks.check(not left, "%s: after %d s processes %s are left" % (name, limit_s, left))
    return text


def resume(ranks, name, numbers):
    """Other numbers of ranks go on, five steps each, as if nothing had been."""
    for n in numbers:
        at = len(losses(ranks.at(name)))
        ranks.works(n, *train(ranks, name, "--resume", "--steps", str(at + 5)))
        ranks.check(len(losses(ranks.at(name))) == at + 5, "%s: %d steps, then %d" % (
            name, at, len(losses(ranks.at(name)))))
    compare(ranks, name, ranks.want, CONFIG["train"]["checkpoint_every"] + 5 * len(numbers))


def test_alone(ranks, _root):
    ranks.works(0, *train(ranks, "one"))
    ranks.want = losses(ranks.at("one"))


def test_killed(ranks, _root):
    """Within 10 s the others end, and another number of ranks continues."""
    process = start(ranks, 3, "killed")
    os.kill(processes(ranks.at("killed"))[-1], signal.SIGKILL)
    end(ranks, process, "killed", 10)
    resume(ranks, "killed", (2, 0))


def test_interrupted(ranks, _root):
    """mpirun ends them all when it is interrupted."""
    process = start(ranks, 2, "interrupted")
    process.send_signal(signal.SIGINT)
    end(ranks, process, "interrupted", 10)
    resume(ranks, "interrupted", (2, 3))


def test_stopped(ranks, _root):
    """A rank that hangs is waited for as long as ATTNCL_RANKS_TIMEOUT says."""
    os.environ["ATTNCL_RANKS_TIMEOUT"] = "3"
    process = start(ranks, 3, "stopped")
    os.kill(processes(ranks.at("stopped"))[1], signal.SIGSTOP)
    text = end(ranks, process, "stopped", 3 + 10)
    del os.environ["ATTNCL_RANKS_TIMEOUT"]
    ranks.check("of 3 has waited 3 s for the others" in text, "stopped: %s" % text)
    resume(ranks, "stopped", (2,))


if __name__ == "__main__":
    sys.exit(main((test_alone, test_killed, test_interrupted, test_stopped), *sys.argv[1:]))
