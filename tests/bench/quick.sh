#!/bin/sh
# SPDX-License-Identifier: MIT
# quick.sh BENCH SOURCE: every case of the small sizes is right on the device.
set -u

status=0
"$1" --quick --budget 1 --runs 1 ${ATTNCL_DEVICE:+--device "$ATTNCL_DEVICE"} || status=$?
[ "$status" != 3 ] || exit 77
exit "$status"
