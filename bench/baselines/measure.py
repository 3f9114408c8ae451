#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the library, PyTorch and OpenBLAS on the same cases interleaved, and writes a report of each
(docs/dev/benchmark-reports.md): ours.json, torch.json and openblas.json in the directory given.

    bench/baselines/measure.py --bench build-bench/bench/attncl-bench --out DIRECTORY [OPTION of attncl-bench]...

Case by case and round by round: attncl-bench, then each configuration of PyTorch, then OpenBLAS (its GEMMs alone), all of one number
of threads, on the same numbers (bench/README.md).  A baseline whose result is not the library's is reported wrong, without its times.
What is not installed is not measured.  All reports are replaced after every case; SIGINT and SIGTERM end it in order, with exit
status 130.
"""
import argparse
import ctypes.util
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KEEP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592",
        "MALLOC_TOP_PAD_": "268435456"}

# Two float results of one formula differ by some 1e-6 of the largest value; another formula's by far more.
PROBE_LIMIT = 1e-4
# Formulations that take longer are timed in the first round only.
SLOW_S = 2.0
MAX_SAMPLES = 64  # in the report, evenly spread over the sorted ones
STOPPED = 130  # exit status


def settings(quick):
    """(short name, words for the report, environment), beside the default; QUICK: what is nearly always the fastest."""
    found = [("tuned", "tuned malloc", KEEP)]
    if quick:
        return found
    found.append(("tuned-passive", "tuned malloc, sleeping threads", {**KEEP, "OMP_WAIT_POLICY": "PASSIVE"}))
    for name in ("jemalloc", "tcmalloc", "tcmalloc_minimal"):
        library = ctypes.util.find_library(name)
        if library:
            found.append((name, name, {"LD_PRELOAD": library}))
    return found


class Baseline:
    """A process of torch_worker.py or openblas_worker.py, and its device entry of the report."""

    def __init__(self, name, environment, options, worker="torch_worker.py"):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, worker), *options], text=True,
            env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True)  # the terminal's Ctrl-C is for this process
        self.about = None  # what describe() said
        self.found = []    # (case, formulation, samples, rounds)
        self.case, self.open, self.samples, self.rounds = None, [], {}, 0
        self.environment = environment

    def ask(self, **request):
        """{} once the process is gone: what it runs may take more memory than there is.  What it said
        before it went, that there is no PyTorch, is still read."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        try:
            return json.loads(self.process.stdout.readline() or "{}")
        except json.JSONDecodeError:
            return {}

    def describe(self):
        if self.about is None:
            self.about = self.ask(do="describe")
        return self.about

    def turn(self, case, budget_s, runs):
        """A round of the case, the first one when it is another case than before."""
        if self.case is not case:
            self.finish()
            self.case, self.samples, self.rounds = case, {}, 0
            self.open = self.ask(do="open", case=case).get("formulations", [])
        slow = [name for name, seconds in self.samples.items() if min(seconds) > SLOW_S]
        answer = self.ask(do="time", budget_s=budget_s, runs=runs, skip=slow)
        for variant, seconds in answer.get("samples", {}).items():
            self.samples.setdefault(variant, []).extend(seconds)
        self.rounds += 1

    def finish(self):
        """Lets go of the present case."""
        if self.case is not None:
            for f in self.open:
                self.found.append((self.case, f, self.samples.get(f["variant"]), self.rounds))
            self.ask(do="close")
        self.case = None

    def stop(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # what was asked of a process that is gone
            pass
        self.process.wait()

    def kill(self):
        """It may be anywhere in a case, which is lost."""
        self.process.kill()
        self.process.wait()

    def entry(self, ours):
        """The device of the report; judged by the library's results."""
        return {"device": self.name, "kind": "baseline", "type": self.about["type"], "name": self.about["name"],
                "platform": self.about["where"], "sizes": self.found[0][0]["set"] if self.found else None,
                "settings": {**self.about["settings"], **self.environment}, "roofline": None,
                "results": [result_of(*f, ours.result(f[0]["case"])) for f in self.found]}


def distance(f, ours):
    """From the library's result at some places, relative to the largest value; None when it has none."""
    probe = ours and ours.get("probe")
    if not probe:
        return None
    if len(probe) != len(f["probe"]):
        return 1e30
    differences = [abs(a - b) / (f["largest"] or 1) for a, b in zip(f["probe"], probe)]
    return max(d if d < 1e30 else 1e30 for d in differences)  # NaN too


def result_of(case, f, samples, rounds, ours):
    result = {**case, "variant": f["variant"], "reference": f["reference"], "outcome": "ok"}
    if "error" in f:
        return {**result, "outcome": "failed", "reason": f["error"]}
    result.update(error=distance(f, ours), error_limit=PROBE_LIMIT)
    if result["error"] is not None and result["error"] > PROBE_LIMIT:
        return {**result, "outcome": "wrong"}
    if not samples:
        return {**result, "outcome": "failed", "reason": "the process ended"}
    at = statistics.quantiles(samples, n=20, method="inclusive") if len(samples) > 1 else samples * 19
    shown = sorted(samples)
    n = min(len(samples), MAX_SAMPLES)
    tokens = ours and ours.get("tokens")
    result.update(
        runs=len(samples), rounds=rounds, event=None, flop=None, bytes=None, gflop_s=None, gb_s=None,
        wall={"min_s": min(samples), "q1_s": at[4], "median_s": at[9], "q3_s": at[14], "p95_s": at[18], "max_s": max(samples)},
        samples_s=[shown[(2 * i + 1) * len(shown) // (2 * n)] for i in range(n)],
        compile={"cold_s": f.get("cold_s"), "cached_s": None}, bound=None, roofline_percent=None,
        memory=f.get("memory"),
        tokens=tokens, tokens_per_s=tokens / min(samples) if tokens else None)
    return result


class Ours:
    """attncl-bench, which stops for the baselines' rounds."""

    def __init__(self, arguments):
        self.path = os.path.join(arguments.out, "ours.json")
        self.report = None
        command = [arguments.bench, "--interleaved", "--json", self.path, *arguments.options]
        self.process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def turns(self, answer="\n"):
        """The case of each turn; the table is passed on."""
        for line in self.process.stdout:
            word, _, name = line.rstrip("\n").partition("\t")
            if word != "turn":
                print(line, end="", flush=True)
                continue
            yield name
            if answer:
                self.process.stdin.write(answer)
                self.process.stdin.flush()

    def read(self):
        """Its report as far as it has come: all cases before the present one are in it."""
        with open(self.path, encoding="utf-8") as file:
            self.report = json.load(file)

    def end(self):
        """The exit status; there is a report unless there was no device."""
        status = self.process.wait()
        if status in (0, 1):
            self.read()
        return status

    def stop(self):
        """It ends the round that it is in, if it has heard of this before or not."""
        self.process.terminate()
        self.process.stdin.close()
        for _ in self.turns(answer=""):
            pass

    def result(self, name):
        """The case on the first device that did it."""
        for device in self.report["devices"]:
            for result in device.get("results", []):
                if result["case"] == name and result["outcome"] == "ok":
                    return result
        return None


def start_baselines(arguments):
    """They start side by side; without PyTorch there is none."""
    threads, compiled = ["--threads", str(arguments.threads)], not arguments.no_compile
    baselines = [] if arguments.quick else [Baseline("torch-eager", {}, threads)]
    for name, words, environment in settings(arguments.quick):
        options = ["--setting", words, *threads]
        baselines.append(Baseline(f"torch-eager-{name}", environment, options))
        if compiled and name.startswith("tuned"):
            baselines.append(Baseline(f"torch-compile-{name}", environment, [*options, "--compile"]))
    baselines.append(Baseline("torch-cuda", {}, ["--device", "cuda"]))
    if compiled:
        baselines.append(Baseline("torch-cuda-compile", {}, ["--device", "cuda", "--compile"]))
    first = baselines[0].describe()
    if "version" not in first:
        print(f"PyTorch is not measured: {first.get('error', 'it does not start')}", file=sys.stderr)
    if not arguments.quick:
        baselines.append(Baseline("openblas", {"OPENBLAS_NUM_THREADS": str(arguments.threads)}, [], "openblas_worker.py"))
    found = [p for p in baselines if "version" in p.describe()]
    for baseline in found:
        print(f"interleaved with {baseline.about['name']}", flush=True)
    return found


def write_baselines(directory, baselines, ours, complete):
    """A file for each program, replaced in one step."""
    host = {**ours.report["host"], "python": platform.python_version()}
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for program, name in (("PyTorch", "torch.json"), ("OpenBLAS", "openblas.json")):
        mine = [p for p in baselines if p.about.get("program", "PyTorch") == program]
        if not mine:
            continue
        report = {"schema": 2, "program": program, "version": mine[0].about["version"], "revision": None,
                  "date": now, "command": sys.argv, "complete": complete, "label": ours.report["label"],
                  "host": host, "devices": [p.entry(ours) for p in mine]}
        path = os.path.join(directory, name)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
        os.replace(path + ".tmp", path)


def interleave(ours, baselines, cases, arguments):
    """Until attncl-bench ends; the baselines' report is written when it turns to another case, and at the end."""
    last = None
    for name in ours.turns():
        if last not in (None, name):
            for baseline in baselines:
                baseline.finish()
            if baselines:
                ours.read()
                write_baselines(arguments.out, baselines, ours, complete=False)
        last = name
        for baseline in baselines:
            baseline.turn(cases[name], arguments.baseline_budget, arguments.baseline_runs)
    for baseline in baselines:
        baseline.finish()
        baseline.stop()
    status = ours.end()
    if ours.report and baselines:
        write_baselines(arguments.out, baselines, ours, complete=ours.report["complete"])
    return status


def listed(bench):
    """Cases by name; quick and full ones have different names."""
    return {c["case"]: c for c in json.loads(subprocess.check_output([bench, "--list"], text=True))}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], epilog="Other options are attncl-bench's.")
    parser.add_argument("--bench", required=True, help="attncl-bench")
    parser.add_argument("--out", required=True, help="directory of the reports")
    parser.add_argument("--baseline-budget", type=float, metavar="S",
                        help="seconds of a formulation and round, default 0.3, with --quick or --small 0.05")
    parser.add_argument("--baseline-runs", type=int, default=3, help="least runs of a round, default 3")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="PyTorch's, default as many as the library gets")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile, as --quick, --brief and --small are")
    parser.add_argument("--compile", action="store_true", help="with torch.compile there too")
    parser.add_argument("--brief", action="store_true", help="PyTorch as with --quick: the tuned malloc alone, short rounds")
    arguments, arguments.options = parser.parse_known_args()

    arguments.quick = arguments.brief or "--quick" in arguments.options
    short = arguments.quick or "--small" in arguments.options
    arguments.no_compile |= short and not arguments.compile
    if arguments.baseline_budget is None:
        arguments.baseline_budget = 0.05 if short else 0.3
    cases = listed(arguments.bench)
    os.makedirs(arguments.out, exist_ok=True)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    baselines = start_baselines(arguments)
    ours = Ours(arguments)
    try:
        status = interleave(ours, baselines, cases, arguments)
    except KeyboardInterrupt:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        for baseline in baselines:
            baseline.kill()
        ours.stop()
        ours.end()
        return STOPPED
    return status


if __name__ == "__main__":
    sys.exit(main())
