#!/bin/sh
# SPDX-License-Identifier: MIT
# words.sh ROOT: what has one place in the library is called there only, and nothing prints or exits.
set -u
root=$1
status=0

# refuse WHAT PATTERN [FILE]: the pattern appears in no code of lib/ but in FILE.  Comments and texts do not count.
refuse() {
    what=$1 pattern=$2 home=${3:-none}
    for file in "$root"/lib/*/*.[ch]; do
        case $file in */"$home") continue ;; esac
        found=$(sed -e 's/"\([^"\\]\|\\.\)*"/""/g' -e 's://.*::' "$file" | grep -nE "$pattern") || continue
        echo "$found" | while read -r line; do echo "$file:$line  ($what)" >&2; done
        status=1
    done
}

refuse "prints" '\b(printf|puts|putchar|perror)\(|\bstd(out|err)\b'
refuse "ends the process" '\b(abort|exit|_Exit|quick_exit)\('
refuse "heap outside the allocator" '\b(malloc|calloc|realloc|free|strdup|strndup|asprintf)\(' base/alloc.c
refuse "environment outside env.c" '\b(getenv|secure_getenv|setenv|putenv)\(' base/env.c

calls=$(cat "$root"/lib/*/*.c | grep -cE '\bclSetKernelArg *\(')
if [ "$calls" -gt 1 ]; then
    grep -nE '\bclSetKernelArg *\(' "$root"/lib/*/*.c >&2
    echo "kernel arguments are set in $calls places" >&2
    status=1
fi
for folder in lib cl include tools bench examples tests; do
    [ -d "$root/$folder" ] || continue
    # The words are written so that this line does not find itself.
    grep -rnE '#if 0|\b(TO''DO|FIX''ME|XX''X)\b' "$root/$folder" --include='*.[ch]' --include='*.cl' --include='*.clh' >&2 && {
        echo "left behind in $folder/" >&2
        status=1
    }
done
exit $status
