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
