#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""disturbed.py BENCH SOURCE: a case that something disturbed is marked, on made-up rounds and with busy loops beside attncl-bench;
it is in no mean, an undisturbed run of it is preferred, and ratios that are too good and absent baselines are named."""
import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(sys.argv[2], "bench"))
from reporting import markdown, merge, ratios  # noqa: E402
from reporting.quiet import disturbance  # noqa: E402

QUIET = {"median_s": 1e-3, "wall_s": 0.2, "cpu_s": 0.38, "busy_s": 0.39, "switches": 2}


def need(condition, *what):
    if not condition:
        sys.exit("disturbed.py: " + " ".join(map(str, what)))


def check_rounds():
    def of(**changed):
        return disturbance([QUIET, QUIET, {**QUIET, **changed}])
    need(disturbance([]) == "" and disturbance(3 * [QUIET]) == "", "quiet rounds are disturbed")
    need(of(median_s=1.1e-3) == "" and of(switches=20) == "" and of(busy_s=0.45) == "" and of(cpu_s=0.34) == "", "too strict")
    need(of(median_s=2e-3) == "", "one slow round of three")
    slow = disturbance([QUIET, {**QUIET, "median_s": 1.2e-3}, {**QUIET, "median_s": 2e-3}])
    need(slow == "rounds differ by 20 %", slow)
    need(of(median_s=0.8e-3) == "rounds differ by 25 %", of(median_s=0.8e-3))
    need(of(switches=80, busy_s=0.41) == "interrupted 140 times a second", of(switches=80, busy_s=0.41))
    need(disturbance(3 * [{**QUIET, "switches": 80, "busy_s": 0.38}]) == "", "a process's own threads are taken for others")
    need(of(busy_s=0.54) == "others used 0.3 CPUs", of(busy_s=0.54))
    need(of(cpu_s=0.2, busy_s=0.21) == "got 1.00 to 1.90 CPUs", of(cpu_s=0.2, busy_s=0.21))
    tick = {"median_s": 1e-5, "wall_s": 0.016, "cpu_s": 0.021, "busy_s": 0.03, "switches": 0}
    need(disturbance(3 * [tick]) == "", "the kernel's ticks are taken for another process")
    need(disturbance(3 * [{**tick, "busy_s": None}]) == "", "a system that says nothing is taken for a busy one")


def write(directory, name, program, times, **device):
    """Of each case: seconds, or seconds and rounds."""
    def result(case, entry):
        s, rounds = entry if isinstance(entry, tuple) else (entry, 3 * [QUIET])
        return {"case": case, "suite": "op", "family": "softmax", "set": "full", "headline": True, "outcome": "ok", "sizes": {},
                "wall": {"min_s": s, "median_s": s, "q1_s": s, "q3_s": s}, "by_round": rounds, **device.get("result", {})}
    memory = {"clock_mhz": 2000 + len(times), "global_memory_bytes": 1 << 30 + len(times)}  # what is free differs from run to run
    entry = {**memory, "device": name, "kind": "baseline" if device else "opencl", "type": "cpu", "name": name,
             "results": [result(*item) for item in times.items()], **{k: v for k, v in device.items() if k != "result"}}
    path = os.path.join(directory, name + ".json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": 2, "program": program, "date": "2026-11-26T00:00:00Z", "host": {"cpu": "A"}, "devices": [entry]}, file)
    return path


def check_report(directory):
    bad = [QUIET, {**QUIET, "median_s": 9e-3}]
    ours = write(directory, "0:0", "attncl-bench", {"b": (1.0, bad), "d": 1.0})
    os.rename(ours, again := ours + ".again")
    ours = write(directory, "0:0", "attncl-bench", {"a": 1.0, "b": (1.1, bad), "c": 1.0})
    os.rename(ours, first := ours + ".first")
    ours = write(directory, "0:0", "attncl-bench", {"a": 1.0, "c": (0.5, bad), "d": 1.0})
    torch = write(directory, "torch", "PyTorch", {"a": 2.0, "b": 8.0, "c": 2.0, "d": (0.5, bad)}, settings={"mode": "eager"})
    slow = write(directory, "naive", "PyTorch", {"a": 30.0}, settings={"mode": "loop"})
    rounded = write(directory, "q4", "llama.cpp", {"a": 0.1}, settings={"mode": "Q4"}, result={"equal": False})
    absent = write(directory, "vLLM", "absent", {}, reason="not installed")
    joined = merge.join([again, first, ours, torch, slow, rounded, absent])
    need(len(joined.own()) == 1, "runs of one device are taken for several devices")
    pairs = {p.ours.case: p for p in ratios.against(joined.own()[0])}
    need(list(pairs) == ["a", "b", "c", "d"], "repeated cases are not in their places:", *pairs)
    need({c for c, p in pairs.items() if p.disturbed} == {"b", "d"}, {c: p.disturbed for c, p in pairs.items()})
    need(pairs["c"].ours.seconds == 1.0, "a disturbed run is preferred for being faster")
    need(pairs["a"].best_ratio() == 2, "an unequal baseline is compared")
    text = markdown.render(joined, "headline")
    for words in ("2 of 2 cases", "geometric mean 2.00", "2 more were disturbed", "Not measured: vLLM (not installed)", "Disturbed: b: rounds",
                  "Look into it before you publish: a: 30.0 to PyTorch, loop", "| b | 1000 | 1000 | 8000 | 8000 | 8.00 disturbed |"):
        need(words in text, f"nothing of '{words}' in:\n{text}")
    need(markdown.has_result(joined, "headline") and not markdown.has_result(joined, "training"), "has_result()")
    need(not markdown.has_result(merge.join([write(directory, "0:0", "attncl-bench", {"d": 1.0}), torch]), "headline"),
         "a table of disturbed cases is a result")
    kept = "# A\n\n| case | ours, ms |\n| --- | ---: |\n| a | 7 |\n| z | 7 |\n"
    rows = markdown.put_rows(text, kept).splitlines()
    need(rows[2].count("|") == rows[4].count("|") == 7 and rows[5] == "| z | 7 |" and len(rows) == 6, rows)
    need(ratios.suspicious([p for p in pairs.values() if p.ours.case == "c"]) == [], "a ratio like all others is suspicious")
    both = merge.join([write(directory, "0:0", "attncl-bench", {"a": 1.0, "c": 2.0}), write(directory, "1:0", "attncl-bench", {"c": 0.5})])
    text = markdown.render(both, "devices")
    need("| a | 1000 | – |\n| c | 2000 | 500.0 |\n" in text, f"devices are not side by side:\n{text}")
    need(markdown.has_result(both, "devices"), "two devices have no result")
    need(math.isclose(ratios.fair(list(pairs.values()))[0].best_ratio(), 2), "fair()")


def check_busy(bench, directory):
    """Two loops a CPU: whatever else the machine does, each gets a part of what attncl-bench wants.  Disturbed, the case runs again."""
    measure = [sys.executable, os.path.join(sys.argv[2], "bench/baselines/measure.py"), "--bench", bench, "--no-baselines"]
    paths = [os.path.join(directory, f"ours{again}.json") for again in ("", "-again")]
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        device = ["--device", os.environ["ATTNCL_DEVICE"]] if os.environ.get("ATTNCL_DEVICE") else []
        status = subprocess.run([*measure, "--out", directory, "--small", "--only", "=lm transformer d=64 2 layers T=64 B=1", "--no-cold",
                                 "--no-roofline", "--budget", "10", *device], stdout=subprocess.DEVNULL, check=False).returncode
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    if status == 3:
        print("skipped the busy loops: no device")
        return
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rounds = json.load(file)["devices"][0]["results"][0]["by_round"]
        need(len(rounds) == 3 and "others used" in disturbance(rounds), path, disturbance(rounds), rounds)


check_rounds()
with tempfile.TemporaryDirectory() as temporary:
    check_report(temporary)
    check_busy(sys.argv[1], temporary)
