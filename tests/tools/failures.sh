#!/bin/sh
# SPDX-License-Identifier: MIT
# failures.sh ROOT TOOL: what the command line does when something is wrong: one line on stderr, nothing on stdout, the
# right exit status, no output file.  And that the plain things work.  Only the part at the end needs a device.
set -u
root=$1 tool=$2
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
. "$root/tests/tools/files.sh"
failed=0

complain() {
    echo "$1" >&2
    failed=1
}

# refused STATUS WORDS argument...: exit status STATUS, one line with WORDS, no file "out".
refused() {
    want=$1 words=$2
    shift 2
    "$tool" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    got=$?
    what="attncl $*"
    [ "$got" = "$want" ] || complain "$what: exit status $got, expected $want"
    [ "$(wc -l <"$tmp/stderr")" = 1 ] || complain "$what: stderr is not one line: $(cat "$tmp/stderr")"
    grep -q "^attncl: .*$words" "$tmp/stderr" || complain "$what: '$(cat "$tmp/stderr")' lacks '$words'"
    [ ! -s "$tmp/stdout" ] || complain "$what: printed on stdout: $(head -n 1 "$tmp/stdout")"
    [ ! -e "$tmp/out" ] || complain "$what: left an output file"
    [ -z "$(find "$tmp" -name 'out*')" ] || complain "$what: left $(find "$tmp" -name 'out*')"
}

# works WORDS argument...: exit status 0, WORDS on stdout, nothing on stderr.
works() {
    words=$1
    shift
    "$tool" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null || complain "attncl $*: exit status $?"
    [ -z "$words" ] || grep -q -e "$words" "$tmp/stdout" || complain "attncl $*: stdout lacks '$words'"
    [ ! -s "$tmp/stderr" ] || complain "attncl $*: said on stderr: $(cat "$tmp/stderr")"
}

# warns WORDS argument...: exit status 0, one line with WORDS on stderr.
warns() {
    words=$1
    shift
    "$tool" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null || complain "attncl $*: exit status $?"
    [ "$(wc -l <"$tmp/stderr")" = 1 ] || complain "attncl $*: stderr is not one line: $(cat "$tmp/stderr")"
    grep -q "^attncl: warning: .*$words" "$tmp/stderr" || complain "attncl $*: '$(cat "$tmp/stderr")' lacks '$words'"
}

softmax_model "$tmp/model"
softmax_input "$tmp/input"
printf 'no safetensors' >"$tmp/garbage"
printf 'To be, or not to be' >"$tmp/text"

for help in "--help" "-h" "devices --help" "inspect --help" "run --help" "eval --help" "sample -h" "tune --help"; do
    # shellcheck disable=SC2086
    works "^usage: attncl" $help
done
works "^attncl [0-9]" --version
works "^usage: attncl run MODEL" help run
works "^usage: attncl COMMAND" help
works "$(printf '^run\t-d, --device\tD\tgpu')" help --options
works "$(printf '^eval\tTEXT\t\t$')" help --options
refused 2 "unknown command 'fly'; there are devices" help fly
refused 2 "unknown command 'smple'; there are devices, .*sample" smple
works "architecture  softmax" inspect "$tmp/model"
works '"name": "x", "dtype": "F32", "shape": \[1, 4\], "bytes": 16' inspect --json "$tmp/input"

refused 2 "no value for --device" run a b c --device
refused 2 "unexpected value for --json" devices --json=1
refused 2 "not of the form A:B" eval a b --bytes 12
refused 2 "whole number" eval a b --bytes 3:x
refused 2 "whole number" eval a b --batch 0
refused 2 "\-\-prompt is missing" sample a --length 3
refused 2 "not a number" sample a --prompt b --length 3 --temperature nan
refused 2 "not a number" tune --seconds 0
works "parameter     encoder.layers.{i}.feed_forward.layer1.weight F32 \[d_ff, d_model\]" inspect --arch lm
refused 2 "exclude the options for timing" tune --export x --check
refused 1 "nothing.txt: No such file" tune --import nothing.txt
works "input         x F32 \[..., 7\]" inspect --arch linear --config '{"in_features": 7, "out_features": 3}'
works '"shape": \["num_heads\*B", "T", "D"\]' inspect --arch transpose_output --json
cannot_run() {
    words=$1
    shift
    "$tool" inspect "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    [ $? = 1 ] || complain "attncl inspect $*: exit status is not 1"
    [ "$(wc -l <"$tmp/stderr")" = 1 ] || complain "attncl inspect $*: stderr is not one line"
    grep -q "$words" "$tmp/stderr" || complain "attncl inspect $*: '$(cat "$tmp/stderr")' lacks '$words'"
}
broken_linear "$tmp/linear"
cannot_run "parameter weight is missing, bias has shape \[2\], expected \[3\]" "$tmp/linear"
grep -q "^problem       weight is missing, expected \[3, 1\]" "$tmp/stdout" || complain "inspect does not list the missing weight"
grep -q "^ignored       extra F32 \[1\]" "$tmp/stdout" || complain "inspect does not list the ignored tensor"
cannot_run "weight is missing" --json "$tmp/linear"
grep -q '"runs": false' "$tmp/stdout" || complain "inspect --json does not say that the file cannot run"
rm "$tmp/linear"
refused 2 "not both" inspect --arch lm "$tmp/model"
refused 1 "garbage" inspect "$tmp/garbage"

# No driver at all.
for words in "devices" "run $tmp/model $tmp/input $tmp/out" "eval $tmp/model $tmp/text" \
    "sample $tmp/model --prompt a --length 1"; do
    # shellcheck disable=SC2086,SC2030
    (
        export OCL_ICD_VENDORS=/nonexistent
        refused 1 "device" $words
        exit $failed
    ) || failed=1
done

if ! "$tool" devices >"$tmp/stdout" 2>&1; then
    echo "no device: the rest is left out" >&2
    exit $failed
fi
works '"id": "0:0"' devices --json
# What a device is not opened for.
for words in devices "inspect $tmp/model" "convert $tmp/model $tmp/converted --dtype f16" help; do
    # shellcheck disable=SC2086,SC2030
    (
        export ATTNCL_DEVCE=cpu
        warns "ATTNCL_DEVCE is not known, nearest: ATTNCL_DEVICE" $words
        exit $failed
    ) || failed=1
done
# shellcheck disable=SC2030
(
    export ATTNCL_CACHE=rw ATTNCL_CACHE_DIR=/proc/attncl
    warns "no program cache in /proc/attncl: it cannot be opened" run "$tmp/model" "$tmp/input" "$tmp/result"
    exit $failed
) || failed=1
works "" run "$tmp/model" "$tmp/input" "$tmp/result"
works '"name": "output", "dtype": "F32", "shape": \[1, 4\]' inspect --json "$tmp/result"
# An output that is there is replaced on success only.
cp "$tmp/garbage" "$tmp/kept"
"$tool" run "$tmp/model" "$tmp/garbage" "$tmp/kept" 2>/dev/null
cmp -s "$tmp/garbage" "$tmp/kept" || complain "a failed run changed an old output file"
works "softmax" run "$tmp/model" "$tmp/input" "$tmp/result" --profile --trace "$tmp/trace"
[ -s "$tmp/trace" ] || complain "no trace file"
exit $failed
