#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the library and its baselines (PyTorch, transformers, llama.cpp, OpenBLAS) on the same cases interleaved, and writes a
report of each (docs/dev/benchmark-reports.md): ours.json, torch.json ... in the directory given.

    bench/baselines/measure.py --bench build-bench/bench/attncl-bench --out DIRECTORY [OPTION of attncl-bench]...

Case by case and round by round: attncl-bench, then each baseline that knows the case, all of one number of threads, on the same
numbers (bench/README.md).  A baseline whose result is not the library's is reported wrong, without its times.  What is not
installed is named, here and in the reports.  Cases that something disturbed run once more at the end, into *-again.json.  All
reports are replaced after every case; SIGINT and SIGTERM end it in order, with exit status 130.
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
sys.path.insert(0, os.path.dirname(HERE))
from reporting import merge, ratios  # noqa: E402

KEEP = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "8589934592",
        "MALLOC_TOP_PAD_": "268435456"}

# Two float results of one formula differ by some 1e-6 of the largest value; another formula's by far more.
PROBE_LIMIT = 1e-4
# Formulations that take longer are timed in the first round only.
SLOW_S = 2.0
FILES = {"PyTorch": "torch"}
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

    def __init__(self, program, name, environment, options, worker="torch_worker.py"):
        self.program, self.name = program, name
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, worker), *options], text=True,
            env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True)  # the terminal's Ctrl-C is for this process
        self.about = None  # what describe() said
        self.found = []    # (case, formulation, samples, rounds)
        self.case, self.open, self.samples, self.rounds = None, [], {}, {}
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
            self.case, self.samples, self.rounds = case, {}, {}
            self.open = self.ask(do="open", case=case).get("formulations", [])
        slow = [name for name, seconds in self.samples.items() if min(seconds) > SLOW_S]
        answer = self.ask(do="time", budget_s=budget_s, runs=runs, skip=slow)
        for variant, seconds in answer.get("samples", {}).items():
            self.samples.setdefault(variant, []).extend(seconds)
            self.rounds.setdefault(variant, []).append({"median_s": statistics.median(seconds), **answer["load"][variant]})

    def finish(self):
        """Lets go of the present case."""
        if self.case is not None:
            for f in self.open:
                self.found.append((self.case, f, self.samples.get(f["variant"]), self.rounds.get(f["variant"], [])))
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
    result = {**case, "variant": f["variant"], "reference": f["reference"], "equal": f.get("equal", True), "outcome": "ok"}
    if "error" in f:
        return {**result, "outcome": "failed", "reason": f["error"]}
    result.update(error=distance(f, ours), error_limit=f.get("limit", PROBE_LIMIT))
    if result["error"] is not None and result["error"] > result["error_limit"]:
        return {**result, "outcome": "wrong"}
    if not samples:
        return {**result, "outcome": "failed", "reason": "the process ended"}
    at = statistics.quantiles(samples, n=20, method="inclusive") if len(samples) > 1 else samples * 19
    shown = sorted(samples)
    n = min(len(samples), MAX_SAMPLES)
    tokens = ours and ours.get("tokens")
    result.update(
        runs=len(samples), rounds=len(rounds), by_round=rounds, event=None, flop=None, bytes=None, gflop_s=None, gb_s=None,
        wall={"min_s": min(samples), "q1_s": at[4], "median_s": at[9], "q3_s": at[14], "p95_s": at[18], "max_s": max(samples)},
        samples_s=[shown[(2 * i + 1) * len(shown) // (2 * n)] for i in range(n)],
        compile={"cold_s": f.get("cold_s"), "cached_s": None}, bound=None, roofline_percent=None,
        memory=f.get("memory"),
        tokens=tokens, tokens_per_s=tokens / min(samples) if tokens else None)
    return result


class Ours:
    """attncl-bench, which stops for the baselines' rounds."""

    def __init__(self, arguments, again=()):
        """AGAIN: the end of its report's name, and options beside the user's."""
        self.path = os.path.join(arguments.out, f"ours{''.join(again[:1])}.json")
        self.report = None
        command = [arguments.bench, "--interleaved", "--json", self.path, *arguments.options, *again[1:]]
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
    """(those that are there, those that are not); they start side by side.  With `--device cpu` or `--device gpu` those of that
    kind alone: devices of the other are not compared with them."""
    threads, compiled = ["--threads", str(arguments.threads)], not arguments.no_compile
    baselines = []
    if arguments.kind != "gpu":
        if not arguments.quick:
            baselines.append(Baseline("PyTorch", "torch-eager", {}, threads))
        for name, words, environment in settings(arguments.quick):
            options = ["--setting", words, *threads]
            baselines.append(Baseline("PyTorch", f"torch-eager-{name}", environment, options))
            if compiled and name.startswith("tuned"):
                baselines.append(Baseline("PyTorch", f"torch-compile-{name}", environment, [*options, "--compile"]))
        baselines.append(Baseline("transformers", "transformers", KEEP, ["--program", "transformers", "--setting", "tuned malloc", *threads]))
        baselines.append(Baseline("llama.cpp", "llama.cpp", {}, threads, "llama_worker.py"))
        if not arguments.quick:
            baselines.append(Baseline("OpenBLAS", "openblas", {"OPENBLAS_NUM_THREADS": str(arguments.threads)}, [], "openblas_worker.py"))
    if arguments.kind != "cpu":
        baselines.append(Baseline("PyTorch on CUDA", "torch-cuda", {}, ["--device", "cuda"]))
        if compiled:
            baselines.append(Baseline("PyTorch on CUDA", "torch-cuda-compile", {}, ["--device", "cuda", "--compile"]))
    found = [p for p in baselines if "version" in p.describe()]
    for baseline in found:
        print(f"interleaved with {baseline.about['name']}", flush=True)
    absent = {p.program: p.about.get("error", "it does not start") for p in baselines if p not in found}
    for program, why in absent.items():
        print(f"not measured: {program}: {why}", flush=True)
    return found, absent


def write_baselines(arguments, baselines, absent, ours, complete, again=""):
    """Replaces a file for each program, and one that names the absent ones, in one step each."""
    arguments.written.add(ours.path)
    host = {**ours.report["host"], "python": platform.python_version()}
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    devices = {}
    for p in baselines:
        devices.setdefault((p.about["program"], p.about["version"]), []).append(p.entry(ours))
    if absent:
        devices["absent", None] = [{"device": p, "kind": "baseline", "name": p, "reason": why} for p, why in absent.items()]
    for (program, version), entries in devices.items():
        report = {"schema": 2, "program": program, "version": version, "revision": None,
                  "date": now, "command": sys.argv, "complete": complete, "label": ours.report["label"],
                  "host": host, "devices": entries}
        path = os.path.join(arguments.out, f"{FILES.get(program, program.lower())}{again}.json")
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
            file.write("\n")
        os.replace(path + ".tmp", path)
        arguments.written.add(path)


def interleave(ours, baselines, absent, cases, arguments, again=""):
    """Until attncl-bench ends; the baselines' report is written when it turns to another case, and at the end."""
    last = None
    for baseline in baselines:
        baseline.found = []
    for name in ours.turns():
        if last not in (None, name):
            for baseline in baselines:
                baseline.finish()
            ours.read()
            write_baselines(arguments, baselines, absent, ours, False, again)
        last = name
        for baseline in baselines:
            baseline.turn(cases[name], arguments.baseline_budget, arguments.baseline_runs)
    for baseline in baselines:
        baseline.finish()
    status = ours.end()
    if ours.report:
        write_baselines(arguments, baselines, absent, ours, ours.report["complete"], again)
    return status


def disturbed(paths):
    """{case: by what}, as bench/report has it from the reports so far."""
    devices = merge.join(paths).own()
    return {**{r.case: r.disturbed for d in devices for r in d.ok() if r.disturbed},
            **{p.ours.case: p.disturbed for d in devices for p in ratios.against(d) if p.disturbed}}


def measure(arguments, baselines, absent, cases):
    """Returns the exit status.  Disturbed cases run a second time."""
    arguments.ours = ours = Ours(arguments)
    status = interleave(ours, baselines, absent, cases, arguments)
    names = disturbed(sorted(arguments.written)) if ours.report and ours.report["complete"] else {}
    if names:
        print(f"\ndisturbed cases: {len(names)}. They run once more:", flush=True)
        again = ("-again", "--no-roofline", "--only", ",".join("=" + name for name in names))
        arguments.ours = ours = Ours(arguments, again)
        status = interleave(ours, baselines, {}, cases, arguments, again[0]) or status
        for name, by in disturbed(sorted(arguments.written)).items():
            print(f"disturbed: {name}: {by}")
    for baseline in baselines:
        baseline.stop()
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
    parser.add_argument("--no-baselines", action="store_true", help="the library alone")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile, as --quick, --brief and --small are")
    parser.add_argument("--compile", action="store_true", help="with torch.compile there too")
    parser.add_argument("--brief", action="store_true", help="PyTorch as with --quick: the tuned malloc alone, short rounds")
    arguments, arguments.options = parser.parse_known_args()

    devices = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    devices.add_argument("-d", "--device", dest="kind", default="")
    devices.parse_known_args(arguments.options, arguments)
    arguments.quick = arguments.brief or "--quick" in arguments.options
    short = arguments.quick or "--small" in arguments.options
    arguments.no_compile |= short and not arguments.compile
    if arguments.baseline_budget is None:
        arguments.baseline_budget = 0.05 if short else 0.3
    cases = listed(arguments.bench)
    os.makedirs(arguments.out, exist_ok=True)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.default_int_handler)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the machine is busy: its load is {load:.1f} before anything is measured", flush=True)
    baselines, absent = ([], {}) if arguments.no_baselines else start_baselines(arguments)
    arguments.ours, arguments.written = None, set()
    try:
        status = measure(arguments, baselines, absent, cases)
    except KeyboardInterrupt:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        for baseline in baselines:
            baseline.kill()
        if arguments.ours:
            arguments.ours.stop()
            arguments.ours.end()
        return STOPPED
    return status


if __name__ == "__main__":
    sys.exit(main())
