#!/bin/sh
# SPDX-License-Identifier: MIT
# words.sh ROOT: what has one place in the library is called there only, and nothing prints or exits.
set -u
root=$1
status=0

# The code alone: comments and texts do not count.
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
(cd "$root/lib" && find . -name '*.[ch]') | while read -r file; do
    mkdir -p "$tmp/$(dirname "$file")"
    sed -e 's/"\([^"\\]\|\\.\)*"/""/g' -e 's://.*::' "$root/lib/$file" >"$tmp/$file"
done

# refuse WHAT PATTERN [FILE]: the pattern appears in no code of lib/ but in FILE.
refuse() {
    if (cd "$tmp" && grep -rnE "$2" . | grep -v "^\./${3:-none}:") >&2; then
        echo "lib: $1" >&2
        status=1
    fi
}

refuse "prints" '\b(printf|puts|putchar|perror)\(|\bstd(out|err)\b'
refuse "ends the process" '\b(abort|exit|_Exit|quick_exit)\('
refuse "heap outside the allocator" '\b(malloc|calloc|realloc|free|strdup|strndup|asprintf)\(' base/alloc.c
refuse "environment outside env.c" '\b(getenv|secure_getenv|setenv|putenv)\(|\benviron\b' base/env.c
refuse "cleanup by another label than done" '\bgoto +([^d]|d[^o]|do[^n]|don[^e]|done[^;])'

calls=$(cd "$root" && grep -rnE --include='*.c' '\bclSetKernelArg *\(' lib | wc -l)
if [ "$calls" -gt 1 ]; then
    echo "kernel arguments are set in $calls places" >&2
    status=1
fi
# Errors are compared by two functions, which keep NaN and elements that no kernel wrote (selftest: outcome_compare()).
for directory in lib tools bench examples tests; do
    [ -d "$root/$directory" ] || continue
    (cd "$root" && grep -rnE --include='*.[ch]' \
        'fmaxf?\(\*?(worst|error|off|difference|apart|ratio)\b|\b(error|off|difference|apart|ratio) *(<=|>) *\*?worst(_ret)?\b([^.]|$)|\bworst *(<=|>) ' \
        "$directory") | grep -v '^tests/support/compare.c:\|^lib/base/worst_error.c:' >&2 && {
        echo "$directory/: an error is compared by hand" >&2
        status=1
    }
done
for directory in lib cl include tools bench examples tests; do
    [ -d "$root/$directory" ] || continue
    # The words are written so that this line does not find itself.
    grep -rnE '#if 0|\b(TO''DO|FIX''ME|XX''X)\b' "$root/$directory" --include='*.[ch]' --include='*.cl' --include='*.clh' >&2 && {
        echo "left over in $directory/" >&2
        status=1
    }
done
exit $status
