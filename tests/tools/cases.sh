#!/bin/sh
# SPDX-License-Identifier: MIT
# cases.sh ROOT TOOL: runs the acceptance cases, where there are any: a folder with manifest.json and run_cases.py, named
# by ATTNCL_CASES_DIR or lying at ../shared/cases beside the checkout.  Skipped (77) without them, without numpy or
# without a device.
set -u
root=$1 tool=$2
cases=${ATTNCL_CASES_DIR:-$root/../shared/cases}

[ -f "$cases/run_cases.py" ] || { echo "skipped: no cases in '$cases'" >&2; exit 77; }
python3 -c 'import numpy' 2>/dev/null || { echo "skipped: no Python with numpy" >&2; exit 77; }
"$tool" devices >/dev/null || exit 77

# What this version computes; archs and layers of later versions are left out.
names="activation/ aft_full/ aft_local/ aft_simple/ bmm/ cross_entropy/ embedding/ feed_forward/ gmlp_block/ layer_norm/
    linear/ masked_softmax/ positional_encoding/ softmax/ spatial_gating_unit/
    transformer_layer/aft_local transformer_layer/aft_simple encoder/aft_local encoder/aft_full encoder/gmlp
    lm/aft_ lm/gmlp lm_sample/aft_local"
only=""
for name in $names; do
    only="$only --only $name"
done
# shellcheck disable=SC2086
exec python3 "$cases/run_cases.py" --cases "$cases" --cmd "$tool run {model} {input} {output}" \
    --kind forward --kind error $only
