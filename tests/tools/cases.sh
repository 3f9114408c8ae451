#!/bin/sh
# SPDX-License-Identifier: MIT
# cases.sh ROOT TOOL: runs the acceptance cases, where there are any: a directory with manifest.json and run_cases.py, named
# by ATTNCL_CASES_DIR or lying at ../shared/cases beside the checkout.  Every one must pass: results, gradients, refusals.
# ATTNCL_CASES_KINDS names fewer kinds.  Skipped (77) without cases, without numpy or without a device.
set -u
root=$1 tool=$2
cases=${ATTNCL_CASES_DIR:-$root/../shared/cases}

[ -f "$cases/run_cases.py" ] || { echo "skipped: no cases in '$cases'" >&2; exit 77; }
python3 -c 'import numpy' 2>/dev/null || { echo "skipped: no Python with numpy" >&2; exit 77; }
"$tool" devices >/dev/null || exit 77
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

kinds=""
for kind in ${ATTNCL_CASES_KINDS:-forward grad error}; do
    kinds="$kinds --kind $kind"
done
# shellcheck disable=SC2086
python3 "$cases/run_cases.py" --cases "$cases" --cmd "$tool run {model} {input} {output}" $kinds >"$tmp/all" 2>&1
result=$?
if [ "$result" != 0 ] || grep -q '^0 of' "$tmp/all"; then
    cat "$tmp/all"
    exit 1
fi
tail -n 1 "$tmp/all"
