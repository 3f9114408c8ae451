#!/bin/sh
# SPDX-License-Identifier: MIT
# cases.sh ROOT TOOL: runs the acceptance cases, where there are any: a folder with manifest.json and run_cases.py, named
# by ATTNCL_CASES_DIR or lying at ../shared/cases beside the checkout.  Architectures and layers of later versions may
# be refused, by name; every other case must pass.  Skipped (77) without cases, without numpy or without a device.
set -u
root=$1 tool=$2
cases=${ATTNCL_CASES_DIR:-$root/../shared/cases}

[ -f "$cases/run_cases.py" ] || { echo "skipped: no cases in '$cases'" >&2; exit 77; }
python3 -c 'import numpy' 2>/dev/null || { echo "skipped: no Python with numpy" >&2; exit 77; }
"$tool" devices >/dev/null || exit 77
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

python3 "$cases/run_cases.py" --cases "$cases" --cmd "$tool run {model} {input} {output}" --kind forward --kind error \
    >"$tmp/all" 2>&1
grep -q 'cases pass$' "$tmp/all" || { cat "$tmp/all"; exit 1; }
grep -E '(is not supported by this version|has no gradient)$' "$tmp/all" | sed 's/^FAIL \([^ ]*\).*/\1/' >"$tmp/later"
grep '^FAIL' "$tmp/all" | grep -vE '(is not supported by this version|has no gradient)$' && exit 1
echo "$(tail -n 1 "$tmp/all"); $(wc -l <"$tmp/later") are for later versions:"
tr '\n' ' ' <"$tmp/later"
! grep -q '^0 of' "$tmp/all"
