#!/bin/sh
# SPDX-License-Identifier: MIT
# two_devices.sh TOOL: on a GPU in the processor beside a card, the personas intel and a770: each is listed and refused by its
# own name, and the card is chosen.
tool=$1
said=$("$tool" devices 2>&1; "$tool" tune --verbose --check --kernel none 2>&1; "$tool" tune --device tpu 2>&1)
echo "$said"
case $said in *"Intel(R)"*) ;; *) echo "skipped: the OpenCL loader has not loaded the layer"; exit 77 ;; esac
wanted='0:0  GPU    Intel.R. UHD.* 24 compute.* 12\.0 GiB.*0:1  GPU    Intel.R. Arc.* 512 compute.* 16\.0 GiB'
wanted="$wanted.*info: device 0:1 Intel.R. Arc.*there is 0:0 Intel.R. UHD .*, 0:1 Intel.R. Arc"
echo "$said" | tr '\n' ' ' | grep -q "$wanted"
