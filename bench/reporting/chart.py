# SPDX-License-Identifier: MIT
"""Charts as gnuplot commands.

gnuplot never sees a text of a report: each becomes a token, which svg.py replaces in what gnuplot has drawn.
Colours are names in the same way (svg.py): the page gives them values for light and dark.
"""
import math
from dataclasses import dataclass, field

SHAPES = (7, 5, 9, 13, 11, 15, 6, 4)  # gnuplot's; their look in a legend:
SIGNS = "●■▲◆▼⬟○□"
COLOURS = len(SHAPES)
WIDE, NARROW, PANEL = 880, 360, 410
CHARACTER = 6.1  # width of one at 11 px, about


@dataclass
class Series:
    """Points (x, y, what to say of it) of one colour and shape, or a line through them."""
    name: str
    colour: int
    points: list
    line: bool = False
    dashed: bool = False


@dataclass
class Chart:
    """With ROWS, points lie in rows and y is a row's number; otherwise y has an axis of its own."""
    id: str
    title: str
    about: str
    x_label: str
    series: list
    x_tics: callable
    rows: list = None
    y_label: str = ""
    y_tics: callable = None
    x_log: bool = True
    mark: float = None     # a vertical line here
    mark_label: str = ""
    stems: list = field(default_factory=list)  # (x from, x to, y)
    roof: list = field(default_factory=list)   # corners of a line above all points
    roofs: list = field(default_factory=list)  # and of fainter ones
    widths: tuple = (WIDE, NARROW)

    def is_empty(self):
        return not any(s.points for s in self.series)

    def legend(self):
        return [s for s in self.series if s.points] if len(self.series) > 1 else []


