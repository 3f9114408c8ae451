#!/bin/sh
# SPDX-License-Identifier: MIT
# reproducible.sh ROOT CC TYPE: the library and the command line, built from two copies of the sources in directories of
# different names, have one SHA-256 each.
set -eu
root=$1 cc=$2 type=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CCACHE_DISABLE=1

for name in one another/directory; do
    mkdir -p "$tmp/$name"
    (cd "$root" && cp -r CMakeLists.txt LICENSE README.md CHANGELOG.md docs cl cmake include lib tests tools "$tmp/$name")
    # -O1 takes a quarter less time; paths get into binaries at any level.
    cmake -S "$tmp/$name" -B "$tmp/$name/out" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE="$type" \
        -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" -DATTNCL_BUILD_TESTS=OFF \
        -DATTNCL_BUILD_BENCH=OFF -DATTNCL_INSTALL=OFF >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
    cmake --build "$tmp/$name/out" -j2 --target attncl attncl_tool >"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log" >&2; exit 1; }
    (cd "$tmp/$name/out" && find . -name 'libattncl.so.*.*.*' -o -name attncl -type f | sort | xargs sha256sum) \
        >"$tmp/sums-$(basename "$name")"
done
[ "$(wc -l <"$tmp/sums-one")" = 2 ] || { echo "expected a library and a command line:" >&2; cat "$tmp/sums-one" >&2; exit 1; }
diff "$tmp/sums-one" "$tmp/sums-directory" >&2 || { echo "two directories give two binaries" >&2; exit 1; }
