#!/bin/sh
# SPDX-License-Identifier: MIT
# kernels.sh ROOT: every kernel file starts with its contract (Work, Memory, Numerics, its macros) and refuses to
# compile without its macros, which a table describes; entry points carry the file's name; .clh files
# have include guards; no relaxed math; arguments are int, long or float.
set -u
root=$1
status=0

complain() {
    echo "$1" >&2
    status=1
}

n=0
for file in "$root"/cl/*/*.cl; do
    [ -e "$file" ] || continue
    n=$((n + 1))
    name=$(basename "$file" .cl)
    contract=$(sed '/^ *\/\//!q' "$file")
    for word in Work Memory Numerics; do
        echo "$contract" | grep -q "^// *$word " || complain "$file: the comment on top says nothing of '$word'"
    done
    # The macro table's first column; a refusal may stand in cl/common, which the kernel includes.
    macros=$(echo "$contract" | sed -n '/^\/\/   Macro /,$p' | sed -n 's/^\/\/   \([A-Z][A-Z0-9_]*\) .*/\1/p')
    for macro in $macros; do
        grep -A1 -hE "^ *# *(ifndef +$macro\$|if .*!defined *\(?$macro\b)" "$file" "$root"/cl/*/*.clh 2>/dev/null |
            grep -q '# *error' || complain "$file: no #error for a missing $macro"
    done
    if grep -nE 'fast-relaxed-math|\b(native|half)_[a-z]+ *\(' "$file" >&2; then
        complain "$file: relaxed arithmetic"
    fi
    grep -nE '^(KERNEL|__kernel|kernel) ' "$file" | grep -vE "void +$name(_|\\()|void\$" >&2 &&
        complain "$file: entry points are named ${name}_..."
    # A kernel's parameter list, up to its brace, in one line each.
    tr '\n' ' ' <"$file" | grep -oE '(KERNEL|__kernel|kernel) [^{]*\{' |
        grep -E '\b(size_t|bool|ptrdiff_t|intptr_t|uintptr_t)\b' >&2 &&
        complain "$file: a kernel argument whose size depends on the device"
done
for file in "$root"/cl/*/*.clh; do
    [ -e "$file" ] || continue
    guard=CL_$(echo "${file#"$root"/cl/}" | tr 'a-z/.' 'A-Z__')
    grep -qx "#ifndef $guard" "$file" && grep -qx "#define $guard" "$file" || complain "$file: no include guard $guard"
done
# A macro that a file must have is described on top of it, in a table of a .clh, or in cl/README.md.
rows=$(sed -n 's/^| `\([A-Z][A-Z0-9_]*\)` |.*/\1/p' "$root/cl/README.md"; sed -n 's/^\/\/   \([A-Z][A-Z0-9_]*\) .*/\1/p' "$root"/cl/*/*.clh)
for file in "$root"/cl/*/*.cl "$root"/cl/*/*.clh; do
    [ -e "$file" ] || continue
    described=$(sed '/^ *\/\//!q' "$file" | grep -oE '[A-Z][A-Z0-9_]*'; echo "$rows")
    grep -B1 '^ *# *error' "$file" | grep -oE '(ifndef +|!defined *\(?)[A-Z][A-Z0-9_]*' | grep -oE '[A-Z][A-Z0-9_]*$' | grep -vxF "$described" >&2 &&
        complain "$file: no table has this macro"
done
# A function that takes local memory is LOCAL_INLINE (cl/common/types.clh says why).
for file in "$root"/cl/*/*.cl "$root"/cl/*/*.clh; do
    [ -e "$file" ] || continue
    tr '\n' ' ' <"$file" | grep -oE '(static|inline) [^(){};]*\([^(){};]*__local\b[^(){};]*\) *\{' >&2 &&
        complain "$file: a function that takes local memory is not LOCAL_INLINE"
done
[ "$n" -gt 0 ] || complain "no kernels below $root/cl"
exit $status