class Script:
    """The commands of one picture, and the texts its tokens stand for."""

    def __init__(self, chart, width, with_key):
        self.chart, self.width, self.with_key = chart, width, with_key
        self.narrow = width < 600
        self.texts = []
        self.lines = []

    def text(self, words):
        self.texts.append(words)
        return f"'@{len(self.texts) - 1}@'"

    def fitted(self, words, pixels):
        """WORDS, shortened where they are wider than PIXELS."""
        n = max(4, int(pixels / CHARACTER))
        return self.text(words if len(words) <= n else words[:n - 1] + "…")

    def tics(self, axis, values):
        named = ", ".join(f"{self.text(label)} {value:.9g}" for value, label in values)
        self.lines.append(f"set {axis}tics ({named}) textcolor rgb 'muted' nomirror out scale 0.4 noenhanced")

    def table(self, name, points):
        self.lines.append(f"${name} << END")
        self.lines += [" ".join(f"{v:.9g}" for v in point) for point in points]
        self.lines.append("END")

    def x_range(self):
        c = self.chart
        values = [p[0] for s in c.series for p in s.points] + [p[0] for p in c.roof]
        values += [c.mark] if c.mark is not None else []
        if not c.x_log:
            return 0, 1.05 * max(values)
        return bounds(values)

    def height(self):
        rows = self.chart.rows
        key = 18 * len(self.chart.legend()) if self.with_key else 0
        if rows is None:
            return (300 if self.narrow else 420) + key
        return 62 + (36 if self.narrow else 19) * len(rows) + key

    def labels_of_rows(self):
        c = self.chart
        if not self.narrow:
            self.tics("y", [])
            self.lines.append("set ytics scale 0")
            longest = max(len(r) for r in c.rows)
            left = min(0.36 * self.width, 14 + CHARACTER * longest)
            names = ", ".join(f"{self.fitted(r, left - 12)} {i}" for i, r in enumerate(c.rows))
            self.lines.append(f"set ytics ({names}) textcolor rgb 'ink' scale 0 noenhanced")
            return left
        self.lines.append("unset ytics")
        for i, row in enumerate(c.rows):
            self.lines.append(f"set label {self.fitted(row, self.width - 20)} at graph 0, first {i - 0.5:.9g} "
                              "left offset character 0.3,0 textcolor rgb 'ink' noenhanced front")
        return 10

    def axes(self):
        c, (low, high), height = self.chart, self.x_range(), self.height()
        self.lines.append("set logscale x" if c.x_log else "unset logscale x")
        self.lines.append(f"set xrange [{low:.9g}:{high:.9g}]")
        tics = c.x_tics(low, high)
        if self.narrow and len(tics) > 7:
            tics = tics[::math.ceil(len(tics) / 7)]
        self.tics("x", tics)
        if c.rows is not None:
            left = self.labels_of_rows()
            self.lines.append(f"set yrange [{len(c.rows) - 0.4:.9g}:{-0.8 if self.narrow else -0.7}]")
        else:
            left = 62
            values = [p[1] for s in c.series for p in s.points] + [p[1] for p in c.roof]
            low, high = bounds(values)
            self.lines += ["set logscale y", f"set yrange [{low:.9g}:{high:.9g}]"]
            self.tics("y", c.y_tics(low, high))
            self.lines.append(f"set label {self.text(c.y_label)} at screen {4 / self.width:.6f}, graph 1 left "
                              "offset 0,0.9 textcolor rgb 'muted' noenhanced")
        key = 18 * len(c.legend()) if self.with_key else 0
        top = (22 if c.mark_label or c.y_label else 10) + key
        self.lines += [
            f"set xlabel {self.text(c.x_label)} textcolor rgb 'muted' noenhanced offset 0,0.4",
            f"set lmargin at screen {left / self.width:.6f}",
            f"set rmargin at screen {1 - 16 / self.width:.6f}",
            f"set bmargin at screen {44 / height:.6f}",
            f"set tmargin at screen {1 - top / height:.6f}"]

    def marks(self):
        c = self.chart
        if c.mark is not None:
            self.lines.append(f"set arrow from {c.mark:.9g},graph 0 to {c.mark:.9g},graph 1 nohead "
                              "linecolor rgb 'ink' linewidth 1.4")
        if c.mark_label:
            self.lines.append(f"set label {self.text(c.mark_label)} at {c.mark:.9g},graph 1 center "
                              "offset 0,0.6 textcolor rgb 'ink' noenhanced")

    def plots(self):
        c, parts = self.chart, []
        if c.stems:
            self.table("stems", [(a, y, b - a) for a, b, y in c.stems])
            parts.append("$stems using 1:2:3:(0) with vectors nohead linecolor rgb 'stem' linewidth 3 notitle")
        for i, corners in enumerate(c.roofs):
            self.table(f"roof{i}", corners)
            parts.append(f"$roof{i} with lines linecolor rgb 'stem' linewidth 1.5 notitle")
        if c.roof:
            self.table("roof", c.roof)
            parts.append("$roof with lines linecolor rgb 'ink' linewidth 2 notitle")
        for i, s in enumerate(c.series):
            if not s.points:
                continue
            self.table(f"s{i}", [p[:2] for p in s.points])
            if s.line:
                dash = " dashtype 2" if s.dashed else ""
                parts.append(f"$s{i} with lines linecolor rgb 's{s.colour + 1}' linewidth 2{dash} notitle")
            parts.append(f"$s{i} with points pointtype {SHAPES[s.colour]} pointsize 0.75 "
                         f"linecolor rgb 's{s.colour + 1}' {self.key_of(s)}")
        self.lines.append("plot " + ", \\\n  ".join(parts))

    def key_of(self, series):
        return f"title {self.text(series.name)} noenhanced" if self.with_key and self.chart.legend() else "notitle"

    def write(self, path):
        """The commands; PATH is where gnuplot is to leave the picture, a name of ours."""
        self.lines = [
            "reset",
            f"set terminal svg size {self.width},{self.height()} fixed font 'sans-serif,11'",
            f"set output '{path}'", "set encoding utf8",
            "set border 1 linecolor rgb 'axis'" if self.chart.rows is not None
            else "set border 3 linecolor rgb 'axis'",
            "set grid x y linecolor rgb 'grid' linetype 1 linewidth 1",
            "unset key"]
        if self.with_key:
            self.lines.append("set key at screen 0.01, screen 1 left top Left reverse vertical maxcols 1 "
                              "samplen 1 textcolor rgb 'ink' noenhanced")
        self.axes()
        self.marks()
        self.plots()
        return "\n".join(self.lines) + "\n"


def bounds(values):
    low, high = min(values), max(values)
    margin = max(1.15, (high / low) ** 0.04)
    return low / margin, high * margin
