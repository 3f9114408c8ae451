#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch, or transformers on it, on one device in one mode, for bench/baselines/measure.py: a request per line on standard
input, an answer per line on standard output, both JSON.

    {"do": "describe"}             -> {"version", "name", "settings", ...}
    {"do": "open", "case": {...}}  -> {"formulations": [{"variant", "reference", "probe" ...}]}
    {"do": "time", "budget_s": 0.3, "runs": 3, "skip": []}  -> {"samples": {variant: [seconds ...]}, "load": {variant: {...}}}
    {"do": "close"}                -> {}         `case` is an entry of `attncl-bench --list`
"""
import argparse
import json
import os
import platform
import resource
import sys
import time
import traceback

PROBES = 8
OWN_MALLOC = "own malloc"
SLOW_S = 2.0  # what takes longer is run no more often than needed


class Worker:
    def __init__(self, torch, arguments):
        self.torch = torch
        self.arguments = arguments
        self.cuda = arguments.device == "cuda"
        if self.cuda and not torch.cuda.is_available():
            raise RuntimeError("PyTorch has no CUDA device")
        self.running, self.first = {}, {}  # by formulation: what is timed, seconds of the first run
        torch.set_num_threads(arguments.threads)

    def mode(self):
        if self.trains:
            return self.torch.enable_grad()
        # Compiled code refuses tensors of inference mode now and then.
        return self.torch.no_grad() if self.arguments.compile else self.torch.inference_mode()

    def finish(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def describe(self, _request):
        torch, a = self.torch, self.arguments
        where = torch.cuda.get_device_name() if self.cuda else platform.processor() or "CPU"
        how = "torch.compile" if a.compile else "eager"
        settings = {"threads": torch.get_num_threads(), "mode": how,
                    "float32_matmul_precision": torch.get_float32_matmul_precision()}
        if not self.cuda:
            settings["cpu_capability"] = torch.backends.cpu.get_cpu_capability()
            settings["mkl"] = torch.backends.mkl.is_available()
        place = "CUDA" if self.cuda else "CPU"
        version, name = torch.__version__, f"PyTorch {torch.__version__} {place}, {how}, {a.setting}"
        if a.program == "transformers":
            import transformers
            transformers.utils.logging.set_verbosity_error()
            transformers.utils.logging.disable_progress_bar()
            version, name = transformers.__version__, f"transformers {transformers.__version__}, {name}"
        return {"program": a.program, "version": version, "where": where, "settings": settings,
                "type": "gpu" if self.cuda else "cpu", "name": name}

    def open(self, request):
        from torch_baselines import Case, formulations
        cases = [Case(request["case"], self.arguments.device, packed) for packed in (False, True)]
        self.running, answers, self.trains, self.repeats = {}, [], cases[0].trains, cases[0].repeats
        if request["case"]["dtype"].startswith("q"):  # PyTorch has no such weights
            return {"formulations": []}
        for f in self.chosen(cases[0], formulations(cases[0].family)):
            answer = {"variant": f.name, "reference": f.reference}
            try:
                opened = self.open_one(f, cases[f.packed])
                if opened is None:
                    continue
                answer.update(opened)
            except Exception as error:  # pylint: disable=broad-except  # whatever PyTorch throws
                traceback.print_exc(file=sys.stderr)
                lines = str(error).strip().splitlines()
                answer["error"] = f"{type(error).__name__}: {lines[0] if lines else ''}"[:200]
            answers.append(answer)
        return {"formulations": answers}

    def chosen(self, case, known):
        """Everything eager; compiled: the best ones only, and none that is a long loop in Python."""
        known = [f for f in known if f.program == self.arguments.program and not (f.packed and case.trains)]
        if not self.arguments.compile:
            return [f for f in known if not (f.packed and self.cuda)]
        best = [f for f in known if not f.reference] or known
        unrolls = case.layer is not None and case.layer.startswith("feedback")
        return [f for f in best if f.compiles and not unrolls]

    def open_one(self, f, case):
        """None: the case is not for this formulation."""
        torch = self.torch
        with self.mode():
            made = f.make(case)
            if made is None:
                return None
            run, as_ours = made if isinstance(made, tuple) else (made, lambda y: y)
            if case.backward:
                run, as_ours = case.with_gradients(lambda run=run, as_ours=as_ours: as_ours(run())), lambda y: y
            if self.arguments.compile:
                torch.compiler.reset()
                run = torch.compile(run, dynamic=False)
            cold_s, y = self.seconds(run)
            y = as_ours(y)  # of the first run: each one of training gives another
            seconds = self.seconds(run)[0] if self.arguments.compile else cold_s
            answer = {"shape": list(y.shape), **probe(y.reshape(-1)), "cold_s": cold_s if self.arguments.compile else None}
            if case.family == "train_step" and not self.cuda:
                from torch_baselines import faster
                answer["memory"] = {"peak_bytes": faster.peak_bytes(run, case.module)}
        self.running[f.name] = run
        self.first[f.name] = seconds
        return answer

    def seconds(self, run):
        start = time.perf_counter()
        y = run()
        self.finish()
        return time.perf_counter() - start, y

    def time(self, request):
        with self.mode():
            return timed(self.running, request, lambda run: self.seconds(run)[0] / self.repeats,
                         [name for name, seconds in self.first.items() if seconds < SLOW_S])

    def close(self, _request):
        self.running = {}
        if self.cuda:
            self.torch.cuda.empty_cache()
        return {}


def serve(make):
    """Answers each line of standard input by the worker that MAKE() gives, until there is none."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else prints does not disturb the answers
    try:
        worker = make()
    except Exception as error:  # pylint: disable=broad-except
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), file=answers, flush=True)
        return 1
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(worker, request["do"])(request)), file=answers, flush=True)
    return 0


