#!/bin/sh
# SPDX-License-Identifier: MIT
# reference.sh ROOT: Doxygen makes the reference of the public headers without a warning, and would warn.
set -eu
root=$1
command -v doxygen >/dev/null || { echo "skipped: no doxygen (Debian: doxygen)" >&2; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export VERSION=test OUTPUT="$tmp/out"

ROOT=$root doxygen "$root/docs/Doxyfile"
grep -q attncl_layer_norm "$OUTPUT/html/ops_8h.html" || { echo "attncl_layer_norm() is not in the reference" >&2; exit 1; }

mkdir -p "$tmp/bad/include/attncl"
printf '/** @file attncl/bad.h */\n/** Is wrong.\n * @param absent  is none */\nint f(int x);\n' >"$tmp/bad/include/attncl/bad.h"
if ROOT=$tmp/bad doxygen "$root/docs/Doxyfile" >"$tmp/log" 2>&1; then
    echo "a parameter that is not there makes no warning" >&2
    exit 1
fi
