# SPDX-License-Identifier: MIT
"""The library's times against the baselines' on the same machine: the ratio of the medians, baseline's time / ours,
above 1 where the library is faster."""
from dataclasses import dataclass

from . import bootstrap, units


@dataclass
class Against:
    """A case of ours, and for each side of the baselines the fastest of its settings: (device, result)."""
    ours: object
    sides: dict

    def ratio(self, side):
        return self.sides[side][1].seconds / self.ours.seconds

    def best(self, published=False):
        """The fastest side: of all equals, or of those that run the published code."""
        sides = [s for s, (_, r) in self.sides.items() if r.equal and (r.reference or not published)]
        return min(sides, key=self.ratio, default=None)

    def best_ratio(self, published=False):
        side = self.best(published)
        return side and self.ratio(side)

    def theirs(self):
        return self.sides[self.best()][1]

    @property
    def disturbed(self):
        """What disturbed the pair, "": nothing.  A baseline's disturbed run matters if it might have been the fastest."""
        theirs, least = self.theirs(), self.theirs().seconds
        others = [r.disturbed for _, r in self.sides.values() if r.equal and (r is theirs or r.min_s < least)]
        return self.ours.disturbed or next(filter(None, others), "")

    def interval(self, side=None):
        return bootstrap.ratio(self.ours, self.sides[side or self.best()][1])

    def why_slower(self):
        """What limits a case that a baseline computes faster, by the share of the roofline that each reaches."""
        (low, high), r = self.interval() or (None, None), self.ours
        if low is not None and low <= 1 <= high:
            return "not told apart: the interval holds 1"
        if r.roofline_percent is None:
            return "its roofline is not known"
        return (f"bound by {r.bound}: {r.roofline_percent:.0f} % of the roofline, "
                f"the baseline {min(100, r.roofline_percent / self.best_ratio()):.0f} %")

    def which(self):
        """The fastest baseline with its settings."""
        device, result = self.sides[self.best()]
        return ", ".join(filter(None, (device.name, result.variant)))


def side_of(baseline, result):
    """What a baseline's result stands for.  Settings as the allocator are not told apart: the best counts."""
    return ", ".join(filter(None, (baseline.program, baseline.settings.get("mode", result.variant),
                                   "published formulation" if result.reference else "")))


def sides_of(device, case):
    """Each side's results of a case on the device's machine, fastest first."""
    found = {}
    for baseline in device.machine.baselines_of(device):
        for r in baseline.ok():
            if r.case == case:
                found.setdefault(side_of(baseline, r), []).append((baseline, r))
    return {side: sorted(results, key=lambda x: x[1].seconds) for side, results in found.items()}


def against(device, small=None):
    """Against for each case that a baseline has timed too; SMALL: those that launches bound, or the others."""
    pairs = [Against(r, {s: results[0] for s, results in sides_of(device, r.case).items()}) for r in device.ok()]
    return [p for p in pairs if p.best() and small in (None, p.ours.small)]


def fair(pairs):
    """Those that nothing disturbed."""
    return [p for p in pairs if not p.disturbed]


def suspicious(pairs):
    """Ratios to look into before they are published: ten times another formulation's of the same case, or ten times the mean of
    all cases.  Such a baseline probably does more work than it must."""
    if not pairs:
        return []
    mean = units.geometric_mean([p.best_ratio() for p in pairs])
    found = [f"{p.ours.case}: {units.ratio(p.best_ratio())}, the mean of all cases {units.ratio(mean)}"
             for p in pairs if p.best_ratio() >= 10 * mean]
    return found + [f"{p.ours.case}: {units.ratio(p.ratio(s))} to {s}, {units.ratio(p.best_ratio())} to {p.best()}"
                    for p in pairs for s in p.sides if p.ratio(s) >= 10 * p.best_ratio()]


def sides(pairs):
    """The sides' names in order."""
    return list(dict.fromkeys(s for p in pairs for s in p.sides))


def mean_interval(pairs):
    """Of the geometric mean of the best ratios: "2.85 to 2.96"; "" without samples."""
    return units.interval(bootstrap.geometric_mean([(p.ours, p.theirs()) for p in pairs]))


def to_device(result, base):
    """BASE's time / this one's, above 1 where this one is faster; None where either is missing."""
    other = result and base and base.results.get((result.case, ""))
    return other.seconds / result.seconds if other and other.seconds and result.seconds else None


@dataclass
class Group:
    """Cases that differ in size only, in the order of the report."""
    name: str
    cases: list  # Result, of one device
    pairs: list  # Against, undisturbed

    def lowest(self):
        return min(p.best_ratio() for p in self.pairs)


def groups(device, small=False):
    """Of the cases that launches bound, or of the others."""
    found = {}
    for r in device.results.values():
        if r.suite != "device" and r.small == small:
            found.setdefault(r.group, Group(r.group, [], [])).cases.append(r)
    for p in fair(against(device, small)):
        found[p.ours.group].pairs.append(p)
    return list(found.values())
