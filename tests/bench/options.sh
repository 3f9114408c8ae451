#!/bin/sh
# SPDX-License-Identifier: MIT
# options.sh BENCH SOURCE: the command line's mistakes are refused with status 2, no device with 3.
set -u

. "$(dirname "$0")/setup.sh"

expect() { # STATUS argument...
    want=$1
    shift
    "$bench" "$@" >/dev/null 2>&1
    got=$?
    [ "$got" = "$want" ] || fail "attncl-bench $*: status $got, expected $want"
}

expect 0 --help
expect 0 --list
expect 2 --no-such-option
expect 2 --budget
expect 2 --budget none
expect 2 --budget -1
expect 2 --budget nan
expect 2 --runs 0
expect 2 --runs 2x
expect 2 --small --full
expect 2 --quick --full
expect 2 --only softmx
"$bench" --only "gelu,lm transformr" 2>&1 | grep -q 'attncl-bench: --only lm transformr: .* nearest: lm transformer d=128 4 layers' || fail "no nearest name"
expect 2 --only "=softmax 4096"
expect 2 --suite ops
expect 2 --suite device,
expect 2 --rounds 0
expect 2 surplus
expect 1 --json "$0/report.json"
expect 3 --device "no device has this name"
OCL_ICD_VENDORS=/nonexistent expect 3

# Several names: the cases of either, and no others.
found=$("$bench" --small --no-cold --no-roofline --budget 0.05 --runs 1 --rounds 1 --only "gelu 64,,SOFTMAX 64x256" 2>/dev/null |
    grep -cE '  (GELU|bias \+ GELU|softmax) 64x256 ')
[ "$found" -ge 2 ] || fail "--only with two names runs $found cases"

# The exact name alone.
found=$("$bench" --small --no-cold --no-roofline --budget 0.05 --runs 1 --rounds 1 --only "=GELU 64x256" 2>/dev/null | grep -c " GELU 64x256 ")
[ "$found" = 1 ] || fail "--only =NAME runs $found cases"

# bench/run looks at the same options before it builds.
look() { # STATUS WORDS argument...
    want=$1
    words=$2
    shift 2
    said=$(awk -v DIRECTORY="$source/bench" -f "$source/bench/check-options.awk" -- "$@" 2>&1)
    got=$?
    { [ "$got" = "$want" ] && case $said in *"$words"*) ;; *) false ;; esac; } ||
        fail "bench/run $*: status $got, expected $want with '$words': $said"
}
look 0 "" --quick --budget 3 --only gelu,,"SOFTMAX 64" --device cpu --no-cold
look 0 "" --only=attention
look 0 "" --only "headline,=softmax 4096x1024"
look 2 "nearest: softmax" --only softmx
look 2 "nearest: lm transformer" --only "gelu,lm transformr"
look 2 "nearest: --quick" --quik
look 2 "--only needs a value" --quick --only
look 2 "unexpected argument 'cpu'" --quick cpu
