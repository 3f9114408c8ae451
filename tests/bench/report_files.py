#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report_files.py BENCH: bench/report joins reports as it says, and refuses what it cannot read in one line."""
import copy
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

import reports

FAILURES = []


def check(ok, what):
    if not ok:
        FAILURES.append(what)


class Tool:
    def __init__(self, bench, directory):
        self.program, self.directory, self.n = os.path.join(bench, "report"), directory, 0
        sys.path.insert(0, bench)

    def file(self, content, name=None):
        self.n += 1
        path = os.path.join(self.directory, name or f"{self.n}.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def run(self, *arguments, **environment):
        return subprocess.run([sys.executable, self.program, *arguments], capture_output=True, encoding="utf-8",
                              check=False, env=dict(os.environ, **environment))

    def refused(self, content, *words):
        """One line with the file's name and WORDS, status 2, no page."""
        path, page = self.file(content), os.path.join(self.directory, "none.html")
        ran = self.run(path, "-o", page, "--markdown")
        fits = (ran.returncode == 2 and ran.stderr.count("\n") == 1 and path in ran.stderr
                and all(w in ran.stderr for w in words) and not ran.stdout)
        check(fits and not os.path.exists(page), f"{words}: status {ran.returncode}, {ran.stderr!r} {ran.stdout!r}")


def joining(tool):
    from reporting import merge, ratios

    def join(*contents):
        return merge.join([tool.file(c) for c in contents])
    # A run without rooflines and compile times may be the fastest: what it lacks comes from the other.
    bare = reports.ours(slowness=0.5)
    bare["devices"][0]["roofline"] = None
    for r in bare["devices"][0]["results"]:
        r.update(compile=None, roofline_percent=None, bound=None)
    full = next(iter(join(bare, reports.ours()).own()[0].results.values()))
    slow = reports.ours()["devices"][0]["results"][0]
    check(full.cold_s == 0.3 and full.bound == "memory", "compile times and the roof are lost")
    check(full.seconds == bare["devices"][0]["results"][0]["wall"]["median_s"], "the bare run is not the fastest")
    share = slow["roofline_percent"] * slow["wall"]["median_s"] / full.seconds
    check(abs(full.roofline_percent - share) < 1e-6, "the share of the roof is not that of the faster run")
    # Of a baseline's settings the fastest counts; published code is a side of its own.
    tuned = reports.baseline(slowness=2)
    tuned["devices"][0].update(device="torch-eager-tuned", name="tuned")
    pairs = ratios.against(join(reports.ours(), reports.baseline(), tuned).own()[0])
    sides = ratios.sides(pairs)
    check(sides == ["PyTorch 2.13.0, eager", "PyTorch 2.13.0, eager, published formulation"], f"sides are {sides}")
    check(all(p.which() == "tuned, fused" and p.best() == sides[0] for p in pairs), "not the fastest setting")
    check(sum(p.best(True) == sides[1] for p in pairs) == 10, "published code is not told apart")
    # Two runs of one device: the fastest counts; a wrong result is not made good by another run.
    slow, fast = reports.ours(slowness=2), reports.ours(slowness=1)
    fast["devices"][0]["results"][0].update(outcome="wrong", error=1.0)
    both = join(slow, fast)
    check(len(both.machines) == 1 and len(both.own()) == 1, "two runs of one device are two devices")
    merged = list(both.own()[0].results.values())
    check(merged[0].outcome == "wrong" and merged[0].seconds is None, "a wrong result was timed")
    check(merged[1].seconds == fast["devices"][0]["results"][1]["wall"]["median_s"], "not the fastest run")
    check([p.outcome for p in both.problems] == ["wrong"], "the wrong result is not listed")
    # Devices of one name on two machines stay two; baselines are those of the same machine and kind of CPU.
    other = dict(reports.HOST, cpu="Other 1")
    joined = join(reports.ours(), reports.ours(host=other), reports.baseline(host=other))
    check([len(m.devices) for m in joined.machines] == [1, 2], "machines are mixed up")
    check([bool(ratios.against(d)) for d in joined.own()] == [False, True], "a baseline of another machine was taken")
    gpu = reports.ours(host=other)
    gpu["devices"][0]["type"] = "gpu"
    joined = join(gpu, reports.baseline(host=other))
    check(not ratios.against(joined.own()[0]), "a GPU was compared with a CPU")
    # One label, or one host where a label is missing, is one machine; the order of files does not matter.
    labelled, bare = reports.ours(label="lab"), reports.baseline()
    for files in ((labelled, bare), (bare, labelled)):
        check(len(join(*files).machines) == 1, "a baseline's report without a label is another machine")
    twins = [reports.ours(label=name) for name in ("a", "b")]
    check([m.name for m in join(*twins).machines] == ["a", "b"], "labels do not tell machines apart")
    names = [m.name for m in join(labelled, reports.ours(label="lab", host=other)).machines]
    check(len(set(names)) == 2, f"two machines are called {names}")
    settings = copy.deepcopy(reports.ours())
    settings["devices"][0]["settings"] = {"ATTNCL_VARIANT": "gpu"}
    check(len(join(reports.ours(), settings).own()) == 2, "runs under different settings were joined")


def slower(tool):
    """The first screen says of each case below 1 what limits it, or that it is not told apart."""
    near = reports.baseline(slowness=0.999)
    for content, case, words in ((reports.baseline(), 1, "bound by"), (near, 0, "not told apart")):
        page = os.path.join(tool.directory, "slower.html")
        tool.run(tool.file(reports.ours()), tool.file(content), "-o", page)
        with open(page, encoding="utf-8") as file:
            items = [line for line in file.read().split("<li>") if " " + words in line.split("</li>")[0]]
        name = reports.ours()["devices"][0]["results"][case]["case"]
        check(any(name in line for line in items), f"{name} is not explained by {words!r}: {items}")


def sparse(tool):
    """Only what docs/benchmark-reports.md requires."""
    device = {"device": "0:0", "kind": "opencl", "results": [
        {"case": "x", "outcome": "ok", "wall": {"min_s": 1e-3}}, {"case": "y", "outcome": "failed"},
        {"case": "z", "outcome": "not run", "wall": None}]}
    refusal = {"device": "0:1", "kind": "opencl", "reason": "no compiler"}
    path = tool.file({"schema": 2, "devices": [device, refusal]})
    empty = tool.file({"schema": 2})
    page = os.path.join(tool.directory, "sparse.html")
    ran = tool.run(path, empty, "-o", page)
    check(ran.returncode == 0 and not ran.stderr, "sparse: " + ran.stderr)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for words in ("no compiler", "FAILED", "not run", "Not measured in these reports."):
        check(words in text, "the sparse page does not say " + words)
    ran = tool.run(empty, "--picture", os.path.join(tool.directory, "none.svg"))
    check(ran.returncode == 1 and ran.stderr.count("\n") == 1, "a picture of nothing: " + ran.stderr)


def comparing(tool):
    def side(**times):
        results = []
        for case, t in times.items():
            wall = {name: k * (t or 0) for name, k in (("min_s", 1), ("q1_s", 1.1), ("median_s", 1.2), ("q3_s", 1.3))}
            results.append({"case": case, "outcome": "ok", "wall": wall} if t else {"case": case, "outcome": "wrong"})
        return {"schema": 2, "devices": [{"device": "0:0", "kind": "opencl", "name": "one", "platform": "p",
                                          "results": results}]}

    def lines(*sides):
        ran = tool.run("--compare", *sides)
        check(ran.returncode == 0, f"--compare: {ran.stderr}")
        return [" ".join(l.split()) for l in ran.stdout.splitlines()]

    def expect(found, *wanted):
        for line in wanted:
            check(line in found, f"--compare does not say {line!r}: {found}")
    a = tool.file(side(same=1e-3, slower=1e-3, left=1e-3, wrong=None))
    b = tool.file(side(same=1.05e-3, slower=2e-3, new=1e-3, wrong=1e-3))
    again = tool.file(side(slower=1.5e-3))
    expect(lines(a, b), "same 1.200 1.260 1.050", "slower 1.200 2.400 2.000 A faster", "left 1.200 - - only in A",
           "new - 1.200 - only in B", "wrong wrong 1.200 - not compared",
           "geometric mean of 2 ratios: 1.449; beyond the spread: A faster 1, B faster 0", "3 not compared")
    expect(lines(a, f"{b},{again}"), "slower 1.200 1.800 1.500 A faster")  # of several runs the fastest
    # Another kind of device is compared where there is no common one; else it is named.
    baseline, other = side(same=4e-3), side(same=1e-3)
    baseline["devices"][0].update(kind="baseline", name="PyTorch")
    other["devices"][0].update(name="two")
    expect(lines(a, tool.file(baseline)), "same 1.200 4.800 4.000 A faster")
    expect(lines(a, f"{b},{tool.file(other)}"), "only in B: 0:0 two")
    for bad, status in ((tool.file(dict(side(), schema=1)), 2), (tool.file(side()), 1)):
        check(tool.run("--compare", a, bad).returncode == status, f"--compare with {bad}")
    # With samples: an interval, which holds the ratio.
    row = next(l for l in lines(tool.file(reports.ours()), tool.file(reports.ours(slowness=2)))
               if l.startswith("product NN 1024 "))
    ratio, low, high = (float(row.split()[i]) for i in (5, 6, 8))
    check(low < ratio < high < 1.1 * low, f"--compare's interval: {row}")


def figures(tool):
    """What is said of the ratios: intervals, launch-bound sizes apart, device over device, CSV."""
    from reporting import bootstrap, merge, page, ratios
    joined = merge.join([tool.file(c) for c in (reports.ours(), reports.baseline())])
    device = joined.own()[0]
    pairs = ratios.against(device, small=False)
    check(len(pairs) == len(list(reports.cases())) - 1, "launch-bound sizes are among the others")
    check([p.ours.case for p in ratios.against(device, small=True)] == [reports.SMALL], "no launch-bound size")
    low, high = pairs[0].interval()
    check(2.9 < low < pairs[0].best_ratio() < high < 3.1, f"interval {low} to {high} of {pairs[0].best_ratio()}")
    wide = bootstrap.medians((1.0, 1.0, 1.0, 9.0, 9.0))
    check(min(wide) == 1 and max(wide) == 9 and wide == bootstrap.medians((1.0, 1.0, 1.0, 9.0, 9.0)), "the bootstrap's draws")
    check(" to " in ratios.mean_interval(pairs), "the mean has no interval")
    check(page.noise(device) == ("some noise", "quartiles of the runs 8 % apart"), f"noise: {page.noise(device)}")
    fast = reports.ours(slowness=0.5, name="fast one")
    paths, out = [tool.file(reports.ours()), tool.file(fast)], os.path.join(tool.directory, "all.csv")
    ran = tool.run(*paths, "--csv", out, "--baseline", "Example")
    check(ran.returncode == 0, f"--csv: {ran.stderr}")
    with open(out, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    check(len(rows) == 2 * len(list(reports.cases())), f"{len(rows)} rows of CSV")
    over = {r["device"]: float(r["ratio_to_device"]) for r in rows if r["case"] == "product NN 1024"}
    slow, fast = (next(x for name, x in over.items() if part in name) for part in ("Example", "fast"))
    check(slow == 1 and 1.5 < fast < 2, f"device over device: {over}")
    check(rows[0]["median_ms"] and rows[0]["clock_mhz"] == "2400" and rows[0]["power_w"] == "", f"CSV: {rows[0]}")
    for name in ("nothing", "0:0"):
        ran = tool.run(*paths, "--csv", out, "--baseline", name)
        check(ran.returncode == 2 and "fast one" in ran.stderr, f"--baseline {name}: {ran.stderr}")


def refusals(tool):
    good = reports.ours()
    tool.refused(dict(good, schema=1), "schema 1", "schema 2")
    tool.refused({"version": "0.1.0", "devices": []}, "without a schema", "schema 2")
    tool.refused(dict(good, schema="2"), "schema '2'")
    tool.refused(json.dumps(good)[:500], "not a JSON report", "line 1")
    tool.refused("", "not a JSON report")
    tool.refused("[" * 100000, "not a JSON report")
    tool.refused("[]", "an object was expected, found a list")
    tool.refused(dict(good, devices={}), "devices", "a list was expected")
    tool.refused(dict(good, devices=[3]), "devices[0]", "found a number")
    for name, value, words in (("case", None, "case: text was expected"), ("outcome", "fine", "'fine' is none of"),
                               ("wall", {}, "without wall.min_s"), ("wall", {"min_s": "1"}, "a number was expected"),
                               ("flop", True, "flop: a number")):
        broken = copy.deepcopy(good)
        broken["devices"][0]["results"][3][name] = value
        tool.refused(broken, "devices[0].results[3]", words)
    ran = tool.run(os.path.join(tool.directory, "absent.json"), "--markdown")
    check(ran.returncode == 2 and "absent.json: No such file" in ran.stderr, "absent file: " + ran.stderr)
    check(tool.run(tool.file(good)).returncode == 2, "nothing to create is no mistake")
    page = os.path.join(tool.directory, "no-gnuplot.html")
    only = os.path.join(tool.directory, "bin")
    os.mkdir(only)
    ran = tool.run(tool.file(good), "-o", page, PATH=only)
    check(ran.returncode == 1 and "gnuplot, which is not installed" in ran.stderr and not os.path.exists(page),
          "without gnuplot: " + ran.stderr)
    ran = tool.run(tool.file(good), "-o", os.path.join(tool.directory, "none", "x.html"))
    check(ran.returncode == 1 and ran.stderr.count("\n") == 1, "no such directory: " + ran.stderr)


def outputs(tool):
    bad = reports.baseline(name="P | <b>x</b> [a](b)\n`c` \x07 \ud800 \uffff")
    files = [tool.file(reports.ours()), tool.file(bad)]
    for kind, rows in (("headline", 3), ("cases", len(list(reports.cases())) - 1)):
        lines = tool.run(*files, "--markdown", kind).stdout.splitlines()
        table = [l for l in lines if l.startswith("|")]
        check(len(table) == rows + 2, f"--markdown {kind} has {len(table)} lines of a table")
        columns = {l.replace("\\|", "").count("|") for l in table}
        check(len(columns) == 1 and not any("<b>" in l for l in lines), f"--markdown {kind}: {lines[:6]}")
    ours, theirs = reports.ours(), reports.baseline()
    memory = {k + "_bytes": 100 << 20 for k in ("io", "weights", "arena", "state")}
    for report, held in ((ours, memory), (theirs, {"peak_bytes": 800 << 20})):
        step, gradient = (r for d in report["devices"] for r in d["results"] if r["case"] in (
            "softmax 4096x1024", "layer norm 4096x1024"))
        step.update(family="train_step", memory=held)
        gradient["sizes"]["backward"] = True
    table = [l.split("|")[-4:-1] for l in tool.run(tool.file(ours), tool.file(theirs), "--markdown", "training").stdout.splitlines()
             if l.startswith("|")]
    check([[c.strip() for c in l] for l in table[2:]] == [["400 MiB", "800 MiB", "0.50"], ["44.5 MiB", "–", "–"]],
          f"--markdown training: {table}")
    readme = tool.file("before\n<!-- bench/report --markdown headline -->\nold\n<!-- end of bench/report -->\nafter\n", "R.md")
    for _ in range(2):
        check(tool.run(*files, "--markdown", "--into", readme).returncode == 0, "--into failed")
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    check(text.startswith("before\n<!--") and text.endswith("-->\nafter\n") and "old" not in text
          and text.count("| softmax 4096x1024 |") == 1, "--into: " + text[:300])
    with open(readme, "w", encoding="utf-8") as file:
        file.write("no marks\n")
    ran = tool.run(*files, "--markdown", "--into", readme)
    check(ran.returncode == 1 and "has no lines" in ran.stderr, "--into a file without marks: " + ran.stderr)
    picture = os.path.join(tool.directory, "p.svg")
    ran = tool.run(*files, "--picture", picture)
    check(ran.returncode == 0, "picture: " + ran.stderr)
    names = [t.text for t in ET.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")]
    check("1.0" in names and "AFT-local, causal" in names, f"the picture says {names}")
    check(os.path.getsize(picture) < 150000, "the picture is larger than 150 KB")
    pages = []
    for name in ("one.html", "two.html"):
        tool.run(*files, "-o", os.path.join(tool.directory, name))
        with open(os.path.join(tool.directory, name), "rb") as file:
            pages.append(file.read())
    check(pages[0] == pages[1], "the same reports make different pages")


def readable():
    """Colours against the page: 4.5 for words, 3 for marks (WCAG 2)."""
    from reporting import svg

    def light(colour):
        parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    for which in (0, 1):
        paper = light(svg.PALETTE["paper"][which])
        for name, colours in svg.PALETTE.items():
            least = 4.5 if name in ("ink", "muted") else 3 if name[0] == "s" and name[1:].isdigit() else 1
            high, low = max(paper, light(colours[which])), min(paper, light(colours[which]))
            contrast = (high + 0.05) / (low + 0.05)
            check(contrast >= least, f"{name} {colours[which]} has a contrast of {contrast:.2f}, {least} is needed")


def main(bench):
    if not shutil.which("gnuplot"):
        print("skipped: gnuplot is needed")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        tool = Tool(bench, directory)
        joining(tool)
        slower(tool)
        sparse(tool)
        comparing(tool)
        figures(tool)
        refusals(tool)
        outputs(tool)
        readable()
    for what in FAILURES:
        print("FAIL", what)
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
