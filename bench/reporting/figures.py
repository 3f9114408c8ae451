# SPDX-License-Identifier: MIT
"""Which charts a report has, and what is in them."""
from . import units
from .chart import COLOURS, PANEL, Chart, Series
from .ratios import against, groups, side_of, sides

SUITES = ("op", "layer", "model")


def colour(i):
    return i % COLOURS


def seconds_tics(low, high):
    return units.decades(low, high, lambda x: units.seconds(x, 0))


def plain_tics(low, high):
    return units.decades(low, high, lambda x: f"{x:g}")


def by_rows(id, title, about, x_label, columns, x_tics, cases, value, **more):
    """A dot per case (row) and column: columns are (name, key), value(case, key) -> (x, words) or None."""
    found = {c: [value(c, key) for _, key in columns] for c in cases}
    rows = [c for c in cases if any(found[c])]
    series, n = [], len(columns)
    for i, (name, _) in enumerate(columns):
        shift = 0 if n == 1 else 0.44 * (i / (n - 1) - 0.5)
        points = [(found[c][i][0], row + shift, found[c][i][1]) for row, c in enumerate(rows) if found[c][i]]
        series.append(Series(name, colour(i), points))
    return Chart(id, title, about, x_label, series, x_tics, rows=rows, **more)


def shown(device):
    """Launch-bound sizes are left to their section, unless there is nothing else."""
    return [r for r in device.ok() if not r.small] or device.ok()


def cases_of(devices):
    return list(dict.fromkeys(r.case for d in devices for r in shown(d)))


def devices_chart(joined):
    """Every case on every device."""
    devices, n = joined.own(), len(joined.machines)

    def value(case, device):
        r = device.results.get((case, ""))
        return r and r.seconds and (r.seconds, f"{case}, {device.title(n)}: {units.seconds(r.seconds)}")
    return by_rows("devices", "Time of each case, device by device",
                   "One row per case, one mark per device; further left is faster.",
                   "median (logarithmic)", [(d.title(n), d) for d in devices], seconds_tics,
                   cases_of(devices), value)


def roofline_chart(id, device):
    """Cases as points under the roof of what the device was measured to reach."""
    peak, copy = device.roofline.get("fma_flop_per_s"), device.roofline.get("copy_bytes_per_s")
    points = {s: [] for s in SUITES}
    for r in shown(device):
        if r.flop and r.bytes:
            points.setdefault(r.suite, []).append((
                r.flop / r.bytes, r.flop / r.seconds / 1e9,
                f"{r.case}: {units.short(r.flop / r.seconds / 1e9)} GFLOP/s"
                + (f", {units.percent(r.roofline_percent)} of the roof" if r.roofline_percent else "")))
    roof, caches, x = [], [], [p[0] for s in points.values() for p in s]
    if peak and copy and x:
        ridge = peak / copy
        low, high = min(x + [ridge / 4]), max(x + [ridge * 4])
        roof = [(low, low * copy / 1e9), (ridge, peak / 1e9), (high, peak / 1e9)]
        caches = [[(max(low, 0.02 * peak / rate), max(low * rate, 0.02 * peak) / 1e9), (peak / rate, peak / 1e9)]
                  for rate in device.copies.values() if rate > 1.1 * copy]
    return Chart(id, "Roofline", "Arithmetic rate over arithmetic intensity; the line is the device's measured "
                 "copy bandwidth and FMA peak, thin lines are copies that fit its caches.",
                 "operations per byte (logarithmic)",
                 [Series(s, colour(i), p) for i, (s, p) in enumerate(points.items())],
                 plain_tics, y_label="GFLOP/s", y_tics=plain_tics, roof=roof, roofs=caches)


def ratio_chart(id, device):
    pairs = against(device, small=False)
    by_case = {p.ours.case: p for p in pairs}

    def value(case, side):
        p = by_case[case]
        return side in p.sides and (p.ratio(side), f"{case}: {units.ratio(p.ratio(side))}, {side}")
    c = by_rows(id, "Baseline's time / ours", "One row per case, one mark per baseline; right of the line at 1.0 the "
                "library is faster.", "baseline's time / ours (logarithmic)", [(s, s) for s in sides(pairs)],
                plain_tics, list(by_case), value, mark=1.0, mark_label="1.0")
    c.stems = [(1.0, by_case[case].best_ratio(), row) for row, case in enumerate(c.rows)]
    return c


def kinds_chart(id, device):
    """A row for each kind of case, a mark for each case of it."""
    found = [g for g in groups(device) if g.pairs]
    points = [(p.best_ratio(), row, f"{p.ours.case}: {units.ratio(p.best_ratio())}, {p.which()}")
              for row, g in enumerate(found) for p in g.pairs]
    c = Chart(id, "Fastest baseline's time / ours, by kind of case", "A mark is a case; right of the line at 1.0 the "
              "library is faster than every baseline measured.", "fastest baseline's time / libattncl's (logarithmic)",
              [Series("cases", 0, points)], plain_tics, rows=[g.name for g in found], mark=1.0, mark_label="1.0")
    c.stems = [(1.0, g.lowest(), row) for row, g in enumerate(found)]
    return c


def scaling_key(r):
    rest = {k: v for k, v in r.sizes.items() if k != "T" and not (k == "S" and v == r.sizes["T"])}
    return r.group, tuple(sorted((k, str(v)) for k, v in rest.items()))


def shared_title(results):
    """The cases' names without what says T."""
    words = [r.case.split() for r in results]
    return " ".join(w for w in words[0] if all(w in other for other in words[1:]))


def scaling_charts(joined):
    """Time over T for whatever was measured at two or more of them and is otherwise the same."""
    alike, n = {}, len(joined.machines)
    for machine in joined.machines:
        for device in sorted(machine.devices, key=lambda d: d.baseline):
            for r in device.ok():
                if isinstance(r.sizes.get("T"), (int, float)) and r.sizes["T"] > 0:
                    alike.setdefault(scaling_key(r), []).append((device, r))
    charts, colours = [], {}
    for entries in alike.values():
        own = [r for d, r in entries if not d.baseline]
        if len({r.sizes["T"] for r in own}) < 2:
            continue
        lines = {}
        for d, r in entries:
            name = d.title(n) if not d.baseline else f"{d.machine.name}: {side_of(d, r)}" if n > 1 else side_of(d, r)
            line = lines.setdefault((name, d.baseline), {})
            line[r.sizes["T"]] = min(r.seconds, line.get(r.sizes["T"], r.seconds))
        for key in lines:
            colours.setdefault(key, colour(len(colours)))
        series = [Series(name, colours[name, baseline], points_over_t(name, line), line=True, dashed=baseline)
                  for (name, baseline), line in lines.items()]
        charts.append(Chart(f"scaling{len(charts)}", shared_title(own) or own[0].group,
                            "Median time over the length T; broken lines are baselines.",
                            "T (logarithmic)", series,
                            lambda low, high, own=own: [(t, f"{t:g}") for t in sorted({r.sizes["T"] for r in own})], y_label="time",
                            y_tics=seconds_tics, widths=(PANEL,)))
    return charts


def points_over_t(name, line):
    return [(t, seconds, f"T = {t:g}, {name}: {units.seconds(seconds)}") for t, seconds in sorted(line.items())]
