#!/bin/sh
# SPDX-License-Identifier: MIT
# exports.sh ROOT LIBRARY: the shared library exports what tests/api/exports.txt lists, and the headers declare the same.
set -u
root=$1 library=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

LC_ALL=C sort "$root/tests/api/exports.txt" >"$tmp/list"
nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$tmp/exported"
# Declarations run from ATTNCL_API to the first '(', over line ends.
cat "$root"/include/attncl/*.h | grep -v '^#' | tr '\n' ' ' | grep -oE 'ATTNCL_API [^(;]*\(' |
    sed -e 's/ *($//' -e 's/.*[ *]//' | LC_ALL=C sort -u >"$tmp/declared"

status=0
for side in exported declared; do
    diff -u --label "exports.txt" --label "$side" "$tmp/list" "$tmp/$side" || {
        echo "the functions $side differ from tests/api/exports.txt" >&2
        status=1
    }
done
exit $status
