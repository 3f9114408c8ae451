#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal.py TOOL ROOT: attncl with a terminal, with a reader that goes away, and interrupted.

Standard library only.  Exit status 77 when there is no device.
"""
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from training import main, write  # noqa: E402

COMMANDS = ("devices", "inspect", "run", "eval", "sample", "train", "plot", "tune", "help")


def on_terminal(words, env=None, pause=None):
    """The command's status and what it writes with stdout and stderr on a terminal.  After `pause` in that it is stopped
    for more than a second, once."""
    main, side = pty.openpty()
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=env)
    os.close(side)
    seen = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # Linux's end of file of a terminal
            break
        if not part:
            break
        seen += part
        if pause and pause.encode() in seen:
            pause = child.send_signal(signal.SIGSTOP)
            time.sleep(1.2)
            child.send_signal(signal.SIGCONT)
    os.close(main)
    return child.wait(), seen.decode()


def run(c):
    at, check, tool = c.at, c.check, c.tool
    model = os.path.join(c.root, "examples", "models", "shakespeare.safetensors")

    def attncl(*words, **more):
        return subprocess.run([tool, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, **more)

    # Tables and help texts fit a terminal of 100 columns; each command's help is also `help COMMAND`.
    for command in COMMANDS:
        text = attncl(command, "--help").stdout.decode()
        check(all(len(line) <= 100 for line in text.split("\n")), "attncl %s --help: a line over 100 columns" % command)
        check(text == attncl("help", command).stdout.decode(), "attncl help %s differs from --help" % command)
    check(all(len(line) <= 100 for line in attncl("help").stdout.decode().split("\n")), "help: a line over 100 columns")
    listed = [line.split("\t") for line in attncl("help", "--options").stdout.decode().splitlines()]
    check(all(len(row) == 4 for row in listed), "help --options: a line without 4 fields")
    meaning = {}
    for command, option in (row[:2] for row in listed if row[1].startswith("-") and "," in row[1]):
        check(meaning.setdefault(option[:2], option) == option, "%s: %s, elsewhere %s" % (command, option, meaning[option[:2]]))
    for command in COMMANDS:
        named = {word.strip(",").lstrip("-") for row in listed if row[0] == command for word in row[1].split()}
        told = re.findall(r"--([a-z][a-z-]*)", "".join(
            line for line in attncl(command, "--help").stdout.decode().split("\n") if re.match(r" +(-.,)? *--", line)))
        check(told and set(told[:1]) <= named and "help" in named, "help --options: %s lacks %s" % (command, set(told) - named))

    with open(at("text"), "w") as f:
        f.write("To be, or not to be, that is the question.\n" * 40)
    write(at("in"), {"tokens": ("I64", [8, 1], [18, 47, 56, 57, 58, 1, 15, 47])})

    # A run says one line on a terminal, nothing into a file.
    status, seen = on_terminal([tool, "run", model, at("in"), at("out")])
    last = [line for line in seen.replace("\r", "\n").split("\n") if line.strip()][-1:]
    check(status == 0 and last and re.fullmatch(r"output \[8, 1, 65\] on .+, [0-9.]+ ms", last[0].strip()),
          "run on a terminal: status %d, %r" % (status, seen))
    check(attncl("run", model, at("in"), at("out")).stdout == b"", "run prints into a file")

    # Of many outputs the first are named.
    write(at("clip"), {}, {"attncl.arch": "clip_grad_norm", "attncl.config": '{"max_norm": 1}'})
    write(at("five"), {"g.%d" % i: ("F32", [1], [1.0]) for i in range(5)})
    status, seen = on_terminal([tool, "run", at("clip"), at("five"), at("out")])
    check(status == 0 and "], g.2 [1] and 3 more on " in seen, "run of many outputs: status %d, %r" % (status, seen))

    # Compiling is told from the second second on: the process sleeps after the first program is built.
    status, seen = on_terminal([tool, "run", "--verbose", model, at("in"), at("out")],
                               env=dict(os.environ, ATTNCL_CACHE="off"), pause=" built")
    told = re.findall(r"building kernels \(first run\) (\d+)/(\d+)", seen)
    check(status == 0 and told and all(int(done) <= int(total) for done, total in told), "building: %r" % seen[-500:])
    status, seen = on_terminal([tool, "eval", model, at("text"), "--batch", "1"], pause="left")
    check(status == 0 and re.search(r"eval \[#*\.+\] +\d+ %  \d+ tokens/s  \d+ s left", seen), "bar: %r" % seen)

    # JSON, one line each.
    def json_of(*words):
        done = attncl(*words)
        check(done.returncode == 0 and done.stderr == b"" and done.stdout.count(b"\n") == 1,
              "%s: status %d, %s" % (" ".join(words), done.returncode, done.stderr.decode()))
        return json.loads(done.stdout.decode())

    ran = json_of("run", model, at("in"), at("out"), "--json", "--profile")
    check(ran["outputs"] == [{"name": "output", "dtype": "F32", "shape": [8, 1, 65]}] and ran["run_ms"] > 0 and
          ran["device"] and ran["file"] == at("out"), "run --json: %s" % str(ran)[:300])
    check(ran["profile"] and ran["memory"]["weights"] > 1e6, "run --json --profile: %s" % str(ran)[:300])
    def is_timed(told, wall, *phases):
        """Seconds as a stopwatch around the command has them."""
        seconds = [told["start_up_s"], *(told[phase] for phase in phases)]
        check(min(seconds) > 0 and 0.4 * wall < sum(seconds) < wall and
              abs(told["step_tokens"] / told["step_s"] - told["step_tokens_per_s"]) < 1e-6 * told["step_tokens_per_s"],
              "%.3f s by a stopwatch, %s" % (wall, {k: v for k, v in told.items() if k.endswith("_s") or k == "step_tokens"}))

    begin = time.monotonic()
    told = json_of("eval", model, at("text"), "--json", "--batch", "1")
    is_timed(told, time.monotonic() - begin, "step_s")
    plain = attncl("eval", model, at("text")).stdout.decode().split()
    check("%.6f" % told["nll"] == plain[1] and told["characters"] == int(plain[5]), "eval --json: %s" % told)
    begin = time.monotonic()
    told = json_of("sample", model, "--prompt", "To be", "--length", "20", "--json")
    is_timed(told, time.monotonic() - begin, "prompt_s", "step_s")
    check(told["step_tokens"] == 19 and told["start_up_s"] > 2 * (told["prompt_s"] + told["step_s"]),
          "sample --json: compiling, the most of it, belongs to the start-up: %s" % told)
    status, seen = on_terminal([tool, "sample", model, "--prompt", "To be", "--length", "20"])
    check(status == 0 and re.search(r"prompt: 5 tokens in .*; steps: 19 tokens in .*; start-up: .* s; ", seen), "sample: %r" % seen)
    plain = attncl("sample", model, "--prompt", "To be", "--length", "20").stdout.decode()
    check(told["text"] + "\n" == plain and len(told["tokens"]) == 25 and told["prompt_tokens"] == 5,
          "sample --json: %s" % told)

    told = json_of("tune", "--check", "--seconds", "0.1", "--json")
    check(len(told) == 1 and told[0]["results"] and told[0]["file"] is None and
          all((row["built_in_ms"] is None) == (row["note"] is not None) for row in told[0]["results"]),
          "tune --json: %s" % str(told)[:300])

    # A reader that has enough: no message, and no end without one.
    for crop in ([], ["--crop"]):
        child = subprocess.Popen([tool, "sample", model, "--prompt", "To be", *crop], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        check(child.stdout.read(10).startswith(b"To be"), "sample: no text")
        child.stdout.close()
        said = child.stderr.read()
        check(said == b"" and child.wait(timeout=60) in (0, -signal.SIGPIPE),
              "sample into a closed pipe: status %d, %s" % (child.returncode, said))
        child.stderr.close()
    with open("/dev/full", "wb") as full:
        done = subprocess.run([tool, "sample", model, "--prompt", "To be", "--crop"], stdout=full,
                              stderr=subprocess.PIPE, timeout=60)
    check(done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"standard output" in done.stderr,
          "sample onto a full disk: status %d, %s" % (done.returncode, done.stderr))

    # Interrupted: status 130, nothing said, no file.
    child = subprocess.Popen([tool, "sample", model, "--prompt", "To be", "--crop"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    child.stdout.read(20)
    child.send_signal(signal.SIGINT)
    rest, said = child.communicate(timeout=60)
    check(child.returncode == 130 and said == b"", "interrupted sample: status %d, %s" % (child.returncode, said))
    os.mkdir(at("only"))
    for wait in (0.02, 0.1, 0.3):
        child = subprocess.Popen([tool, "run", model, at("in"), at("only/out")], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 env=dict(os.environ, ATTNCL_CACHE="off"))
        time.sleep(wait)
        child.send_signal(signal.SIGINT)
        rest, said = child.communicate(timeout=60)
        left = [name for name in os.listdir(at("only")) if name != "out"]
        check(child.returncode in (130, -signal.SIGINT, 0) and said == b"" and not left,
              "interrupted run: status %d, %s, left %s" % (child.returncode, said, left))


if __name__ == "__main__":
    sys.exit(main(run))
