#!/bin/sh
# SPDX-License-Identifier: MIT
# configure.sh ROOT CC: what CMake says when packages are missing, and the library inside another project.
set -eu
root=$1
export CC="$2"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "$1" >&2
    cat "$tmp/log" >&2
    exit 1
}

# says WORDS: the last configuration said so.
says() {
    tr -s ' \n' ' ' <"$tmp/log" | grep -qF "$1" || fail "CMake does not say '$1':"
}

# pkg-config finds only these here.
mkdir "$tmp/none" "$tmp/jansson"
jansson=$(pkg-config --variable=pcfiledir jansson 2>/dev/null || true)
[ -n "$jansson" ] || { echo "skipped: no pkg-config, or one that does not say where jansson.pc is" >&2; exit 77; }
cp "$jansson/jansson.pc" "$(pkg-config --variable=pcfiledir libpcre2-8)/libpcre2-8.pc" \
    "$(pkg-config --variable=pcfiledir libutf8proc)/libutf8proc.pc" "$tmp/jansson"

PKG_CONFIG_LIBDIR=$tmp/none cmake -S "$root" -B "$tmp/a" >"$tmp/log" 2>&1 && fail "configured without Jansson:"
says "Jansson (Debian: libjansson-dev) PCRE2 10.40 (Debian: libpcre2-dev) utf8proc (Debian: libutf8proc-dev)"
PKG_CONFIG_LIBDIR=$tmp/jansson cmake -S "$root" -B "$tmp/a" >"$tmp/log" 2>&1 || fail "not configured without Check:"
says "the test suite will not be built: Check (Debian: check) is not found; with -DATTNCL_BUILD_TESTS=ON that is an error"
PKG_CONFIG_LIBDIR=$tmp/jansson cmake -S "$root" -B "$tmp/a" -DATTNCL_BUILD_TESTS=ON >"$tmp/log" 2>&1 &&
    fail "configured with -DATTNCL_BUILD_TESTS=ON and without Check:"
says "the test suite cannot be built: Check (Debian: check) is not found"

# Another project's part: the library, under the name it has when installed, and nothing else.
mkdir "$tmp/outer"
echo 'int main(void) { return 0; }' >"$tmp/outer/main.c"
for way in "add_subdirectory($root attncl)" \
    "include(FetchContent) FetchContent_Declare(attncl SOURCE_DIR $root) FetchContent_MakeAvailable(attncl)"; do
    # One command on a line.
    echo "cmake_minimum_required(VERSION 3.18) project(outer C) $way
        add_executable(outer main.c) target_link_libraries(outer attncl::attncl attncl::attncl_static)
        install(TARGETS outer)
        foreach(name attncl_tool attncl-bench attncl_test_support)
            if(TARGET \${name})
                message(FATAL_ERROR \"\${name} is built\")
            endif()
        endforeach()
        if(CMAKE_BUILD_TYPE)
            message(FATAL_ERROR \"the build type is changed\")
        endif()" | sed 's/) \([a-zA-Z]\)/)\n\1/g' >"$tmp/outer/CMakeLists.txt"
    rm -rf "$tmp/b"
    cmake -S "$tmp/outer" -B "$tmp/b" >"$tmp/log" 2>&1 || fail "no part of another project by $way:"
    cmake --build "$tmp/b" --target help >"$tmp/log" 2>&1
    grep -q 'attncl-tests' "$tmp/log" && fail "tests are part of another project:"
    ls "$tmp"/b/attncl*/cmake_install.cmake "$tmp"/b/_deps/*/cmake_install.cmake 2>/dev/null | xargs grep -l libattncl >"$tmp/log" &&
        fail "another project would install the library:"
done
exit 0
