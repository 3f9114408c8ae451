# SPDX-License-Identifier: MIT
"""The library's times against the baselines' on the same machine: baseline's time / ours, above 1 the library is faster."""
from dataclasses import dataclass

from . import units


@dataclass
class Against:
    """A case of ours, and for each side of the baselines the fastest of its settings: (device, result)."""
    ours: object
    sides: dict

    def ratio(self, side):
        return self.sides[side][1].seconds / self.ours.seconds

    def best(self, published=False):
        """The fastest side: of all, or of those that run the published code."""
        sides = [s for s, (_, r) in self.sides.items() if r.reference or not published]
        return min(sides, key=self.ratio, default=None)

    def best_ratio(self, published=False):
        side = self.best(published)
        return side and self.ratio(side)

    def which(self):
        """The fastest baseline with its settings."""
        device, result = self.sides[self.best()]
        return ", ".join(filter(None, (device.name, result.variant)))


def side_of(baseline, result):
    """What a baseline's result stands for.  Settings as the allocator are not told apart: the best counts."""
    return ", ".join(filter(None, (baseline.program, baseline.settings.get("mode"),
                                   "published formulation" if result.reference else "")))


def sides_of(device, case):
    """Each side's results of a case on the device's machine, fastest first."""
    found = {}
    for baseline in device.machine.baselines_of(device):
        for r in baseline.ok():
            if r.case == case:
                found.setdefault(side_of(baseline, r), []).append((baseline, r))
    return {side: sorted(results, key=lambda x: x[1].seconds) for side, results in found.items()}


def against(device):
    """Against for each case that a baseline has timed too, and the sides' names in order."""
    pairs = [Against(r, {s: results[0] for s, results in sides_of(device, r.case).items()}) for r in device.ok()]
    pairs = [p for p in pairs if p.sides]
    return pairs, list(dict.fromkeys(s for p in pairs for s in p.sides))


@dataclass
class Group:
    """Cases that differ in size only, in the order of the report."""
    name: str
    cases: list  # Result, of one device
    pairs: list  # Against

    def ratios(self, published=False):
        return sorted(filter(None, (p.best_ratio(published) for p in self.pairs)))

    def spread(self, published=False):
        """The ratios to the fastest baseline: "1.31", or "1.31 to 2.20"."""
        values = self.ratios(published)
        if not values:
            return units.ABSENT
        first, last = units.ratio(values[0]), units.ratio(values[-1])
        return first if first == last else f"{first} to {last}"

    def share(self):
        """Of the roofline: lowest and highest."""
        values = sorted(r.roofline_percent for r in self.cases if r.seconds and r.roofline_percent)
        if not values:
            return units.ABSENT
        first, last = f"{values[0]:.0f}", f"{values[-1]:.0f}"
        return f"{first} %" if first == last else f"{first} to {last} %"


def groups(device):
    pairs, _ = against(device)
    found = {}
    for r in (r for r in device.results.values() if r.suite != "device"):
        found.setdefault(r.group, Group(r.group, [], [])).cases.append(r)
    for p in pairs:
        found[p.ours.group].pairs.append(p)
    return list(found.values())
