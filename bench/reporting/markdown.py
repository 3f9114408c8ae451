# SPDX-License-Identifier: MIT
"""The ratios as Markdown, for a README."""
import os
import re

from . import goals, ratios, units

BEGIN, END = "<!-- bench/report --markdown -->\n", "<!-- end of bench/report -->\n"


def words(text):
    """No name makes a table, an element or a link."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|\[\]`*_])", r"\\\1", text)


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def goals_by(device, key):
    """Of goals that are ratios to a baseline: a cell for each group or case."""
    found = {}
    for row in goals.rows(device):
        if not row.at_most and row.against in (goals.BASELINES[p] for p in ("fastest", "published", "offered")):
            found.setdefault(key(row), []).append(row)
    return {name: goals.short(rows) for name, rows in found.items()}


def by_kind(device):
    wanted = goals_by(device, lambda row: row.group)
    rows = [[words(g.name), str(len(g.pairs)), g.spread(), g.spread(True), wanted.get(g.name, units.ABSENT), g.share()]
            for g in ratios.groups(device) if g.pairs]
    return table(["baseline's time / ours", "cases", "fastest baseline", "published code", "goal", "of the roofline"], rows)


def by_case(device):
    wanted = goals_by(device, lambda row: row.case)
    rows = [[words(p.ours.case), units.ms(p.ours.seconds), units.ms(p.sides[p.best()][1].seconds),
             units.ratio(p.best_ratio()), units.ratio(p.best_ratio(True)), wanted.get(p.ours.case, units.ABSENT),
             units.percent(p.ours.roofline_percent), words(p.which())] for p in ratios.against(device)[0]]
    return table(["case", "ours, ms", "fastest baseline, ms", "ratio", "published code", "goal", "of the roofline",
                  "fastest baseline"], rows)


def without_directories(command):
    return " ".join(os.path.basename(w) if w.startswith("/") else w for w in command.split(" "))


def preamble(device):
    """What was measured where, and how it went."""
    pairs, sides = ratios.against(device)
    host, runs = device.machine.host, device.machine.runs
    threads = f", {host['threads']:.0f} threads" if host["threads"] else ""
    dates = ", ".join(sorted({r["date"][:10] for r in runs if r["date"]}))
    least = min(p.best_ratio() for p in pairs)
    mean = units.geometric_mean([p.best_ratio() for p in pairs])
    bad = sum(r.outcome in ("wrong", "failed") for r in device.results.values())
    text = (f"{device.title()} ({device.program}) against {'; '.join(sides)} on {host['cpu'] or 'an unknown CPU'}"
            f"{threads}, {dates}. Of {len(pairs)} cases {sum(p.best_ratio() >= 1 for p in pairs)} are at least as fast as "
            f"the fastest baseline; geometric mean {units.ratio(mean)}, lowest {units.ratio(least)}; {bad} wrong or failed.")
    commands = dict.fromkeys(without_directories(r["command"]) for r in runs if r["command"])
    return words(text) + "\n\n" + "".join(f"    {c}\n" for c in commands)


def render(joined, kind):
    """A part for each device that has baselines, by kind of case ("kinds") or case by case ("cases")."""
    make = by_case if kind == "cases" else by_kind
    return "\n".join(f"{preamble(d)}\n{make(d)}" for d in joined.own() if ratios.against(d)[0])


def put_into(text, file):
    """TEXT in place of what stands between the two marks of FILE's text; None without them."""
    start, end = file.find(BEGIN), file.find(END)
    if start < 0 or end < start:
        return None
    return file[:start + len(BEGIN)] + "\n" + text + "\n" + file[end:]
