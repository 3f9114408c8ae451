#!/bin/sh
# SPDX-License-Identifier: MIT
# cold.sh BENCH SOURCE: compiling takes longer than loading what was compiled, also where the usual caches know the
# program, and leaves no files.
set -eu

bench=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/tmp"

measure() {
    status=0
    TMPDIR="$directory/tmp" "$bench" --quick --no-roofline --budget 0.1 --runs 1 --rounds 1 --only "softmax 64x256" \
        --json "$directory/report.json" ${ATTNCL_DEVICE:+--device "$ATTNCL_DEVICE"} >/dev/null || status=$?
    [ "$status" != 3 ] || exit 77
    [ "$status" = 0 ] || { echo "exit status $status"; exit 1; }
}

measure
measure
sed -n 's/^ *"\(cold_s\|cached_s\)": \([0-9.e-]*\),\{0,1\}$/\1 \2/p' "$directory/report.json" | awk '
    { s[$1] = $2 }
    END { print "cold " s["cold_s"] " s, cached " s["cached_s"] " s"; exit !(s["cached_s"] > 0 && s["cold_s"] > s["cached_s"]) }'
[ -z "$(ls "$directory/tmp")" ] || { echo "left behind: $(ls "$directory/tmp")"; exit 1; }
