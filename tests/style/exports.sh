#!/bin/sh
# SPDX-License-Identifier: MIT
# exports.sh ROOT LIBRARY: the shared library exports the functions that the headers declare and nothing else.
set -u
root=$1 library=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Declarations run from ATTNCL_API to the first '(', over line ends.
functions() {
    cat "$1"/attncl/*.h | grep -v '^#' | tr '\n' ' ' | grep -oE 'ATTNCL_API [^(;]*\(' |
        sed -e 's/ *($//' -e 's/.*[ *]//' | LC_ALL=C sort -u
}

nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort -u >"$tmp/exported"
functions "$root/include" >"$tmp/declared"

diff -u --label declared --label exported "$tmp/declared" "$tmp/exported" || {
    echo "the functions that are exported differ from those of the headers" >&2
    exit 1
}
