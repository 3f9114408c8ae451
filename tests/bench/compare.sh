#!/bin/sh
# SPDX-License-Identifier: MIT
# compare.sh BENCH SOURCE: a seeded change is found, noise is not, and what has no counterpart is named.
set -u

. "$(dirname "$0")/setup.sh"
status=0

result() { # CASE MIN Q1 MEDIAN Q3
    printf '{"case": "%s", "outcome": "ok", "wall": {"min_s": %s, "q1_s": %s, "median_s": %s, "q3_s": %s, "max_s": 1}}' "$@"
}
report() { # FILE NAME KIND RESULTS
    printf '{"schema": 2, "devices": [{"device": "0:0", "kind": "%s", "name": "%s", "platform": "p", "results": [%s]}]}\n' \
        "$3" "$2" "$4" >"$directory/$1"
}
expect() { # PATTERN
    grep -qE "$1" "$directory/out" || { echo "not found: $1"; cat "$directory/out"; status=1; }
}

wrong='{"case": "wrong", "outcome": "wrong"}'
report a.json one opencl "$(result same 1e-3 1.1e-3 1.2e-3 1.3e-3), $(result slower 1e-3 1.1e-3 1.2e-3 1.3e-3), $(result left 1e-3 1e-3 1e-3 1e-3), $wrong"
report b.json one opencl "$(result same 1.05e-3 1.2e-3 1.25e-3 1.4e-3), $(result slower 2e-3 2.1e-3 2.2e-3 2.3e-3), $(result new 1e-3 1e-3 1e-3 1e-3), $(result wrong 1e-3 1e-3 1e-3 1e-3)"
report again.json one opencl "$(result slower 1.5e-3 1.6e-3 1.7e-3 1.8e-3)"
report baseline.json PyTorch baseline "$(result same 4e-3 4e-3 4e-3 4e-3)"
report other.json two opencl "$(result same 1e-3 1e-3 1e-3 1e-3)"
sed 's/"schema": 2/"schema": 1/' "$directory/a.json" >"$directory/old.json"

"$bench" --compare "$directory/a.json" "$directory/b.json" >"$directory/out" || status=1
expect '^same +1 +1\.05 +1\.050 *$'
expect '^slower +1 +2 +2\.000 +A faster$'
expect '^left +1 +- +- +only in A$'
expect '^new +- +1 +- +only in B$'
expect '^wrong +wrong +1 +- +not compared$'
expect '^geometric mean of 2 ratios: 1\.449; beyond the spread: A faster 1, B faster 0$'
expect '^3 not compared$'

# Several runs of a side: the fastest counts.
"$bench" --compare "$directory/a.json" "$directory/b.json,$directory/again.json" --markdown >"$directory/out" || status=1
expect '^\| slower \| 1 \| 1\.5 \| 1\.500 \| A faster \|$'

# Another kind of device is compared when there is no common one; else it is named.
"$bench" --compare "$directory/a.json" "$directory/baseline.json" >"$directory/out" || status=1
expect '^same +1 +4 +4\.000 +A faster$'
"$bench" --compare "$directory/a.json" "$directory/b.json,$directory/other.json" >"$directory/out" || status=1
expect '^only in B: 0:0  two$'

"$bench" --compare "$directory/a.json" "$directory/old.json" 2>"$directory/out" && status=1
expect 'old\.json has schema 1, this program reads 2'
"$bench" --compare "$directory/a.json" "$directory/none.json" 2>"$directory/out" && status=1
expect 'none\.json'
exit $status
