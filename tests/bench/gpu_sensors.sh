#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu_sensors.sh BENCH SOURCE LAYER NVML: of GPUs that the layer plays, the readings are those of the driver's files in sysfs
# (AMD, Intel) or of NVML (NVIDIA), found by the GPU's PCI address.
set -eu

. "$(dirname "$0")/setup.sh"
layer=$3 nvml=$4

vendors=/etc/OpenCL/vendors/pocl.icd
[ -f "$vendors" ] || { echo "skipped: the layer plays devices on PoCL (Debian: pocl-opencl-icd)" >&2; exit 77; }
export OPENCL_LAYERS="$layer" OCL_ICD_VENDORS="$vendors" ATTNCL_BENCH_SYSFS="$directory/sys"
unset ATTNCL_DEVICE
# The GPU kernels, not compared with the host at first use, and their binaries not asked for: PoCL compiles for both.
export ATTNCL_VARIANT=gpu ATTNCL_CACHE=off
mkdir "$directory/sys"

put() { # FILE NUMBER, of the GPU
    mkdir -p "$directory/sys/bus/pci/devices/0000:41:00.0/$(dirname "$1")"
    echo "$2" >"$directory/sys/bus/pci/devices/0000:41:00.0/$1"
}
check() { # PERSONA READINGS
    ATTNCL_PERSONA=$1 run --no-cold --no-roofline --budget 0.05 --runs 1 --rounds 1 --only "softmax 64x256" \
        --json "$directory/report.json" >"$directory/output" 2>&1
    [ "$status" = 0 ] || fail "$1: exit status $status: $(cat "$directory/output")"
    found=$(tr -d '\n ' <"$directory/report.json" | sed -n 's/.*"sensors":{\([^}]*\)}.*/\1/p')
    [ "$found" = "$2" ] || fail "$1: $found"
}

nothing='"clock_mhz":null,"power_w":null,"temperature_c":null,"throttled":null'
check amd "$nothing"
check nvidia "$nothing"

put hwmon/hwmon2/freq1_input 2105000000
put hwmon/hwmon2/temp1_input 71000
put hwmon/hwmon2/power1_average 243000000
check amd '"clock_mhz":2105.0,"power_w":243.0,"temperature_c":71.0,"throttled":null'

rm -r "$directory/sys/bus"
put drm/card1/gt_act_freq_mhz 2050
put drm/card1/gt/gt0/throttle_reason_status 1
put hwmon/hwmon4/temp1_input 58000
check intel '"clock_mhz":2050.0,"power_w":null,"temperature_c":58.0,"throttled":true'

export LD_LIBRARY_PATH="$(dirname "$nvml")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
check nvidia '"clock_mhz":1980.0,"power_w":412.5,"temperature_c":66.0,"throttled":true'
