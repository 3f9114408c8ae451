#!/bin/sh
# SPDX-License-Identifier: MIT
# format.sh ROOT: the C and OpenCL C files are as clang-format 14 leaves them.  Skipped (77) without that version.
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
find include lib cl tools tests bench examples -name '*.[ch]' -o -name '*.cl' -o -name '*.clh' |
    xargs -n 40 -P "$(nproc 2>/dev/null || echo 2)" "$tool" --dry-run --Werror
