# SPDX-License-Identifier: MIT
"""The page: the summary first, then the charts with their figures as tables, and what made them last."""
import os
import statistics

from . import chart, figures, ratios, svg, tables, units
from .html import el, serialise

ABOUT_RATIOS = (
    "A ratio is the median of the fastest baseline, of all formulations and settings, over the library's on the same "
    "machine: above 1 the library is faster. Intervals are of the median, by the bootstrap. The share of the roofline is of "
    "what the device was measured to reach with data of the case's footprint.")
STYLE = os.path.join(os.path.dirname(__file__), "style.css")


class Page:
    """Sections are written first and their charts drawn afterwards, all by one gnuplot."""

    def __init__(self, joined, base=None):
        self.joined, self.base = joined, base  # base: the device that others are held against
        self.scripts, self.places = [], []

    def figure(self, c, *below, alone=True):
        """The chart at each of its widths, of which the style shows one; None where it has no points.  One
        that is not ALONE is one of many panels, which share a legend and an explanation."""
        if c.is_empty():
            return None
        holder = el("div", class_="picture")
        for script in svg.scripts_of(c):
            self.scripts.append(script)
            self.places.append((holder, script.narrow and len(c.widths) > 1))
        return el("figure", el("figcaption", el("strong", c.title), el("span", c.about) if alone else None),
                  legend(c.legend()) if alone else None, holder, list(below))

    def draw(self):
        for (holder, narrow), picture in zip(self.places, svg.draw(self.scripts)):
            several = picture.get("width") != str(chart.PANEL)
            picture.set("class", "narrow" if narrow else "wide" if several else "panel")
            holder.append(picture)

    def per_device(self, id, title, about, make):
        """A section with a part for each device; MAKE(part's id, device) gives its content."""
        parts = []
        for i, device in enumerate(self.joined.own()):
            content = [c for c in make(f"{id}{i}", device) if c is not None]
            if content:
                parts += [el("h3", device.title(len(self.joined.machines))), content]
        return section(id, title, about, parts)


def legend(series):
    return el("ul", [el("li", el("span", chart.SIGNS[s.colour], class_=f"s{s.colour + 1}", aria_hidden="true"), " ",
                        s.name) for s in series], class_="legend") if series else None


def scaling(page):
    """Panels beside each other under one legend: a line has the same look in all of them."""
    charts = figures.scaling_charts(page.joined)
    if not charts:
        return []
    series = list({s.name: s for c in charts for s in c.series}.values())
    return [legend(series), el("div", [page.figure(c, alone=False) for c in charts], class_="panels")]


def section(id, title, about, content, about_last=False):
    """A section with nothing in it says so: a missing chart must not look like a forgotten one."""
    content = [c for c in content if c is not None] or [el("p", "Not measured in these reports.", class_="absent")]
    about = [el("p", about)]
    return el("section", el("h2", title), content + about if about_last else about + content, id=id)


def launch_cost(device):
    cost = device.roofline.get("launch_s")
    return el("p", f"A launch and the wait for it take {units.seconds(cost)} on this device.") if cost and any(
        r.small for r in device.ok()) else None


def details(summary, content):
    return el("details", el("summary", summary), content) if content is not None else None


def noise(device):
    """How much other work disturbed the runs: the distance of the quartiles over the median, in the middle of the cases."""
    found = [(r.q3_s - r.q1_s) / r.seconds for r in device.ok() if r.q3_s and r.q1_s]
    if not found:
        return units.ABSENT, "spread of the runs"
    middle = statistics.median(found)
    word = "quiet" if middle < 0.05 else "some noise" if middle < 0.15 else "noisy: measure again"
    return word, f"quartiles of the runs {100 * middle:.0f} % apart"


def first_look(device):
    """What the first screen says of a device, above its picture."""
    pairs, results = ratios.against(device, small=False), list(device.results.values())
    dates = sorted({run["date"][:10] for run in device.machine.runs if run["date"]})
    driver = device.facts["driver"]
    facts = ["; ".join(filter(None, (device.facts["platform"], driver and f"driver {driver}", device.program,
                                     dates and dates[-1])))]
    tiles = []
    fair = ratios.fair(pairs)
    if fair:
        mean, interval = units.geometric_mean([p.best_ratio() for p in fair]), ratios.mean_interval(fair)
        faster = sum(p.best_ratio() >= 1 for p in fair)
        tiles = [(units.ratio(mean), "geometric mean of the ratios" + (f", 95 %: {interval}" if interval else "")),
                 (f"{faster} of {len(fair)}", "cases at least as fast as every baseline")]
    if len(fair) < len(pairs):
        tiles.append((str(len(pairs) - len(fair)), "cases disturbed: not counted"))
    tiles.append(noise(device))
    tiles += [(str(n), o) for o in ("wrong", "failed", "not run") if (n := sum(r.outcome == o for r in results))]
    return [el("p", facts), el("ul", [el("li", el("b", value), " " + what, class_="bad" if what in (
        "wrong", "failed") else None) for value, what in tiles], class_="tiles")]


def slower(device):
    """The cases that a baseline computes faster, and why."""
    found = [p for p in ratios.against(device, small=False) if p.best_ratio() < 1]
    return [el("h4", "Slower than a baseline"), el("ul", [el(
        "li", el("b", f"{p.ours.case}: {units.ratio(p.best_ratio())}"), ", " + p.why_slower()) for p in found],
        class_="bad")] if found else None


