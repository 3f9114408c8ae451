# SPDX-License-Identifier: MIT
"""Ratios to baselines, or devices side by side, as Markdown for the documents."""
import re

from . import ratios, units

KINDS = ("headline", "training", "decoding", "cases", "devices")
BEGIN = {kind: f"<!-- bench/report --markdown {kind} -->\n" for kind in KINDS}
END = "<!-- end of bench/report -->\n"


def words(text):
    """No name makes a table, an element or a link."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|\[\]`*_])", r"\\\1", text)


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def of_ratio(p):
    return units.ratio(p.best_ratio()) + (" disturbed" if p.disturbed else "")


def headline(pairs):
    programs = {p.sides[p.best()][0].program.split()[0] for p in pairs}
    return table(["case", "ours, ms", "min", f"{words(programs.pop()) if len(programs) == 1 else 'baseline'}, ms", "min", "ratio"], [
        [words(p.ours.case), *times(p.ours), *times(p.theirs()), of_ratio(p)] for p in pairs])


def times(r):
    """Median and minimum."""
    return [units.ms(r.seconds), units.ms(r.min_s)]


def decoding(pairs):
    """A column for each side, whether it is compared or shown only."""
    names = [s for s in ratios.sides(pairs) if any(p.sides[s][1].equal for p in pairs if s in p.sides)]
    names += [s for s in ratios.sides(pairs) if s not in names]

    def row(p):
        shown = ["/".join(times(p.sides[s][1])) if s in p.sides else units.ABSENT for s in names]
        return [words(p.ours.case), "/".join(times(p.ours)), *shown, of_ratio(p)]
    heads = [words(s) + ("" if any(p.sides[s][1].equal for p in pairs if s in p.sides) else " (not compared)") for s in names]
    return table(["case, ms, median/min", "ours", *heads, "ratio"], list(map(row, pairs)))


def cases(pairs):
    return table(
        ["case", "ours, ms", "95th percentile", "runs", "baseline, ms", "ratio", "95 % interval", "published code",
         "of the roofline", "fastest baseline"],
        [[words(p.ours.case), units.ms(p.ours.seconds), units.ms(p.ours.p95_s), units.count(p.ours.runs),
          units.ms(p.theirs().seconds), of_ratio(p), units.interval(p.interval()) or units.ABSENT,
          units.ratio(p.best_ratio(True)), units.percent(p.ours.roofline_percent), words(p.which())] for p in pairs])


def training(pairs):
    """Steps and gradients, and what a step takes in memory."""
    def share(p):
        ours, theirs = p.ours.peak_bytes, p.theirs().peak_bytes
        return [units.memory(ours), units.memory(theirs), units.ratio(ours and theirs and ours / theirs)]
    return table(["case", "ours, ms", "min", "baseline, ms", "min", "ratio", "memory of ours", "of the baseline", "share"], [
        [words(p.ours.case), *times(p.ours), *times(p.theirs()), of_ratio(p), *share(p)]
        for p in pairs])


def devices(joined):
    """Medians of every case, a column for each device."""
    def cell(device, case):
        result = next((r for r in device.results.values() if r.case == case), None)
        return units.ABSENT if result is None else units.ms(result.seconds) if result.seconds else words(result.remark())
    own = joined.own()
    names = list(dict.fromkeys(r.case for d in own for r in d.results.values()))
    return table(["case, ms", *(words(d.title(len(joined.machines))) for d in own)], [
        [words(case), *(cell(d, case) for d in own)] for case in names])


def preamble(device, pairs):
    """What was measured where, and how it went."""
    host, runs = device.machine.host, device.machine.runs
    threads = f", {host['threads']:.0f} threads" if host["threads"] else ""
    dates = ", ".join(sorted({r["date"][:10] for r in runs if r["date"]}))
    bad = sum(r.outcome in ("wrong", "failed") for r in device.results.values())
    fair, text = ratios.fair(pairs), "No case was left undisturbed; "
    if fair:
        mean, interval = units.ratio(units.geometric_mean([p.best_ratio() for p in fair])), ratios.mean_interval(fair)
        text = (f"{sum(p.best_ratio() >= 1 for p in fair)} of {len(fair)} cases are at least as fast as the fastest baseline; "
                f"geometric mean {mean}{f' (95 %: {interval})' if interval else ''}, lowest "
                f"{units.ratio(min(p.best_ratio() for p in fair))}; {len(pairs) - len(fair)} more were disturbed and do not count; ")
    absent = sorted({f"{p.name} ({p.reason})" for p in device.machine.devices if p.baseline and p.reason and not p.results})
    text += (f"{bad} wrong or failed. Medians on {host['cpu'] or 'an unknown CPU'}{threads}, {dates}: {device.title()}; "
             f"{device.program}. Baselines: {'; '.join(ratios.sides(pairs))}.")
    parts = [text, absent and "Not measured: " + "; ".join(absent) + "."]
    parts += [f"Disturbed: {p.ours.case}: {p.disturbed}." for p in pairs if p.disturbed]
    parts += [f"Look into it before you publish: {what}." for what in ratios.suspicious(fair)]
    return "\n\n".join(words(part) for part in parts if part) + "\n"


def pairs_of(joined, kind):
    """Each device with its pairs of the "headline" cases, those of "training" or "decoding", or all "cases"."""
    wanted = {"cases": lambda r: True, "headline": lambda r: r.headline,
              "decoding": lambda r: r.family in ("lm_decode", "lm_prefill", "lm_step", "lm_start"),
              "training": lambda r: r.family == "train_step" or r.sizes.get("backward") is True}[kind]
    found = [(d, [p for p in ratios.against(d, small=False) or ratios.against(d) if wanted(p.ours)]) for d in joined.own()]
    return [(device, pairs) for device, pairs in found if pairs]


def has_result(joined, kind):
    if kind == "devices":
        return any(d.ok() for d in joined.own())
    return any(ratios.fair(pairs) for _, pairs in pairs_of(joined, kind))


def render(joined, kind):
    """A part for each device that has baselines; for "devices" one table of all."""
    if kind == "devices":
        return devices(joined)
    make = {"cases": cases, "headline": headline, "training": training, "decoding": decoding}[kind]
    return "\n".join(f"{preamble(device, pairs)}\n{make(pairs)}" for device, pairs in pairs_of(joined, kind))


def put_into(text, file, kind):
    """TEXT in place of what stands between the two marks of FILE's text; None without them."""
    before, begin, rest = file.partition(BEGIN[kind])
    _, end, after = rest.partition(END)
    return before + begin + "\n" + text + "\n" + end + after if end else None


def put_rows(text, file):
    """FILE's text with the rows of the table in TEXT in place of its own ones of the same cases, and its head."""
    def cell(line):
        return line.split("|")[1].strip() if line.startswith("| ") else None
    lines = text.splitlines()
    new = {cell(line): line for line in lines if cell(line)}
    return "".join(new.get(cell(line), line.rstrip("\n")) + "\n" for line in file.splitlines())
