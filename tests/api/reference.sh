#!/bin/sh
# SPDX-License-Identifier: MIT
# reference.sh ROOT: Doxygen makes the reference of the public headers without a warning.
set -eu
root=$1
command -v doxygen >/dev/null || { echo "skipped: no doxygen (Debian: doxygen)" >&2; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export VERSION=test OUTPUT="$tmp/out"

ROOT=$root doxygen "$root/docs/Doxyfile"
grep -q attncl_layer_norm "$OUTPUT/html/ops_8h.html" || { echo "attncl_layer_norm() is not in the reference" >&2; exit 1; }
