#!/bin/sh
# SPDX-License-Identifier: MIT
# offline.sh DIRECTORY: every specialised kernel source in DIRECTORY, as ATTNCL_DUMP_CL writes them, compiles
# without warnings for NVIDIA (nvptx64), AMD (amdgcn) and Intel and the rest (spir64).  No GPU is needed.  Sources of the
# CPU variant alone, of which no group has two work-items, are compiled for the last: no GPU gets them.  That one has no
# machine code, whose limits optimising would meet: it is left out.  Where the tests ran on a GPU, shuffles that the other
# makers' compilers do not know are local memory here, and matrix instructions are compiled for their own maker alone.
# Where Intel's own compiler, ocloc, is installed, it compiles for Arc what GPUs get.
# Skipped (77) without clang or when DIRECTORY holds nothing.
set -u
directory=$1

clang=""
for name in clang-14 clang-15 clang-16 clang-17 clang-18 clang-19 clang; do
    if command -v $name >/dev/null 2>&1; then
        clang=$name
        break
    fi
done
[ -n "$clang" ] || { echo "skipped: no clang" >&2; exit 77; }
n=$(find "$directory" -name '*.cl' 2>/dev/null | wc -l)
[ "$n" -gt 0 ] || { echo "skipped: no kernel sources in '$directory'; run the op tests with ATTNCL_DUMP_CL=$directory" >&2; exit 77; }

ocloc=$(command -v ocloc || true)
[ -n "$ocloc" ] || echo "ocloc is not installed: Intel's compiler is not asked"

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

any='"spir64 -O0 -emit-llvm -c"'
gpu='"nvptx64-nvidia-nvcl -march=sm_75 -O1 -S" "amdgcn-amd-amdhsa -mcpu=gfx1030 -nogpulib -O1 -S"'

# compile FILE: for each target of the file, stopping at the first that refuses.
cat >"$tmp/compile" <<END
status=0
compile() {
    for target in "\$@"; do
        $clang -x cl -cl-std=CL1.2 -Wall -Wno-unused-function -Wno-pass-failed -Werror -target \$target - -o /dev/null \
            <"\$source" 2>"$tmp/log.\$\$" || {
            echo "\$file does not compile for \$target:" >&2
            head -n 5 "$tmp/log.\$\$" >&2
            status=1
        }
    done
}
# PoCL alone gets prefetches (lib/device/quirks.c), which Intel's compiler does not know.
compile_for_arc() {
    [ -n "$ocloc" ] || return
    sed 's/^#define USE_PREFETCH 1/#define USE_PREFETCH 0/' "\$source" >"$tmp/arc.\$\$.cl"
    $ocloc compile -q -file "$tmp/arc.\$\$.cl" -device dg2 -out_dir "$tmp/arc.\$\$" -output arc -output_no_suffix \
        -options "-cl-std=CL1.2 -Werror" >"$tmp/log.\$\$" 2>&1 || {
        echo "\$file does not compile for dg2:" >&2
        head -n 5 "$tmp/log.\$\$" >&2
        status=1
    }
}
for file; do
    source="\$file"
    if grep -qE '^#define SHUFFLE [^036]' "\$file"; then
        source="$tmp/source.\$\$"
        sed '/^#define SHUFFLE/d' "\$file" >"\$source"
    fi
    if grep -qE '^#define MMA [3-6]' "\$file" && ! grep -q '^#define EMULATED 1' "\$file"; then
        continue # tests/kernels/gpu-resources: later compilers than these
    fi
    if grep -qE '^#define MMA [12]' "\$file" && ! grep -q '^#define EMULATED 1' "\$file"; then
        if grep -q '^#define MMA 1' "\$file"; then
            compile "nvptx64-nvidia-nvcl -march=sm_80 -O1 -S"
        else
            compile "amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -O1 -S"
        fi
        continue
    fi
    compile $any
    if grep -qE '^#define LS ([2-9]|1[0-9])' "\$file"; then
        compile $gpu
        compile_for_arc
    fi
done
exit \$status
END
find "$directory" -name '*.cl' -print0 | xargs -0 -n 8 -P "$(nproc 2>/dev/null || echo 2)" sh "$tmp/compile"
status=$?

m=$(grep -lrE '^#define LS ([2-9]|1[0-9])' "$directory" | wc -l)
echo "$n kernel sources for SPIR, $m of them for NVIDIA${ocloc:+, Intel} and AMD too: $([ $status = 0 ] && echo "all compile" || echo "some are refused")"
[ $status = 0 ]
