#!/bin/sh
# SPDX-License-Identifier: MIT
# environment.sh ROOT: the table of docs/environment.md has the rows of lib/base/env_list.def, word for word.
set -u
root=$1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
sed -n 's/^ENV([A-Z_]*, "\(ATTNCL_[A-Z_]*\)", \("[^"]*"\|[A-Z_]*\), "\(.*\)")$/| `\1` | \3 |/p' "$root/lib/base/env_list.def" >"$tmp/list"
grep '^| `ATTNCL_' "$root/docs/environment.md" >"$tmp/documented"
diff -u --label env_list.def --label docs/environment.md "$tmp/list" "$tmp/documented"
