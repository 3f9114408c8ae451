#!/bin/sh
# SPDX-License-Identifier: MIT
# Draws the time of attention and AFT by the length of one sequence, on a log-log scale.  Needs gnuplot.
#
#   length_curves.sh path/to/attncl-bench OUT.svg [REPORT.json]    REPORT.json: a kept report is drawn again
set -eu

[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
tables=$(mktemp -d)
trap 'rm -rf "$tables"' EXIT
report=${3:-$tables/report.json}
[ -s "$report" ] || "$1" --only "by length" --no-cold --json "$report"
python3 - "$report" "$tables" <<'END'
import json, re, sys
for result in json.load(open(sys.argv[1]))["devices"][0]["results"]:
    found = re.fullmatch(r"by length (.*) T=(\d+)", result["case"])
    if found and result["wall"]:
        with open(f"{sys.argv[2]}/{found[1].split()[0]}", "a") as table:
            print(found[2], 1e3 * result["wall"]["median_s"], file=table)
END
gnuplot <<END
set terminal svg size 560,380 dynamic background rgb "white" font "sans-serif,13"
set output "$2.new"
set logscale xy 2
set logscale y 10
set grid lc rgb "#dddddd" lt 1
set border 3
set tics nomirror out
set xrange [450:4700]
set key left top reverse Left samplen 2 spacing 1.1
set xlabel "tokens of the sequence (d = 512, B = 1)"
set ylabel "ms"
plot "$tables/attention" with linespoints lw 2 pt 7 ps 0.6 lc rgb "#1f6fb4" title "attention, causal, 8 heads", \\
     "$tables/AFT-full" with linespoints lw 2 pt 7 ps 0.6 lc rgb "#c2571a" title "AFT-full, causal", \\
     "$tables/AFT-local" with linespoints lw 2 pt 7 ps 0.6 lc rgb "#2a8a4a" title "AFT-local, causal, s = 64", \\
     "$tables/AFT-conv" with linespoints lw 2 pt 7 ps 0.6 lc rgb "#866a00" title "AFT-conv, s = 31", \\
     "$tables/AFT-simple" with linespoints lw 2 pt 7 ps 0.6 lc rgb "#9a3f80" title "AFT-simple"
END
mv "$2.new" "$2"
