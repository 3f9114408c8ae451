#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report_page.py BENCH: bench/report's page has its figures in a real browser, wide, dark and on a telephone.

BENCH is the source's bench directory.  Exit status 77 without gnuplot or Chromium.  --keep DIRECTORY: leave pictures
of the page there.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import browser
import reports

HOSTILE = 'Évil <script>document.title="run"</script> "Q" \'$(touch x)\' & @1@ `x` 量子 \x07'
EXPECTED = ["kinds0", "kinds1", "kinds2", "devices", "ratios0", "ratios1", "ratios2", "roofline0", "roofline1", "roofline2",
            "scaling0", "scaling1", "scaling2", "scaling3"]

# What each figure shows: the one visible svg, its size, its marks and texts, and what lies outside it.
LOOK = """JSON.stringify([...document.querySelectorAll('figure')].map(figure => {
    const shown = [...figure.querySelectorAll('svg')].filter(s => s.getClientRects().length);
    const box = e => e.getBoundingClientRect();
    const svg = shown[0], around = svg && box(svg);
    const inside = r => r.width > 0 && r.height > 0 && r.left >= around.left - 1 && r.right <= around.right + 1
        && r.top >= around.top - 1 && r.bottom <= around.bottom + 1;
    const drawn = e => getComputedStyle(e).color != getComputedStyle(document.body).backgroundColor;
    const uses = svg ? [...svg.querySelectorAll('use[transform^=translate]')] : [];
    const texts = svg ? [...svg.querySelectorAll('text')].filter(t => t.textContent) : [];
    return {
        id: figure.querySelector('svg').getAttribute('aria-labelledby').replace(/-.*/, ''),
        shown: shown.length, width: around ? around.width : 0, height: around ? around.height : 0,
        marks: uses.filter(u => inside(box(u)) && drawn(u)).length, stray: uses.filter(u => !inside(box(u))).length,
        colours: [...new Set(uses.map(u => getComputedStyle(u).color))].length,
        texts: texts.length, cut: texts.filter(t => !inside(box(t))).map(t => t.textContent),
        small: texts.filter(t => box(t).height < 8).length,
        named: (svg ? svg.getAttribute('aria-labelledby') : '').split(' ').every(i => document.getElementById(i))};
}))"""


def faults_of(figures):
    """What is wrong with what LOOK found."""
    found = []
    for f in figures:
        def check(ok, what, f=f):
            if not ok:
                found.append(f"{f['id']}: {what}: {json.dumps(f, ensure_ascii=False)}")
        check(f["shown"] == 1, "not one picture is shown")
        check(f["width"] >= 300 and f["height"] >= 150, "the picture has no size")
        check(f["marks"] >= 2, "nothing is drawn")
        check(not f["stray"], "marks lie outside the picture")
        check(f["texts"] >= 4 and not f["cut"], "texts are missing or cut off")
        check(not f["small"], "texts are too small to read")
        check(f["named"], "no title and description")
    ids = [f["id"] for f in figures]
    if ids != EXPECTED:
        found.append(f"figures are {ids}, expected {EXPECTED}")
    return found


def write(directory, name, report):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    return path


def inputs(directory):
    """Two machines with a device of the same name, two baselines on one of them, every outcome."""
    second = reports.ours(slowness=0.8, label=HOSTILE, host=dict(reports.HOST, cpu="Other 1", cores=64))
    second["devices"].append(reports.device("1:0", HOSTILE, 9))
    results = second["devices"][1]["results"]
    results[2].update(outcome="wrong", error=None, reason=HOSTILE)
    results[3].update(outcome="failed", reason=HOSTILE)
    results[4].update(outcome="not run", reason="loop limit")
    baseline = reports.baseline(label=HOSTILE, host=second["host"])
    return [write(directory, "a.json", reports.ours()), write(directory, "p.json", reports.baseline()),
            write(directory, "q.json", reports.baseline(name="PyTorch, " + HOSTILE, slowness=2.2, mode=HOSTILE)),
            write(directory, "b.json", second), write(directory, "r.json", baseline)]


def look_at(page, path, keep):
    """Faults of the page as each kind of reader sees it."""
    found = []
    for name, width, dark in (("wide", 1200, False), ("dark", 1200, True), ("phone", 400, False)):
        page.open(path, width=width, dark=dark)
        found += [f"{name}: {what}" for what in faults_of(json.loads(page.value(LOOK)))]
        found += [f"{name}: {what}" for what in page.complaints]
        found += [f"{name}: the page asks for {u}" for u in page.requests[1:] if not u.startswith("data:")]
        for state in ("closed", "open"):
            over = page.value("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                found.append(f"{name}: {over} pixels wider than the window, tables {state}")
            if keep:
                page.screenshot(os.path.join(keep, f"{name}-{state}.png"))
            page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    same = page.value("[...document.querySelectorAll('[id]')].map(e => e.id)"
                      ".filter((x, i, all) => all.indexOf(x) != i).join()")
    if same:
        found.append("ids that are not unique: " + same)
    text, clean = page.value("document.body.textContent"), HOSTILE.replace("\x07", " ")
    for words in (clean, "WRONG: error infinite or unknown", "FAILED: " + clean, "not run: loop limit", "Example 9000",
                  "attncl-bench --json out.json", "allocator tuned", "2026-01-02T03:04:05Z"):
        if words not in text:
            found.append("the page does not say " + words)
    if page.value("document.title") == "run" or page.value("document.scripts.length"):
        found.append("a name became a script")
    return found


# An empty figure, as if gnuplot had drawn axes only; and one without a size.
BREAKAGES = ("document.querySelectorAll('#side-by-side figure:first-of-type use').forEach(u => u.remove())",
             "document.querySelectorAll('#roofline svg').forEach(s => s.style.width = '0')")


def main(bench, keep=None):
    if not shutil.which("gnuplot") or not browser.find():
        print("skipped: gnuplot and Chromium are needed")
        return 77
    if not browser.starts():
        print("skipped: Chromium does not start here")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "page #1.html")
        subprocess.run([sys.executable, os.path.join(bench, "report"), *inputs(directory), "-o", path], check=True)
        with browser.Browser() as page:
            found = look_at(page, path, keep)
            # The look must be able to fail.
            for breakage in BREAKAGES:
                before = len(faults_of(json.loads(page.value(LOOK))))
                page.value(breakage)
                if len(faults_of(json.loads(page.value(LOOK)))) <= before:
                    found.append("a broken figure was not noticed: " + breakage)
    for what in found:
        print("FAIL", what)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3] if sys.argv[2:3] == ["--keep"] else None))
