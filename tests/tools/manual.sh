#!/bin/sh
# SPDX-License-Identifier: MIT
# manual.sh ROOT TOOL: the man page and the completions name every command and every option that --help prints.  Those of shells that
# are installed complete.
set -eu
root=$1 tool=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "$*" >&2
    failed=1
}

sh "$root/tools/manual/generate" "$tool" "$root" "$tmp"
sed 's/\\-/-/g; s/\\f[BRI]//g' "$tmp/attncl.1" >"$tmp/page"
if command -v groff >/dev/null; then
    groff -man -ww -z "$tmp/attncl.1" >"$tmp/said" 2>&1
    [ ! -s "$tmp/said" ] || fail "groff warns of attncl.1: $(cat "$tmp/said")"
fi
for shell in bash zsh fish; do
    command -v $shell >/dev/null || continue
    $shell -n "$tmp/attncl.$shell" || fail "$shell cannot read its completion"
done

# bash_completes WORD...: what it offers for the last word.
bash_completes() {
    bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _attncl; printf "%s\n" "${COMPREPLY[@]}"' - \
        "$tmp/attncl.bash" attncl "$@"
}

commands=$("$tool" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 8 ] || fail "attncl --help names too few commands"
for name in $commands; do
    grep -q "^\.SS \"attncl $name" "$tmp/page" || fail "attncl.1 does not name $name"
    # The options as --help prints them: "-d, --device D   what".
    "$tool" "$name" --help | sed -n 's/^  \(-., \|    \)\(--[a-z-]*\).*/\1\2/p' | tr -d ' ' | tr ',' '\n' | sort >"$tmp/options"
    [ -s "$tmp/options" ] || fail "attncl $name --help names no option"
    bash_completes "$name" - | sort >"$tmp/bash"
    cmp -s "$tmp/options" "$tmp/bash" || fail "bash completes attncl $name by $(tr '\n' ' ' <"$tmp/bash"), not $(tr '\n' ' ' <"$tmp/options")"
    if command -v fish >/dev/null; then
        HOME=$tmp fish -c "source $tmp/attncl.fish; complete -C 'attncl $name -'; complete -C 'attncl $name --'" >"$tmp/fish" 2>/dev/null
    fi
    while read -r option; do
        sed -n "/^\.SS \"attncl $name/,/^\.S[SH] /p" "$tmp/page" | grep -qE "^(.*, )?$option(,.*| .*)?$" ||
            fail "attncl.1 does not name $option of $name"
        sed -n "/^    $name)/,/;;/p" "$tmp/attncl.zsh" | grep -qE -e "[ ,{]$option[,}' ]" || fail "zsh does not complete $option of $name"
        if command -v fish >/dev/null; then
            grep -q -e "^$option	" "$tmp/fish" || fail "fish does not complete $option of $name"
        fi
    done <"$tmp/options"
done
bash_completes "" >"$tmp/bash"
for name in $commands; do
    grep -qx "$name" "$tmp/bash" || fail "bash does not complete the command $name"
done
[ "$(bash_completes run --device g)" = gpu ] || fail "bash does not complete a device"
for variable in $(sed -n 's/^| `\(ATTNCL_[A-Z_]*\)`.*/\1/p' "$root/docs/environment.md"); do
    grep -q "^\.B $variable$" "$tmp/page" || fail "attncl.1 does not name $variable"
done
exit $failed
