#!/bin/sh
# SPDX-License-Identifier: MIT
# small.sh BENCH SOURCE: every case of the small sizes is right on the device, and the report has its documented form.
set -u

. "$(dirname "$0")/setup.sh"
run --no-cold --budget 1 --runs 1 --rounds 2 --label "a machine" --json "$directory/report.json"
[ "$status" = 0 ] || exit "$status"
command -v python3 >/dev/null || { echo "skipped the report's form: python3 is not installed"; exit 0; }
python3 "$source/tests/bench/schema.py" "$directory/report.json"
