# SPDX-License-Identifier: MIT
# Completion for fish, from `attncl help --options`.
function quoted(text) {
    gsub(/[\\']/, "\\\\&", text)
    return "'" text "'"
}
BEGIN { print "# attncl: completion for fish" }
$2 == "" && !($1 in seen) {
    seen[$1] = 1
    printf "complete -c attncl -n __fish_use_subcommand -f -a %s -d %s\n", $1, quoted($4)
}
$2 ~ /^-/ {
    form = $2
    sub(/^-[^-], /, "-s " substr($2, 2, 1) " ", form)
    sub(/--/, "-l ", form)
    value = $3 == "D" ? " -x -a 'gpu cpu'" : $3 == "DIR" ? " -x -a '(__fish_complete_directories)'" : $3 != "" ? " -r" : ""
    printf "complete -c attncl -n '__fish_seen_subcommand_from %s' %s%s -d %s\n", $1, form, value, quoted($4)
}
