# SPDX-License-Identifier: MIT
# What the shell tests of attncl-bench share; called with its path and the source tree's.
bench=$1
source=$2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

fail() {
    echo "$*"
    exit 1
}

# attncl-bench's small sizes on the tested device: sets $status.  Without a device the test is skipped.
run() {
    status=0
    "$bench" --small "$@" ${ATTNCL_DEVICE:+--device "$ATTNCL_DEVICE"} || status=$?
    [ "$status" != 3 ] || exit 77
}
