#!/bin/sh
# SPDX-License-Identifier: MIT
# format.sh ROOT: the C files are as clang-format 14 leaves them.  Skipped (77) without that version.
set -u
cd "$1" || exit 1
tool=""
for name in clang-format-14 clang-format; do
    if command -v $name >/dev/null 2>&1 && $name --version | grep -q 'version 14\.'; then
        tool=$name
        break
    fi
done
[ -n "$tool" ] || { echo "skipped: clang-format 14 is not installed" >&2; exit 77; }
find include lib tools tests bench examples -name '*.[ch]' -not -path 'tests/style/bad/*' \
    -exec "$tool" --dry-run --Werror {} + || exit 1
# Kernels too; the tool knows them as C.
for file in $(find cl bench -name '*.cl' -o -name '*.clh'); do
    "$tool" --assume-filename=kernel.c --dry-run --Werror <"$file" || { echo "$file is not formatted" >&2; exit 1; }
done
