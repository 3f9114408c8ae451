#!/bin/sh
# SPDX-License-Identifier: MIT
# wrong.sh BENCH SOURCE: a kernel that is off by a little is reported, not timed, and fails the run.
set -eu

. "$(dirname "$0")/setup.sh"
cp -R "$source/cl" "$directory/cl"
sed 's|1\.0f / sum|1.0f / (1.0001f * sum)|' "$source/cl/norm/softmax.cl" >"$directory/cl/norm/softmax.cl"
if cmp -s "$source/cl/norm/softmax.cl" "$directory/cl/norm/softmax.cl"; then
    fail "the mistake could not be put into softmax.cl: its text has changed"
fi

export ATTNCL_CACHE=off ATTNCL_CL_DIR="$directory/cl"
run --no-cold --no-roofline --budget 0.1 --only "softmax 64" --json "$directory/report.json" >"$directory/table"
cat "$directory/table"
[ "$status" = 1 ] || fail "exit status $status, expected 1"
grep -q '^ *[0-9]*:[0-9]* .*WRONG: error \(9\.9[0-9]*e-05\|1\.0[0-9]*e-04\)' "$directory/table" ||
    fail "the table does not say so"
grep -q '"outcome": "wrong"' "$directory/report.json" || fail "the report does not say so"
! grep -q min_s "$directory/report.json" || fail "a wrong result was timed"
