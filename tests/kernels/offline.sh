#!/bin/sh
# SPDX-License-Identifier: MIT
# offline.sh DIRECTORY [--report]: every specialised kernel source in DIRECTORY, as ATTNCL_DUMP_CL writes them, compiles
# without warnings for NVIDIA (nvptx64), AMD (amdgcn) and Intel and the rest (spir64).  No GPU is needed.  Sources of the
# CPU variant alone, of which no group has two work-items, are compiled for the last: no GPU gets them.  That one has no
# machine code, whose limits optimising would meet: it is left out.
# --report also prints, where libclc is installed, registers, spills and local memory of each kernel on an AMD gfx1030.
# Skipped (77) without clang or when DIRECTORY holds nothing.
set -u
directory=$1 report=${2-}

clang=""
for name in clang-14 clang-15 clang-16 clang; do
    if command -v $name >/dev/null 2>&1; then
        clang=$name
        break
    fi
done
[ -n "$clang" ] || { echo "skipped: no clang" >&2; exit 77; }
n=$(find "$directory" -name '*.cl' 2>/dev/null | wc -l)
[ "$n" -gt 0 ] || { echo "skipped: no kernel sources in '$directory'; run the op tests with ATTNCL_DUMP_CL=$directory" >&2; exit 77; }

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

targets='"spir64 -O0 -emit-llvm -c"'
if grep -qlrE '^#define LS ([2-9]|1[0-9])' "$directory"; then
    targets='"nvptx64-nvidia-nvcl -march=sm_75 -O1 -S" "amdgcn-amd-amdhsa -mcpu=gfx1030 -nogpulib -O1 -S" '$targets
fi

# compile FILE: for each, stopping at the first that refuses.
cat >"$tmp/compile" <<END
status=0
for target in $targets; do
    for file in "\$@"; do
        $clang -x cl -cl-std=CL1.2 -Wall -Wno-unused-function -Wno-pass-failed -Werror -target \$target "\$file" -o /dev/null \
            2>"$tmp/log.\$\$" || {
            echo "\$file does not compile for \$target:" >&2
            head -n 5 "$tmp/log.\$\$" >&2
            status=1
        }
    done
done
exit \$status
END
find "$directory" -name '*.cl' -print0 | xargs -0 -n 8 -P "$(nproc 2>/dev/null || echo 2)" sh "$tmp/compile"
status=$?

if [ "$report" = --report ]; then
    library=$(find /usr/lib/clc /usr/share/clc -name amdgcn--amdhsa.bc 2>/dev/null | head -n 1)
    [ -n "$library" ] || { echo "no report: libclc's amdgcn--amdhsa.bc is not installed" >&2; exit $status; }
    for file in "$directory"/*.cl; do
        $clang -x cl -cl-std=CL1.2 -O3 -w -target amdgcn-amd-amdhsa -mcpu=gfx1030 -nogpulib \
            -Xclang -mlink-builtin-bitcode -Xclang "$library" -S "$file" -o "$tmp/k.s" || continue
        awk -v file="$(basename "$file")" '
            /^; Function info|^; Kernel info/ { kernel = /Kernel/ }
            /^ *\.globl|^\t\.globl/ { name = $2 }
            /; NumVgprs:/ { v = $3 } /; ScratchSize:/ { s = $3 } /; LDSByteSize:/ { l = $3 }
            /; Occupancy:/ { printf "%-40s %-32s %4d VGPRs %6d scratch %6d local  occupancy %d\n", file, name, v, s, l, $3 }
        ' "$tmp/k.s"
    done
fi
echo "$n kernel sources for $targets: $([ $status = 0 ] && echo "all compile" || echo "some are refused")"
[ $status = 0 ]
