# SPDX-License-Identifier: MIT
# Completion for zsh, from `attncl help --options`.
function quoted(text) {
    gsub(/'/, "'\\''", text)
    return text
}
function explained(text) { # within brackets, or after a colon
    gsub(/[\]\[:\\]/, "\\\\&", text)
    return quoted(text)
}
$2 == "" && !($1 in options) {
    names[++n] = $1
    summaries[$1] = $4
    options[$1] = ""
}
$2 ~ /^-/ {
    count = split($2, forms, ", ")
    action = $3 == "D" ? ":" $3 ":(gpu cpu)" : $3 == "DIR" ? ":" $3 ":_files -/" : $3 == "FILE" ? ":" $3 ":_files" : \
        $3 != "" ? ":" explained($3) ":" : ""
    form = count == 2 ? "'(" forms[1] " " forms[2] ")'{" forms[1] "," forms[2] "}" : forms[1]
    options[$1] = options[$1] sprintf(" \\\n            %s'[%s]%s'", form, explained($4), action)
}
END {
    print "#compdef attncl\n_attncl() {\n    local -a commands=("
    for (i = 1; i <= n; i++)
        printf "        '%s:%s'\n", names[i], explained(summaries[names[i]])
    print "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n    fi"
    print "    shift words\n    (( CURRENT-- ))\n    case $words[1] in"
    for (i = 1; i <= n; i++)
        printf "    %s)\n        _arguments -s%s \\\n            '*:%s'\n        ;;\n", names[i], options[names[i]],
            names[i] == "help" ? "command:(${commands%%:*})" : "file:_files"
    print "    esac\n}\n_attncl \"$@\""
}
