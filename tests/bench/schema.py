#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""schema.py REPORT.json: the report has the fields of docs/dev/benchmark-reports.md, of the right types, and they agree."""
import json
import sys

TEXT, TRUTH, LIST, TABLE = str, bool, list, dict
NUMBER = (int, float)
NULL = type(None)

FILE = {"schema": int, "program": TEXT, "version": TEXT, "revision": (TEXT, NULL), "date": TEXT, "command": LIST,
        "complete": TRUTH, "label": (TEXT, NULL), "host": TABLE, "devices": LIST}
HOST = {"os": (TEXT, NULL), "kernel": (TEXT, NULL), "cpu": (TEXT, NULL), "cores": int, "threads": int,
        "memory_bytes": int}
DEVICE = {"device": TEXT, "kind": TEXT, "type": TEXT, "name": TEXT, "platform": TEXT, "vendor": TEXT, "driver": TEXT,
          "opencl": TEXT, "compute_units": int, "clock_mhz": int, "global_memory_bytes": int,
          "local_memory_bytes": int, "sizes": TEXT, "settings": TABLE, "roofline": TABLE, "results": LIST}
ROOFLINE = {"copy_bytes_per_s": NUMBER, "copies": LIST, "fma_flop_per_s": NUMBER, "launch_s": NUMBER,
            "launch_queued_s": NUMBER, "to_device_bytes_per_s": NUMBER, "from_device_bytes_per_s": NUMBER,
            "gemm": LIST}
RESULT = {"case": TEXT, "suite": TEXT, "family": TEXT, "set": TEXT, "dtype": TEXT, "sizes": TABLE, "outcome": TEXT,
          "error": (*NUMBER, NULL), "error_limit": (*NUMBER, NULL)}
WALL = {name: NUMBER for name in ("min_s", "q1_s", "median_s", "q3_s", "p95_s", "max_s")}
LOAD = {"median_s": NUMBER, "wall_s": NUMBER, "cpu_s": NUMBER, "busy_s": NUMBER, "switches": int}
TIMED = {"runs": int, "rounds": int, "by_round": LIST, "wall": TABLE, "event": (TABLE, NULL), "compile": TABLE, "flop": (*NUMBER, NULL),
         "bytes": (*NUMBER, NULL), "gflop_s": (*NUMBER, NULL), "gb_s": (*NUMBER, NULL), "bound": (TEXT, NULL),
         "roofline_percent": (*NUMBER, NULL), "samples_s": LIST, "latency": (TABLE, NULL), "sensors": TABLE, "memory": (TABLE, NULL), "tokens": (*NUMBER, NULL),
         "tokens_per_s": (*NUMBER, NULL)}
MEMORY = {name: int for name in ("io_bytes", "weights_bytes", "activations_bytes", "scratch_bytes", "arena_bytes",
                                 "state_bytes")}


def need(condition, text):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {text}")


def fields(table, wanted, where):
    for name, kind in wanted.items():
        need(name in table, f"{where}: no {name}")
        need(isinstance(table[name], kind), f"{where}: {name} is {table[name]!r}")


def close(a, b):
    return abs(a - b) <= 1e-6 * abs(b)


def check_shares(x, roofline, where):
    """They are of the roofline that the report names, whenever that was found."""
    if x["suite"] == "device" or not x["bytes"]:
        return
    m = x["memory"]
    footprint = sum(m[k + "_bytes"] for k in ("io", "weights", "arena", "state")) if m else x["bytes"]
    copies = roofline["copies"]
    nearest = max((c["footprint_bytes"] for c in copies if c["footprint_bytes"] <= 1.1 * footprint), default=0)
    copy = max(c["bytes_per_s"] for c in copies if c["footprint_bytes"] >= nearest)
    seconds = {"compute": (x["flop"] or 0) / roofline["fma_flop_per_s"], "memory": x["bytes"] / copy}
    bound = max(seconds, key=seconds.get)
    need(x["bound"] == bound, f"{where}: bound by {x['bound']}, not {bound}")
    need(close(x["roofline_percent"], min(100, 100 * seconds[bound] / x["wall"]["min_s"])), f"{where}: roofline_percent")


def check_timed(x, where):
    fields(x, TIMED, where)
    wall = x["wall"]
    fields(wall, WALL, where)
    times = [wall[name] for name in WALL]
    need(times == sorted(times) and times[0] > 0, f"{where}: wall times {times}")
    need(x["runs"] >= x["rounds"] >= 1, f"{where}: {x['runs']} runs in {x['rounds']} rounds")
    if x["flop"]:
        need(close(x["gflop_s"], 1e-9 * x["flop"] / wall["min_s"]), f"{where}: gflop_s")
    if x["memory"]:
        fields(x["memory"], MEMORY, where)
    need(0 < len(x["samples_s"]) <= 64 and len(x["samples_s"]) <= x["runs"], f"{where}: samples_s")
    need((x["latency"] is not None) == (x["family"] == "lm_decode"), f"{where}: latency")
    if x["latency"]:
        times = [x["latency"][name] for name in ("median_s", "p95_s", "p99_s")]
        need(times == sorted(times) and x["latency"]["n"] == x["tokens"] / x["sizes"]["B"] * x["runs"], f"{where}: latency")
    need(set(x["sensors"]) == {"clock_mhz", "power_w", "temperature_c", "throttled"}, f"{where}: sensors")
    if x["tokens"]:
        need(close(x["tokens_per_s"], x["tokens"] / wall["min_s"]), f"{where}: tokens_per_s")
    if x["suite"] in ("op", "layer") and x["flop"]:
        need(x["bound"] in ("compute", "memory") and x["roofline_percent"] > 0, f"{where}: no share of the roofline")
        need(len(x["probe"]) == 8, f"{where}: probe")


def check_device(device):
    fields(device, DEVICE, "device")
    need(device["kind"] == "opencl" and device["sizes"] == "small", "device: kind or sizes")
    fields(device["roofline"], ROOFLINE, "roofline")
    names = [x["case"] for x in device["results"]]
    need(len(names) == len(set(names)), "a case is there twice")
    need({x["suite"] for x in device["results"]} == {"device", "op", "layer", "model"}, "a suite is missing")
    for x in device["results"]:
        fields(x, RESULT, x["case"])
        need(x["outcome"] in ("ok", "not run"), f"{x['case']}: {x['outcome']}")
        if x["outcome"] == "ok":
            need(x["error"] <= x["error_limit"], f"{x['case']}: error")
            check_timed(x, x["case"])
            check_shares(x, device["roofline"], x["case"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    fields(report, FILE, "report")
    need(report["complete"] and report["schema"] == 2 and report["label"] == "a machine", "schema, label, or not complete")
    fields(report["host"], HOST, "host")
    need(report["devices"], "no device")
    for device in report["devices"]:
        if "reason" not in device:
            check_device(device)


main()
