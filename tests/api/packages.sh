#!/bin/sh
# SPDX-License-Identifier: MIT
# packages.sh ROOT BUILD CC: makes the Debian packages of BUILD, and installs, uses and removes them in a root directory of their
# own, where dpkg's database is a copy of this machine's: a missing dependency is refused.
set -eu
root=$1 build=$2 cc=$3
PATH=$PATH:/usr/sbin:/sbin # of chroot, also where root took the PATH of a user

for program in dpkg dpkg-deb dpkg-shlibdeps file cpack; do
    command -v $program >/dev/null || { echo "skipped: no $program (Debian: dpkg-dev, file, cmake)" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] && chroot / true 2>/dev/null || { echo "skipped: dpkg installs in another root directory as root only, by chroot" >&2; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$root/tests/tools/files.sh"

fail() {
    echo "$1" >&2
    cat "$tmp/log" >&2
    exit 1
}

# Ninja, which needs not be there: unlike make it does not build everything first.
cpack --config "$build/CPackConfig.cmake" -B "$tmp/made" -D CPACK_CMAKE_GENERATOR=Ninja -D CPACK_DEBIAN_COMPRESSION_TYPE=none \
    >"$tmp/log" 2>&1 || fail "cpack failed:"
mkdir "$tmp/debs"
cp "$tmp"/made/*.deb "$tmp/debs"
for package in libattncl0.1 libattncl-dev attncl; do
    ls "$tmp/debs/${package}_"*.deb >"$tmp/log" 2>&1 || fail "no package $package:"
    dpkg-deb --field "$tmp/debs/${package}_"*.deb >"$tmp/$package"
    dpkg-deb --contents "$tmp/debs/${package}_"*.deb | grep -q " ./usr/share/doc/$package/copyright$" || fail "$package has no copyright"
done
# What each needs, by name.
for row in "libattncl0.1:libc6 libclblast1 ocl-icd-libopencl1 libjansson4 libpcre2-8-0 libssl3 libutf8proc2" "libattncl-dev:libattncl0.1" "attncl:libattncl0.1 libjansson4"; do
    for needs in ${row#*:}; do
        grep '^Depends:' "$tmp/${row%%:*}" | grep -qF "$needs" || { cp "$tmp/${row%%:*}" "$tmp/log"; fail "${row%%:*} does not depend on $needs:"; }
    done
done

# The archive, unpacked anywhere: attncl report runs every phase with the archive's own files and libraries.
cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$tmp/archive" -D CPACK_CMAKE_GENERATOR=Ninja >"$tmp/log" 2>&1 || fail "cpack -G TGZ failed:"
mkdir "$tmp/unpacked"
tar xzf "$tmp"/archive/*.tar.gz -C "$tmp/unpacked" --strip-components=1
ldd "$tmp/unpacked/bin/attncl" >"$tmp/log"
[ "$(grep -cE "(attncl|clblast|jansson|pcre2-8|utf8proc|crypto)\.so.* => $tmp/unpacked" "$tmp/log")" = 6 ] || fail "libraries that are not the archive's:"
if "$tmp/unpacked/bin/attncl" devices >"$tmp/log" 2>&1; then
    "$tmp/unpacked/bin/attncl" report "$tmp/report.json" --fast --limit 1 >"$tmp/log" 2>&1 || fail "the archive's attncl report fails:"
    grep -q '"not run"' "$tmp/report.json" && { cp "$tmp/report.json" "$tmp/log"; fail "the archive lacks a phase's files:"; }
fi

fresh=$tmp/root
mkdir -p "$fresh/etc" "$fresh/var/lib/dpkg/info" "$fresh/var/lib/dpkg/updates" "$fresh/var/lib/dpkg/triggers" "$fresh/var/log"
# A shell and ldconfig for the packages' scripts, and the libraries that the dependencies stand for.
libraries=$(ldd /bin/sh "$build/tools/attncl" | sed -n 's:.*\(=>\|\t\) *\(/[^ ]*\) (.*:\2:p' | grep -v libattncl | sort -u)
# shellcheck disable=SC2086
cp -L --parents /bin/sh /sbin/ldconfig $libraries "$fresh"
# Without this machine's own libattncl, if it has one.
awk -v RS= -v ORS='\n\n' '!/^Package: (lib)?attncl/' /var/lib/dpkg/status >"$fresh/var/lib/dpkg/status"
dpkg_here() {
    dpkg --root="$fresh" --log="$tmp/dpkg.log" "$@" >"$tmp/log" 2>&1
}

dpkg_here --install "$tmp/debs"/attncl_*.deb && fail "attncl installs without libattncl0.1:"
dpkg_here --purge attncl || fail "attncl, not configured, cannot be purged:"
dpkg_here --install "$tmp/debs"/*.deb || fail "the packages do not install:"

# The command line, then a program built from what is there.
softmax_model "$tmp/model.safetensors"
softmax_input "$tmp/input.safetensors"
chroot "$fresh" /usr/bin/attncl --version >"$tmp/log" 2>&1 || fail "the installed command does not start:"
[ "$(cat "$tmp/log")" = "attncl $(sed -n 's/^Version: //p' "$tmp/attncl")" ] || fail "another version is installed:"
PKG_CONFIG_PATH=$(dirname "$(find "$fresh" -name attncl.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
$cc -std=c11 "$root/examples/run_model.c" -o "$tmp/run_model" $(pkg-config --cflags --libs attncl) >"$tmp/log" 2>&1 ||
    fail "no program builds against the installed packages:"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir attncl)
export LD_LIBRARY_PATH
if "$fresh/usr/bin/attncl" devices >"$tmp/log" 2>&1; then
    "$fresh/usr/bin/attncl" run "$tmp/model.safetensors" "$tmp/input.safetensors" "$tmp/output.safetensors" >"$tmp/log" 2>&1 ||
        fail "the installed command does not run a model:"
    "$tmp/run_model" "$tmp/model.safetensors" "$tmp/input.safetensors" >"$tmp/log" 2>&1 || fail "the program does not run:"
fi

dpkg_here --remove libattncl0.1 && fail "libattncl0.1 is removed from under the others:"
# shellcheck disable=SC2046
dpkg_here --purge $(for deb in "$tmp/debs"/*.deb; do dpkg-deb --field "$deb" Package; done) || fail "the packages cannot be purged:"
find "$fresh" -name '*attncl*' -not -path '*/var/*' >"$tmp/log"
[ ! -s "$tmp/log" ] || fail "left after purging:"
