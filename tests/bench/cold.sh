#!/bin/sh
# SPDX-License-Identifier: MIT
# cold.sh BENCH SOURCE: compiling takes longer than loading what was compiled, also where the usual caches know the
# program, and leaves no files.
set -eu

. "$(dirname "$0")/setup.sh"
mkdir "$directory/tmp"
export TMPDIR="$directory/tmp"

measure() {
    run --no-roofline --budget 0.1 --runs 1 --rounds 1 --only "softmax 64x256" --json "$directory/report.json" >/dev/null
    [ "$status" = 0 ] || fail "exit status $status"
}

measure
measure
sed -n 's/^ *"\(cold_s\|cached_s\)": \([0-9.e-]*\),\{0,1\}$/\1 \2/p' "$directory/report.json" | awk '
    { s[$1] = $2 }
    END { print "cold " s["cold_s"] " s, cached " s["cached_s"] " s"; exit !(s["cached_s"] > 0 && s["cold_s"] > s["cached_s"]) }'
[ -z "$(ls "$directory/tmp")" ] || fail "left behind: $(ls "$directory/tmp")"
