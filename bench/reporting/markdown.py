# SPDX-License-Identifier: MIT
"""The ratios as Markdown, for docs/benchmarks.md."""
import re

from . import ratios, units

BEGIN = {kind: f"<!-- bench/report --markdown {kind} -->\n" for kind in ("headline", "training", "cases")}
END = "<!-- end of bench/report -->\n"


def words(text):
    """No name makes a table, an element or a link."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|\[\]`*_])", r"\\\1", text)


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def headline(pairs):
    programs = {p.sides[p.best()][0].program.split()[0] for p in pairs}
    return table(["case", "ours, ms", f"{words(programs.pop()) if len(programs) == 1 else 'baseline'}, ms", "ratio"], [
        [words(p.ours.case), units.ms(p.ours.seconds), units.ms(p.theirs().seconds), units.ratio(p.best_ratio())]
        for p in pairs])


def cases(pairs):
    return table(
        ["case", "ours, ms", "95th percentile", "runs", "baseline, ms", "ratio", "95 % interval", "published code",
         "of the roofline", "fastest baseline"],
        [[words(p.ours.case), units.ms(p.ours.seconds), units.ms(p.ours.p95_s), units.count(p.ours.runs),
          units.ms(p.theirs().seconds), units.ratio(p.best_ratio()), units.interval(p.interval()) or units.ABSENT,
          units.ratio(p.best_ratio(True)), units.percent(p.ours.roofline_percent), words(p.which())] for p in pairs])


def training(pairs):
    """Steps and gradients, and what a step takes in memory."""
    def share(p):
        ours, theirs = p.ours.peak_bytes, p.theirs().peak_bytes
        return [units.memory(ours), units.memory(theirs), units.ratio(ours and theirs and ours / theirs)]
    return table(["case", "ours, ms", "baseline, ms", "ratio", "memory of ours", "of the baseline", "share"], [
        [words(p.ours.case), units.ms(p.ours.seconds), units.ms(p.theirs().seconds), units.ratio(p.best_ratio()), *share(p)]
        for p in pairs])


def preamble(device, pairs):
    """What was measured where, and how it went."""
    host, runs = device.machine.host, device.machine.runs
    threads = f", {host['threads']:.0f} threads" if host["threads"] else ""
    dates = ", ".join(sorted({r["date"][:10] for r in runs if r["date"]}))
    bad = sum(r.outcome in ("wrong", "failed") for r in device.results.values())
    mean, interval = units.ratio(units.geometric_mean([p.best_ratio() for p in pairs])), ratios.mean_interval(pairs)
    text = (f"{sum(p.best_ratio() >= 1 for p in pairs)} of {len(pairs)} cases are at least as fast as the fastest baseline; "
            f"geometric mean {mean}{f' (95 %: {interval})' if interval else ''}, lowest "
            f"{units.ratio(min(p.best_ratio() for p in pairs))}; {bad} wrong or failed. Medians on "
            f"{host['cpu'] or 'an unknown CPU'}{threads}, {dates}: {device.title()}; {device.program}; against "
            f"{'; '.join(ratios.sides(pairs))}.")
    return words(text) + "\n"


def render(joined, kind):
    """A part for each device that has baselines: "headline" cases, those of "training", or all "cases"."""
    wanted = {"cases": lambda r: True, "headline": lambda r: r.headline,
              "training": lambda r: r.family == "train_step" or r.sizes.get("backward") is True}[kind]
    make, parts = {"cases": cases, "headline": headline, "training": training}[kind], []
    for device in joined.own():
        pairs = [p for p in ratios.against(device, small=False) if wanted(p.ours)]
        if pairs:
            parts.append(f"{preamble(device, pairs)}\n{make(pairs)}")
    return "\n".join(parts)


def put_into(text, file, kind):
    """TEXT in place of what stands between the two marks of FILE's text; None without them."""
    before, begin, rest = file.partition(BEGIN[kind])
    _, end, after = rest.partition(END)
    return before + begin + "\n" + text + "\n" + end + after if end else None
