#!/bin/sh
# SPDX-License-Identifier: MIT
# hardening.sh ROOT BUILD LIBRARY TOOL CET SHADOW_STACK: the shared library and the command line are hardened, and neither
# names the source tree or the build directory.  CET: 1 where the compiler has -fcf-protection; SHADOW_STACK: 1 where the
# linker writes its note.
set -u
root=$1 build=$2 library=$3 tool=$4 cet=$5 shadow_stack=$6
failed=0
if ! command -v readelf >/dev/null; then
    echo "skipped: no readelf" >&2
    exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

complain() {
    echo "$1" >&2
    failed=1
}

# has FILE WORDS WHAT: WORDS are among what readelf says of FILE.
has() {
    grep -q -e "$2" "$tmp/elf" || complain "${1##*/}: $3"
}

for file in "$library" "$tool"; do
    readelf -W --dynamic --program-headers --dyn-syms --notes "$file" >"$tmp/elf" 2>/dev/null
    has "$file" "GNU_RELRO" "no RELRO"
    has "$file" "BIND_NOW\|Flags:.* NOW" "symbols are not bound at the start (-z now)"
    has "$file" "GNU_STACK .* RW " "the stack is executable"
    has "$file" "__stack_chk_fail" "no stack protector"
    has "$file" "__[a-z]*_chk[@ ]" "no function of _FORTIFY_SOURCE"
    [ "$shadow_stack" = 0 ] || has "$file" "SHSTK" "no note of shadow stacks"
    for directory in "$root" "$build"; do
        if grep -aq -F "$directory" "$file"; then
            complain "${file##*/}: holds the name $directory"
        fi
    done
done
readelf -W --dynamic "$tool" | grep -q "PIE" || complain "${tool##*/}: is not position-independent"
object=$build/CMakeFiles/attncl_objects.dir/lib/base/file.c.o
if [ "$cet" = 1 ]; then
    readelf -W --notes "$object" >"$tmp/elf"
    has "$object" "IBT, SHSTK" "compiled without -fcf-protection"
fi
exit $failed
