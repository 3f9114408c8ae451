#!/bin/sh
# SPDX-License-Identifier: MIT
# sensors.sh BENCH SOURCE: clock, temperature, power and throttling are those of sysfs, null where it has none.
set -eu

. "$(dirname "$0")/setup.sh"

put() { # FILE NUMBER
    mkdir -p "$directory/sys/$(dirname "$1")"
    echo "$2" >"$directory/sys/$1"
}
sensors() { # what the report says of the case
    run --no-cold --no-roofline --budget 0.05 --runs 1 --rounds 2 --only "softmax 64x256" --json "$directory/report.json" >/dev/null
    [ "$status" = 0 ] || fail "exit status $status"
    tr -d '\n ' <"$directory/report.json" | sed -n 's/.*"sensors":{\([^}]*\)}.*/\1/p'
}

export ATTNCL_BENCH_SYSFS="$directory/sys"
mkdir "$directory/sys"
found=$(sensors)
[ "$found" = '"clock_mhz":null,"power_w":null,"temperature_c":null,"throttled":null' ] || fail "without files: $found"
grep -q '"type": "cpu"' "$directory/report.json" || { echo "skipped: the files of a GPU are other ones"; exit 77; }
put devices/system/cpu/cpu0/cpufreq/scaling_cur_freq 1200000
put devices/system/cpu/cpu1/cpufreq/scaling_cur_freq 2400000
put devices/platform/coretemp.0/hwmon/hwmon3/temp1_input 61500
put devices/system/cpu/cpu0/thermal_throttle/package_throttle_count 7
put class/powercap/intel-rapl:0/energy_uj 1000000
found=$(sensors)
# Two readings: the energy and the count did not grow from one to the next.
[ "$found" = '"clock_mhz":2400.0,"power_w":0.0,"temperature_c":61.5,"throttled":false' ] || fail "with files: $found"
