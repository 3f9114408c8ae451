#!/bin/sh
# SPDX-License-Identifier: MIT
# Draws what decode measures, by the position reached: prompts in one pass and token by token, and a step after them.
# Three models of one width, depth and vocabulary.  CPU time of one thread; needs gnuplot.
#
#   decode_curves.sh path/to/decode OUT.svg [TABLES]    TABLES: a directory for what decode printed; kept ones are drawn again
set -eu

[ $# -ge 2 ] || { sed -n 's/^#   /usage: /p' "$0" >&2; exit 2; }
decode=$1
out=$2
tables=${3:-$(mktemp -d)}
[ $# -ge 3 ] || trap 'rm -rf "$tables"' EXIT
export POCL_MAX_PTHREAD_COUNT=1
mkdir -p "$tables"

# measure NAME CONFIGURATION: the rows of decode's table, without its bars.
measure() {
    [ -s "$tables/$1" ] || {
        "$decode" "$2" >"$tables/$1.new"
        sed -n '/^| *[0-9]/s/|//gp' "$tables/$1.new" >"$tables/$1"
        rm "$tables/$1.new"
    }
}

measure transformer '{"layer": "transformer", "heads": 8, "d_model": 512, "d_ff": 2048, "n_layers": 6, "n_vocab": 65, "max_len": 2000}'
measure gmlp '{"layer": "gmlp", "seq_len": 2000, "d_model": 512, "d_ffn": 2048, "n_layers": 6, "n_vocab": 65}'
measure aft_local '{"layer": "aft_local", "seq_len": 2000, "local_window_size": 32, "d_model": 512, "d_ff": 2048, "n_layers": 6, "n_vocab": 65}'

gnuplot <<END
set terminal svg size 900,380 dynamic background rgb "white" font "sans-serif,13"
set output "$out.new"
set multiplot layout 1,2
set logscale xy
set grid lc rgb "#dddddd" lt 1
set border 3
set tics nomirror out
set xtics (16, 64, 256, 1024)
set xrange [14:2200]
set key left top reverse Left samplen 2 spacing 1.1
set style line 1 lw 2 pt 7 ps 0.6 lc rgb "#1f6fb4"
set style line 2 lw 2 pt 7 ps 0.6 lc rgb "#c2571a"
set style line 3 lw 2 pt 7 ps 0.6 lc rgb "#2a8a4a"
set style line 11 lw 2 dt 2 pt 6 ps 0.6 lc rgb "#1f6fb4"
set style line 12 lw 2 dt 2 pt 6 ps 0.6 lc rgb "#c2571a"
set style line 13 lw 2 dt 2 pt 6 ps 0.6 lc rgb "#2a8a4a"
set xlabel "tokens of the prompt"
set ylabel "ms of CPU time"
set yrange [*:60000]
set title "A prompt: in one pass, and token by token (dashed)"
plot "$tables/transformer" using 1:2 with linespoints ls 1 title "transformer", "" using 1:3 with linespoints ls 11 notitle, \\
     "$tables/gmlp" using 1:2 with linespoints ls 2 title "gMLP", "" using 1:3 with linespoints ls 12 notitle, \\
     "$tables/aft_local" using 1:2 with linespoints ls 3 title "AFT-local, window 32", "" using 1:3 with linespoints ls 13 notitle
set title "A step after it (d = 512, 6 layers)"
set yrange [*:*]
unset key
plot "$tables/transformer" using 1:5 with linespoints ls 1, "$tables/gmlp" using 1:5 with linespoints ls 2, \\
     "$tables/aft_local" using 1:5 with linespoints ls 3
END
mv "$out.new" "$out"
