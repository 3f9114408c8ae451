#!/bin/sh
# SPDX-License-Identifier: MIT
# small.sh BENCH SOURCE: every case of the small sizes is right on the device, the report has its documented form, and bench/report
# takes it.
set -u

. "$(dirname "$0")/setup.sh"
run --no-cold --budget 1 --runs 1 --rounds 2 --label "a machine" --json "$directory/report.json"
[ "$status" = 0 ] || exit "$status"
command -v python3 >/dev/null || { echo "skipped the report's form: python3 is not installed"; exit 0; }
python3 "$source/tests/bench/schema.py" "$directory/report.json" || exit
python3 "$source/bench/report" "$directory/report.json" --csv "$directory/report.csv" || exit
python3 "$source/bench/report" --compare "$directory/report.json" "$directory/report.json" >"$directory/compared" || exit
for case in "softmax 64x256" "lm transformer"; do
    grep -q "$case" "$directory/report.csv" && grep -q "$case" "$directory/compared" || fail "bench/report: nothing of $case"
done
command -v gnuplot >/dev/null || { echo "skipped the report's page: gnuplot is not installed"; exit 0; }
python3 "$source/bench/report" "$directory/report.json" -o "$directory/report.html" && grep -q "<svg" "$directory/report.html"
