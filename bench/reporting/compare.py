# SPDX-License-Identifier: MIT
"""Two sides compared, case by case and device by device.  Two runs of one program differ by chance too: a difference
counts only where the quartiles of the two sides do not overlap, and is marked."""
from . import bootstrap, merge, units


def devices_of(paths):
    return [d for m in merge.join(paths.split(",")).machines for d in m.devices]


def same(a, others_of_a, b, others_of_b):
    """The same device on both sides, though a driver more or less may have moved its number."""
    def key(d):
        return d.baseline, d.name, d.facts["platform"]
    alone = all([key(d) for d in others].count(key(a)) == 1 for others in (others_of_a, others_of_b))
    return key(a) == key(b) and (a.address == b.address or alone)


def note(a, b):
    """Which side is faster by more than the spread."""
    def beyond(x, y):
        return x.q3_s and y.q1_s and x.q3_s < y.q1_s and x.seconds < y.seconds
    return "A faster" if beyond(a, b) else "B faster" if beyond(b, a) else ""


def row(a, b):
    """Either may be None, for a case that one side does not have."""
    result = a or b
    name = result.case + (f" [{b.variant}]" if b and b.variant else "")
    times = [units.ms(r.seconds) if r and r.seconds else r.outcome if r else "-" for r in (a, b)]
    if not (a and b):
        return None, [name, *times, "-", "", "only in A" if a else "only in B"]
    if not (a.seconds and b.seconds):
        return None, [name, *times, "-", "", "not compared"]
    ratio = b.seconds / a.seconds
    return ratio, [name, *times, f"{ratio:.3f}", units.interval(bootstrap.ratio(a, b)), note(a, b)]


def compared(a, b):
    """(ratios, lines) of two devices."""
    rows = [row(x, y) for x in a.results.values() for y in b.results.values() if x.case == y.case]
    names = [{r.case for r in d.results.values()} for d in (a, b)]
    rows += [row(x, None) for x in a.results.values() if x.case not in names[1]]
    rows += [row(None, y) for y in b.results.values() if y.case not in names[0]]
    ratios = [ratio for ratio, _ in rows if ratio]
    lines = [""] + [f"{side}: {d.address}  {d.title()}, {d.program}" + (f"; not run: {d.reason}" if d.reason else "")
                    for side, d in (("A", a), ("B", b))]
    lines += ["", line(["case", "A, ms", "B, ms", "B / A", "95 %", ""])] + [line(cells) for _, cells in rows]
    if ratios:
        faster = [sum(cells[-1] == f"{side} faster" for _, cells in rows) for side in "AB"]
        lines += ["", f"geometric mean of {len(ratios)} ratios: {units.geometric_mean(ratios):.3f}; beyond the spread: "
                  f"A faster {faster[0]}, B faster {faster[1]}"]
    if len(rows) > len(ratios):
        lines.append(f"{len(rows) - len(ratios)} not compared")
    return ratios, lines


def line(cells):
    return "{:<56} {:>10} {:>10} {:>8} {:>16}  {}".format(*cells).rstrip()


def render(a_paths, b_paths):
    """(whether anything was compared, text).  Without a device that both have, every pair is compared."""
    a, b = devices_of(a_paths), devices_of(b_paths)
    pairs = [(x, y) for x in a for y in b if same(x, a, y, b)]
    found = [compared(*pair) for pair in pairs or [(x, y) for x in a for y in b]]
    lines = [text for _, part in found for text in part]
    for side, mine, i in (("A", a, 0), ("B", b, 1)):
        lines += [f"only in {side}: {d.address}  {d.name}" for d in mine if pairs and d not in [p[i] for p in pairs]]
    return any(ratios for ratios, _ in found), "\n".join(lines) + "\n"