def problems(joined):
    """Whatever has no time, and why: what is wrong or failed first, and always open."""
    if not joined.problems:
        return [el("p", "Every case that was asked for ran, and every result that was checked was right.")]
    parts = []
    for device in dict.fromkeys(id(p.device) for p in joined.problems):
        mine = list({(p.where, p.what): p for p in joined.problems if id(p.device) == device}.values())
        bad = [p for p in mine if p.outcome in ("wrong", "failed")]
        rest = [p for p in mine if p not in bad]
        parts += [el("h3", mine[0].device.title(len(joined.machines))), problem_list(bad, "bad"), problem_list(rest, "absent")]
    return parts


def problem_list(found, class_):
    items = [el("li", el("b", p.where), " ", p.what) for p in found]
    return el("ul", items, class_=class_) if items else None


def summary(page):
    content = []
    for i, device in enumerate(page.joined.own()):
        if not device.results:
            continue
        picture = page.figure(figures.kinds_chart(f"kinds{i}", device))
        content += [el("h3", device.title(len(page.joined.machines))), *first_look(device), picture, slower(device)]
    return section("summary", "Summary", ABOUT_RATIOS, content, about_last=True)


def sections(page):
    joined = page.joined
    yield summary(page)
    yield section("problems", "Wrong, failed, not run",
                  "Results are compared with a definition in double precision before they are timed; a wrong one "
                  "is not timed.", problems(joined))
    yield section("side-by-side", "Devices side by side", "What each device was measured to reach, and the time of "
                  "each case.", [tables.devices(joined), page.figure(
                      figures.devices_chart(joined), details("Figures", tables.side_by_side(joined, page.base)))])
    yield page.per_device("ratios", "Against baselines", "Baselines run the same cases on the same machine.", lambda id, d: [
        page.figure(figures.ratio_chart(id, d), details("Figures", tables.ratios_of(d)))])
    yield page.per_device(
        "launch-bound", "Launch-bound sizes", "So small that a run is starting kernels and waiting for them, on a CPU tens of "
        "microseconds, where a function call takes one. They show what a launch costs, not how fast the library "
        "computes, and are in no figure above.", lambda id, d: [launch_cost(d), tables.ratios_of(d, small=True)])
    yield page.per_device("roofline", "Roofline", "A case is bound by arithmetic or by memory, whichever takes "
                          "longer at the device's measured rates.", lambda id, d: [
                              page.figure(figures.roofline_chart(id, d))])
    yield section("scaling", "Scaling over T", "Medians of cases that differ in length only; broken lines are "
                  "baselines.", scaling(page))
    yield page.per_device("memory", "Memory and compile times", "Of the compiled graph: what a run needs beside the caller's "
                          "data is activations and scratch.  It is compiled once, with no program cache or a filled one, and "
                          "run many times.", lambda id, d: [details("Figures", tables.memory(d))])
    yield page.per_device("latency", "Latency of a token", "Of decoding, one step with its scores read back.",
                          lambda id, d: [tables.latencies(d)])
    yield page.per_device("state", "Clock, power, temperature", "Read while the cases ran; a dash: neither sysfs nor the "
                          "driver's library says.", lambda id, d: [details("Figures", tables.state(d))])
    if joined.kits:
        yield section("first-contact", "First contact", "The phases of attncl report, the programs as the driver built them, and "
                      "the log.", [[el("h3", m.name) if len(joined.kits) > 1 else "", tables.phases(kit),
                                    details("Programs", tables.kernels(kit)), details("Log", tables.log_of(kit))]
                                   for m, kit in joined.kits])
    yield section("figures", "All figures", "Times are of a run and the wait for it.", [
        details(d.title(len(joined.machines)), tables.results(d))
        for m in joined.machines for d in m.devices if d.results])
    yield section("made-by", "How this was measured", "Of several reports of one device the least median of each "
                  "case counts.", [tables.origin(m, len(joined.machines)) for m in joined.machines])


def render(joined, base=None):
    """The page's text.  Raises svg.CannotMake without gnuplot."""
    page = Page(joined, base)
    body = list(sections(page))
    page.draw()
    with open(STYLE, encoding="utf-8") as file:
        style = file.read()
    root = "".join(f"--{n}:{light};" for n, (light, _) in svg.PALETTE.items())
    dark = "".join(f"--{n}:{value};" for n, (_, value) in svg.PALETTE.items())
    names = ", ".join(m.name for m in joined.machines)
    dates = sorted({run["date"][:10] for m in joined.machines for run in m.runs if run["date"]})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "date unknown"
    nav = el("nav", el("ul", [el("li", el("a", s.find("h2").text, href="#" + s.get("id"))) for s in body]),
             aria_label="Sections")
    return serialise(el(
        "html",
        el("head", el("meta", charset="utf-8"),
           el("meta", name="viewport", content="width=device-width, initial-scale=1"),
           el("meta", name="color-scheme", content="light dark"),
           el("title", f"libattncl benchmark: {names}"),
           el("link", rel="icon", href="data:,"),
           el("style", f":root{{{root}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{style}")),
        el("body", el("header", el("h1", "libattncl benchmark"), el("p", f"{names}; {when}")),
           el("main", body[0], nav, body[1:])),
        lang="en"))


def picture(joined):
    """The ratios of the first device that has some, as a file of its own."""
    for device in joined.own():
        if ratios.fair(ratios.against(device, small=False)):
            return svg.standalone(chart.Script(figures.kinds_chart("ratio", device), 720, True))
    return None
