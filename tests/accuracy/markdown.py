#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""markdown.py FILE...: what runs of `tests/run --accuracy` left in build-tests/accuracy.txt, one run a file, as one table:
the worst error found by each, and the limit that the tests set."""
import sys


def main(*paths):
    columns, rows = [], {}
    for path in paths:
        with open(path) as file:
            for line in file:
                device, variant, what, worst, bound, unit, where = (c.strip() for c in line.strip().strip("|").split("|"))
                column = device if variant == "own" else f"{device}, {variant.upper()} variant"
                if column not in columns:
                    columns.append(column)
                key = what, where if where.startswith(("rows", "2^24")) else f"limit {bound}"
                row = rows.setdefault(key, {"unit": unit, "bound": bound, "where": where})
                row[column] = worst
    print("| of | inputs | unit |", " | ".join(columns), "| limit |")
    print("| --- | --- | --- |", "---: | " * (len(columns) + 1))
    for (what, _), row in rows.items():
        where = row["where"] if row["where"].startswith(("rows", "2^24")) else "floats of every size"
        print(f"| {what} | {where} | {row['unit']} |", " | ".join(row.get(c, "–") for c in columns), f"| {row['bound']} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
