# SPDX-License-Identifier: MIT
"""What the library means to reach on a CPU (bench/goals.json), and whether it did.

A goal names cases and one of: a ratio to a baseline's time, "fastest" of all, "published" code, the best that it "offered"
beside that, or "OpenBLAS" interleaved in one process; a share of the large copy's bandwidth; bytes beside inputs,
outputs and weights.
"""
import json
import os
from dataclasses import dataclass

from . import ratios, units

PATH = os.path.join(os.path.dirname(__file__), "..", "goals.json")
BASELINES = {"fastest": "fastest baseline", "published": "published code", "offered": "best that the baseline offers",
         "OpenBLAS": "OpenBLAS"}


@dataclass
class Row:
    """A goal for one case; what was not measured is None."""
    case: str
    against: str
    at_most: bool  # else at least
    goal: float
    value: float = None
    ours: str = units.ABSENT
    theirs: str = units.ABSENT
    group: str = None

    @property
    def met(self):
        if self.value is None:
            return None
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    def verdict(self):
        return {None: "not measured", True: "met", False: "not met"}[self.met]

    def shown(self, x):
        return units.memory(x) if self.at_most else units.ratio(x)

    def wanted(self):
        return f"{'≤' if self.at_most else '≥'} {units.memory(self.goal) if self.at_most else format(self.goal, 'g')}"


def load():
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)


def best_of(pair, baseline):
    """(device, result) of the baseline that the goal names; None when it was not measured."""
    sides = [s for s, (_, r) in pair.sides.items() if baseline == "fastest" or r.reference == (baseline == "published")]
    return pair.sides[min(sides, key=pair.ratio)] if sides else None


def fill_ratio(row, baseline, device, pair):
    if baseline == "OpenBLAS":
        found = [r for p in device.machine.baselines_of(device) for r in p.ok() if r.case == row.case and r.library_min_s]
        theirs = min(found, key=lambda r: r.seconds, default=None)
        ours = theirs and theirs.library_min_s
    else:
        found = pair and best_of(pair, baseline)
        theirs, ours = (found[1], pair.ours.seconds) if found else (None, None)
    if theirs:
        row.value, row.ours, row.theirs = theirs.seconds / ours, units.ms(ours), units.ms(theirs.seconds)


def fill_share(row, device, result):
    copy = device.roofline.get("copy_bytes_per_s")
    if result and result.bytes and copy:
        rate = result.bytes / result.seconds
        row.value, row.ours, row.theirs = rate / copy, units.per_second(rate, "B/s"), units.per_second(copy, "B/s")


def fill_memory(row, result):
    if result and result.arena_bytes is not None:
        row.value = result.arena_bytes
        row.ours = units.memory(row.value)


def row_of(goal, case, device, pairs):
    """The goal for this case as far as the device's reports tell."""
    result = next((r for r in device.ok() if r.case == case), None)
    if "ratio" in goal:
        row = Row(case, BASELINES[goal["baseline"]], False, goal["ratio"])
        fill_ratio(row, goal["baseline"], device, pairs.get(case))
    elif "copy_share" in goal:
        row = Row(case, "bandwidth of the large copy", False, goal["copy_share"])
        fill_share(row, device, result)
    else:
        row = Row(case, "memory beside inputs, outputs, weights", True, goal["arena_bytes"])
        fill_memory(row, result)
    row.group = result and result.group
    return row


def rows(device):
    """A row for every goal and case; none for a device whose reports tell of no goal."""
    if device.type != "cpu":
        return []
    pairs = {p.ours.case: p for p in ratios.against(device)[0]}
    found = [row_of(goal, case, device, pairs) for goal in load() for case in goal["cases"]]
    return found if any(r.met is not None for r in found) else []


def short(found):
    """A cell for some rows: the ratios wanted and how many were reached."""
    measured = [r for r in found if r.met is not None]
    if not measured:
        return units.ABSENT
    low, high = (f(r.goal for r in measured) for f in (min, max))
    wanted = f"≥ {low:g}" + (f" to {high:g}" if high > low else "")
    met = sum(r.met for r in measured)
    return f"{wanted}: " + ("met" if met == len(measured) else "not met" if not met else f"{met} of {len(measured)} met")
