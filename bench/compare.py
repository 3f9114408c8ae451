#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares runs of attncl-bench with runs of a peer, case by case.

    compare.py OURS.json[,AGAIN.json...] PEER.json[,AGAIN.json...] ... [--device P:D] [--markdown]

Several files of one side are runs of the same program: the fastest time of each case counts.  Run the
sides in turn: on a shared machine speeds drift by more than what is compared.  A ratio above 1 says
that the library is faster.
"""
import argparse
import json


def load(paths):
    files = []
    for path in paths.split(","):
        with open(path, encoding="utf-8") as file:
            files.append(json.load(file))
    return files


def our_times(files, device):
    best = {}
    for file in files:
        for entry in file["devices"]:
            if device not in (None, entry["device"]):
                continue
            device = entry["device"]  # the first one, when none was asked for
            for result in entry.get("results", []):
                if result["outcome"] == "ok":
                    name = result["case"]
                    best[name] = min(best.get(name, result["min_s"]), result["min_s"])
    return best


def peer_times(files):
    best = {}
    for file in files:
        for result in file["results"]:
            name = result["case"]
            best[name] = min(best.get(name, result["min_s"]), result["min_s"])
    return best


def title(file):
    return file["peer"] + (", tuned malloc" if file.get("tuned_malloc") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ours", help="files of attncl-bench --json, separated by commas")
    parser.add_argument("peers", nargs="+", help="files of a peer's --json, separated by commas")
    parser.add_argument("--device", help="P:D; default: the first device in the file")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()

    ours = our_times(load(arguments.ours), arguments.device)
    peers = [load(paths) for paths in arguments.peers]
    rows = [["case", "attncl ms"] + [c for p in peers for c in (title(p[0]) + " ms", "ratio")]]
    for name, seconds in ours.items():
        row = [name, f"{1e3 * seconds:.4g}"]
        for times in map(peer_times, peers):
            there = times.get(name)
            row += [f"{1e3 * there:.4g}", f"{there / seconds:.2f}"] if there else ["-", "-"]
        rows.append(row)

    if arguments.markdown:
        rows.insert(1, ["---"] + ["---:"] * (len(rows[0]) - 1))
        for row in rows:
            print("| " + " | ".join(row) + " |")
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print(row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:])))


if __name__ == "__main__":
    main()
