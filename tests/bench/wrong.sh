#!/bin/sh
# SPDX-License-Identifier: MIT
# wrong.sh BENCH SOURCE: a kernel that is off by a little is reported, not timed, and fails the run.
set -eu

bench=$1
source=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp -R "$source/cl" "$directory/cl"
sed 's|1\.0f / sum|1.0f / (1.0001f * sum)|' "$source/cl/norm/softmax.cl" >"$directory/cl/norm/softmax.cl"
if cmp -s "$source/cl/norm/softmax.cl" "$directory/cl/norm/softmax.cl"; then
    echo "the mistake could not be put into softmax.cl: its text has changed"
    exit 1
fi

status=0
ATTNCL_CACHE=off ATTNCL_CL_DIR="$directory/cl" "$bench" --quick --no-cold --no-roofline --budget 0.1 --only "softmax 64" \
    --json "$directory/report.json" ${ATTNCL_DEVICE:+--device "$ATTNCL_DEVICE"} >"$directory/table" || status=$?
cat "$directory/table"
[ "$status" != 3 ] || exit 77
[ "$status" = 1 ] || { echo "exit status $status, expected 1"; exit 1; }
grep -q '^ *[0-9]*:[0-9]* .*WRONG: error \(9\.9[0-9]*e-05\|1\.0[0-9]*e-04\)' "$directory/table" ||
    { echo "the table does not say so"; exit 1; }
grep -q '"outcome": "wrong"' "$directory/report.json" || { echo "the report does not say so"; exit 1; }
! grep -q min_s "$directory/report.json" || { echo "a wrong result was timed"; exit 1; }
