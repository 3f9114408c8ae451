# SPDX-License-Identifier: MIT
"""Every result of every device as CSV, for a spreadsheet."""
import csv
import io

from . import ratios

HEAD = ("machine", "device", "driver", "program", "case", "set", "variant", "outcome", "runs", "median_ms", "p95_ms",
        "min_ms", "token_p99_ms", "baseline", "ratio", "ratio_low", "ratio_high", "roofline_percent", "clock_mhz",
        "power_w", "temperature_c", "throttled", "ratio_to_device")


def rows(joined, base):
    for machine in joined.machines:
        for device in machine.devices:
            pairs = {} if device.baseline else {p.ours.case: p for p in ratios.against(device)}
            for r in device.results.values():
                p = pairs.get(r.case)
                low, high = (p and p.interval()) or (None, None)
                times = [r.median_s, r.p95_s, r.min_s, r.p99_s] if r.seconds else [None] * 4
                yield [machine.name, device.title(), device.facts["driver"], device.program, r.case, r.set, r.variant,
                       r.outcome, r.runs, *(t and 1e3 * t for t in times), p and p.which(), p and p.best_ratio(), low, high,
                       r.roofline_percent, r.clock_mhz, r.power_w, r.temperature_c, r.throttled,
                       ratios.to_device(r, base)]


def render(joined, base=None):
    """BASE: the device that ratio_to_device is of, above 1 where a device is faster than it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    for row in rows(joined, base):
        writer.writerow(["" if x is None else f"{x:.6g}" if isinstance(x, float) else x for x in row])
    return text.getvalue()