def probe(flat):
    """What is compared of a result: its elements at PROBES places, and the largest."""
    n = len(flat)
    step = (n - 1) // (PROBES - 1)
    return {"probe": [float(flat[n - 1 - step * (PROBES - 1 - i)]) for i in range(PROBES)], "largest": float(abs(flat).max())}


def busy_seconds():
    """Of the CPUs that this process may use, by anyone, stolen time included; 0 where the system does not say."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return 0
    mine = {f"cpu{i}" for i in os.sched_getaffinity(0)}
    return sum(sum(map(int, row[1:4] + row[6:9])) for row in rows if row[0] in mine) / os.sysconf("SC_CLK_TCK")


def load_now():
    """As struct load of bench/harness/load.h."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"wall_s": time.perf_counter(), "cpu_s": used.ru_utime + used.ru_stime, "busy_s": busy_seconds(),
            "switches": used.ru_nivcsw}


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def timed(running, request, seconds, warm=()):
    """The answer to "time": each formulation's times in seconds, and the load during them.  Formulations in WARM run once before,
    so that the caches hold their data."""
    samples, load = {}, {}
    for name in (n for n in running if n not in request.get("skip", [])):
        if name in warm:
            seconds(running[name])
        found, before = [], load_now()
        while True:
            found.append(seconds(running[name]))
            spent = time.perf_counter() - before["wall_s"]
            if len(found) >= request["runs"] and spent >= request["budget_s"] or spent >= 4 * request["budget_s"]:
                break
        samples[name], load[name] = found, {k: x - before[k] for k, x in load_now().items()}
    return {"samples": samples, "load": load}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--program", default="PyTorch", choices=("PyTorch", "transformers"))
    parser.add_argument("--setting", default=OWN_MALLOC, help="what the environment is called in the report")
    arguments = parser.parse_args()

    def make():
        os.environ.update(KINETO_LOG_LEVEL="99", TORCH_CPP_LOG_LEVEL="ERROR")  # the profiler talks on stderr
        import torch
        return Worker(torch, arguments)
    return serve(make)


if __name__ == "__main__":
    sys.exit(main())
