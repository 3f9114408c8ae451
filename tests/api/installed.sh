#!/bin/sh
# SPDX-License-Identifier: MIT
# installed.sh ROOT BUILD CC CXX: installs BUILD, then builds the examples against the copy, by CMake and by pkg-config,
# with the shared and the static library, as C11 and as C++17, and runs them.
set -eu
root=$1 build=$2 cc=$3 cxx=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$root/tests/tools/files.sh"

say() {
    echo "$*" >&2
}

# Moved after installing: nothing in the copy may know where it was made.
cmake --install "$build" --prefix "$tmp/first" >"$tmp/log" || { cat "$tmp/log"; exit 1; }
prefix=$tmp/prefix
mv "$tmp/first" "$prefix"
if grep -rIl -e "$tmp/first" -e "$root" "$prefix" >&2; then
    say "installed files name the directory they were built or installed in"
    exit 1
fi
for file in doc/attncl/LICENSE doc/attncl/README.md doc/attncl/docs/model-files.md attncl/attncl.supp man/man1/attncl.1.gz \
    bash-completion/completions/attncl zsh/*/_attncl fish/vendor_completions.d/attncl.fish; do
    [ -s "$(echo "$prefix/share/"$file)" ] || { say "share/$file is not installed"; exit 1; }
done
softmax_model "$tmp/model.safetensors"
softmax_input "$tmp/input.safetensors"

programs="softmax one_layer attention gmlp feedback recurrent train ranks run_model interop decode batch state_types"
have_device=1
"$prefix/bin/attncl" devices >"$tmp/devices" 2>&1 || have_device=0

# run FORM DIRECTORY: the examples succeed and print a line.
run() {
    [ $have_device = 1 ] || return 0
    for program in $programs; do
        arguments=
        [ $program != run_model ] || arguments="$tmp/model.safetensors $tmp/input.safetensors"
        # shellcheck disable=SC2086
        if ! "$2"/$program $arguments >"$tmp/out" 2>"$tmp/err" || [ ! -s "$tmp/out" ] || [ -s "$tmp/err" ]; then
            say "$1: $program failed"
            cat "$tmp/out" "$tmp/err" >&2
            exit 1
        fi
    done
    say "$1: ok"
}

# Of the eight ways to find, link and compile, four: every pair of them is among these.
for both in OFF ON; do
    form="CMake, static $both, C++ $both"
    dir=$tmp/cmake-$both
    { cmake -S "$root/examples" -B "$dir" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_CXX_COMPILER="$cxx" -DATTNCL_EXAMPLES_STATIC=$both -DATTNCL_EXAMPLES_CXX=$both &&
        cmake --build "$dir"; } >"$tmp/log" 2>&1 || { say "$form: does not build"; cat "$tmp/log" >&2; exit 1; }
    run "$form" "$dir"
done

pc=$(find "$prefix" -name attncl.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir attncl)
for static in no yes; do
    compile="$cxx -std=c++17 -x c++"
    libs=$(pkg-config --libs attncl)
    if [ $static = yes ]; then
        compile="$cc -std=c11 -x c"
        libs=$(pkg-config --static --libs attncl | sed s/-lattncl/-l:libattncl.a/)
    fi
    form="pkg-config, static $static, $compile"
    dir=$tmp/pc-$static
    mkdir "$dir"
    for example in $programs; do
        # shellcheck disable=SC2046,SC2086
        $compile -Wall -Wextra -pedantic -Werror $(pkg-config --cflags attncl) "$root/examples/$example.c" -x none \
            -o "$dir/$example" $libs -lm || { say "$form: $example does not build"; exit 1; }
    done
    LD_LIBRARY_PATH=$libdir run "$form" "$dir"
done

if [ $have_device = 0 ]; then
    say "skipped: every form builds, no device to run them: $(cat "$tmp/devices")"
    exit 77
fi
