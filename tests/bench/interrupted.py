#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""interrupted.py BENCH SOURCE: a run with a baseline that is stopped in a later case leaves both reports with the cases
before it, no process and no unfinished file.  The baseline is a stand-in for PyTorch that stays in its third case."""
import os
import signal
import subprocess
import sys
import tempfile
import time

from small_run import baselines, check, options, read

CASES = "softmax 64,layer norm 64,GELU 64,product NN 64"
WAIT_S = 60

WORKER = '''
import json, os, sys, time
n = 0
for line in sys.stdin:
    do = json.loads(line)["do"]
    n += do == "open"
    if do == "open" and n == 3:
        open(os.environ["STUCK"], "w").write(str(os.getpid()))
        time.sleep(600)
    print(json.dumps({
        "describe": {"version": "1", "name": "stand-in", "type": "cpu", "where": "here", "settings": {}},
        "open": {"formulations": [{"variant": "v", "reference": False, "probe": [0.0] * 8, "largest": 1.0}]},
        "time": {"samples": {"v": [1.0, 2.0]}}, "close": {}}[do]), flush=True)
'''
MEASURE = '''
import sys
sys.path.insert(0, sys.argv[1])
import measure
measure.HERE, measure.PROBE_LIMIT = sys.argv[2], 1e31
measure.start_baselines = lambda arguments: [p for p in [measure.Baseline("stand-in", {}, [])] if p.describe()]
del sys.argv[1:3]
sys.exit(measure.main())
'''


def start(directory):
    with open(os.path.join(directory, "torch_worker.py"), "w", encoding="utf-8") as file:
        file.write(WORKER)
    command = [sys.executable, "-c", MEASURE, baselines, directory, *options(directory, CASES)]
    return subprocess.Popen(command, env={**os.environ, "STUCK": os.path.join(directory, "stuck")},
                            stdout=subprocess.DEVNULL)


def wait_until_stuck(process, path):
    """The process id of the baseline that is in its third case."""
    for _ in range(10 * WAIT_S):
        if process.poll() == 3:
            sys.exit(77)
        check(process.poll() is None, f"measure.py ended with {process.poll()}")
        if os.path.exists(path) and os.path.getsize(path) > 0:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        time.sleep(0.1)
    process.kill()
    return check(False, "the third case is not reached")


def end(process_id):
    """True when it had ended already."""
    try:
        os.kill(process_id, signal.SIGKILL)
        return False
    except ProcessLookupError:
        return True


def cases(report):
    return [x["case"] for x in report["devices"][0]["results"] if x["outcome"] == "ok"]


def stopped_by(signal_number):
    with tempfile.TemporaryDirectory() as directory:
        process = start(directory)
        baseline = wait_until_stuck(process, os.path.join(directory, "stuck"))
        try:
            before = read(directory, "torch.json")
            process.send_signal(signal_number)
            status = process.wait(timeout=WAIT_S)
        finally:
            process.kill()
            baseline_ended = end(baseline)
        ours, torch = read(directory, "ours.json"), read(directory, "torch.json")
        names = ["softmax 64x256", "layer norm 64x256"]
        check(status == 130, f"exit status {status}")
        check(baseline_ended, "the baseline has ended")
        check(cases(before) == names, f"written before the end: {cases(before)}")
        check(cases(torch) == names and torch["complete"] is False, f"of the baseline: {cases(torch)}")
        check(cases(ours)[:2] == names and len(cases(ours)) < 4 and ours["complete"] is False,
              f"of the library: {cases(ours)}")
        check(sorted(os.listdir(directory)) == ["ours.json", "stuck", "torch.json", "torch_worker.py"],
              f"files: {os.listdir(directory)}")


for number in (signal.SIGINT, signal.SIGTERM):
    stopped_by(number)
