#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""train_resume.py TOOL ROOT [N]: attncl train, ended at any moment and resumed, gives the files of a training that was
not; failures leave the last checkpoint intact.

N: how many times a training is killed (4).  Standard library only.  Exit status 77 when there is no device.
"""
import fcntl
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import config_with, difference, digest, load, log_of, main, results_of, text_of  # noqa: E402

N_KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 4


def words_of(c, run, *more):
    return ["train", "--config", c.at("c.json"), "--data", c.at("text"), "--out", run, *more]


def start(c, *words):
    return subprocess.Popen([c.tool, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def is_whole(c, run):
    """All files that stand there under their own names can be read."""
    for directory, _, names in os.walk(run):
        for name in names:
            if name.endswith(".safetensors"):
                c.check(len(load(os.path.join(directory, name))[0]) > 0, "%s is broken" % name)


def wait_for_step(run, step):
    """Until the log has the step's line."""
    for _ in range(6000):
        try:
            if any(line.get("step", 0) >= step for line in log_of(run)):
                return True
        except (OSError, ValueError):
            pass
        time.sleep(0.01)
    return False


def kills(c, expected, seconds):
    """Killed at moments spread over the whole training, each one several times until it ends."""
    rng = random.Random(7)
    n = 0
    while n < N_KILLS:
        run = c.at("killed")
        shutil.rmtree(run, ignore_errors=True)
        for _ in range(200):
            child = start(c, *words_of(c, run, "--resume"))
            try:
                child.wait(rng.uniform(0, 1.1 * seconds) if n < N_KILLS else 600)
            except subprocess.TimeoutExpired:
                child.kill()
                n += 1
            err = child.communicate()[1].decode()
            if child.returncode != -signal.SIGKILL:
                break
            is_whole(c, run)
        c.check(child.returncode == 0, "resumed: status %d, %s" % (child.returncode, err))
        if results_of(run) != expected:
            c.check(False, "killed and resumed: other files than without: %s" % difference(results_of(run), expected))
            return


def interrupted(c, expected):
    run = c.at("interrupted")
    child = start(c, *words_of(c, run))
    c.check(wait_for_step(run, 12), "no step 12")
    child.send_signal(signal.SIGINT)
    err = child.communicate()[1].decode()
    c.check(child.returncode in (0, 130), "interrupted: status %d, %s" % (child.returncode, err))
    if child.returncode == 130:
        last = max(line["step"] for line in log_of(run))
        c.check("interrupted after step %d; --resume continues" % last in err, "interrupted: %s" % err)
        c.check(os.path.exists(os.path.join(run, "checkpoints", "step-%d.safetensors" % last)), "its checkpoint")
    c.works(*words_of(c, run, "--resume"))
    c.check(results_of(run) == expected or child.returncode == 130 and
            results_of(run)[1] == expected[1] and
            results_of(run)[0]["model.safetensors"] == expected[0]["model.safetensors"], "interrupted: other files")


def full_disk(c, expected):
    """A limit on the size of files stands for a disk that is full.  Programs come from the library's cache: compiling writes."""
    cached = dict(os.environ, ATTNCL_CACHE="rw")
    run = c.at("full")
    c.works(*words_of(c, run, "--steps", "10"), env=cached)
    checkpoint = os.path.join(run, "checkpoints", "step-10.safetensors")
    before, limit = digest(checkpoint), os.path.getsize(checkpoint) // 2
    c.works(*words_of(c, c.at("filled")), env=cached)
    c.refused("File too large", *words_of(c, run, "--resume"), env=cached,
              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    c.check(digest(checkpoint) == before, "a full disk changed the last checkpoint")
    is_whole(c, run)
    c.works(*words_of(c, run, "--resume"))
    c.check(results_of(run)[0]["model.safetensors"] == expected[0]["model.safetensors"], "after a full disk: other files")


def other_things(c):
    """Another configuration, another text, a text that changes meanwhile, a directory that cannot be written to."""
    run = c.at("full")
    c.refused("train.batch_size is 4 there and 2 now", *words_of(c, run, "--resume", "--set", "train.batch_size=2"))
    c.refused("has shape [32, 16], the configuration's is [16, 16]", *words_of(c, run, "--resume", "--set", "model.d_ff=16"))
    c.refused("hash", "train", "--data", c.save("other", text_of(2900)), "--out", run, "--resume")

    # A directory of something else, without a checkpoint: its configuration stays as it is.
    foreign = c.at("foreign")
    os.mkdir(foreign)
    for content in ("mine", '{"theme": "dark"}'):
        with open(os.path.join(foreign, "config.json"), "w") as f:
            f.write(content)
        c.refused("config.json", *words_of(c, foreign, "--resume"))
        c.check(os.listdir(foreign) == ["config.json"] and open(os.path.join(foreign, "config.json")).read() == content,
                "a configuration of something else was changed")

    # Another process trains there and has just removed the checkpoint.
    busy = c.at("busy")
    os.makedirs(os.path.join(busy, "checkpoints"))
    os.symlink("removed", os.path.join(busy, "checkpoints", "step-5.safetensors"))
    lock = os.open(busy, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    c.refused("another process is training there", *words_of(c, busy, "--resume"))
    os.close(lock)

    changing, text = c.at("changing"), c.save("text-2", text_of(3000))
    child = start(c, "train", c.at("c.json"), "--data", text, "--out", changing, "--steps", "1000000")
    c.check(wait_for_step(changing, 12), "no step 12 of the text that changes")
    with open(text, "a") as f:
        f.write("more")
    err = child.communicate(timeout=600)[1].decode()
    c.check(child.returncode == 1 and err.count("\n") == 1 and "changed while in use" in err, "changing: %s" % err)
    is_whole(c, changing)

    if os.geteuid() != 0:
        os.mkdir(c.at("closed"), 0o500)
        c.refused("Permission denied", *words_of(c, os.path.join(c.at("closed"), "run")))
    c.refused("No such file", *words_of(c, os.path.join(c.at("absent"), "run")))


def not_finite(c):
    """A rate that sends the weights to infinity: the step is named, and the op where that is asked for."""
    run = c.at("infinite")
    words = words_of(c, run, "--set", "train.optimizer.learning_rate=1e38", "--set", "train.checkpoint_every=1",
                     "--set", "train.eval_every=0")
    c.refused("is ", *words)
    c.refused(": op ", *words, "--resume", "--check")
    is_whole(c, run)


def run(c):
    c.save("text", text_of(3000))
    c.save("c.json", config_with())
    c.works(*words_of(c, c.at("whole")))
    expected = results_of(c.at("whole"))
    begin = time.monotonic()
    c.works(*words_of(c, c.at("again")))  # with the programs that the first one built
    seconds = time.monotonic() - begin
    c.check(results_of(c.at("again")) == expected, "twice the same training: other files")
    kills(c, expected, seconds)
    if N_KILLS == 4:
        for part in (interrupted, full_disk):
            part(c, expected)
        other_things(c)
        not_finite(c)


if __name__ == "__main__":
    sys.exit(main(run))
