#!/bin/sh
# SPDX-License-Identifier: MIT
# headers.sh ROOT CC CXX: each public header compiles alone, as C11 and as C++17.
set -u
root=$1 cc=$2 cxx=$3
status=0
for header in "$root"/include/attncl/*.h; do
    name=$(basename "$header")
    for form in "$cc -std=c11 -x c" "$cxx -std=c++17 -x c++"; do
        # shellcheck disable=SC2086
        printf '#include <attncl/%s>\nextern int not_empty;\n' "$name" | ${form%% -x*} -x ${form##*-x } -fsyntax-only -pedantic -Wall -Wextra -Werror \
            -I"$root/include" - || {
            echo "attncl/$name does not compile alone: $form" >&2
            status=1
        }
    done
done
exit $status
