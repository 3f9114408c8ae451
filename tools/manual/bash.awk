# SPDX-License-Identifier: MIT
# Completion for bash, from `attncl help --options`.  Completes file names if nothing else fits.
$2 == "" && !($1 in options) {
    commands = commands (n ? " " : "") $1
    names[++n] = $1
    options[$1] = ""
}
$2 ~ /^-/ {
    count = split($2, forms, ", ")
    for (i = 1; i <= count; i++) {
        options[$1] = options[$1] (options[$1] == "" ? "" : " ") forms[i]
        takers[$3] = takers[$3] (takers[$3] == "" ? "" : " | ") $1 ":" forms[i]
    }
}
function completed(by) { return "COMPREPLY=($(compgen " by " -- \"$word\"))" }
function values(kind, by) {
    if (kind in takers)
        printf "    %s)\n        %s\n        return\n        ;;\n", takers[kind], completed(by)
}
END {
    print "# attncl: completion for bash"
    print "_attncl() {\n    local word=${COMP_WORDS[COMP_CWORD]} options=\"\"\n    COMPREPLY=()"
    printf "    if [ \"$COMP_CWORD\" = 1 ]; then\n        %s\n        return\n    fi\n", completed("-W \"" commands " --help --version\"")
    print "    case ${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD - 1]} in"
    values("D", "-W \"gpu cpu\"")
    values("DIR", "-d")
    print "    esac\n    case ${COMP_WORDS[1]} in"
    for (i = 1; i <= n; i++)
        printf "    %s) options=\"%s\" ;;\n", names[i], options[names[i]]
    print "    esac\n    case ${COMP_WORDS[1]}:$word in"
    printf "    *:-*) %s ;;\n    help:*) %s ;;\n    esac\n", completed("-W \"$options\""), completed("-W \"" commands "\"")
    print "}\ncomplete -o bashdefault -o default -F _attncl attncl"
}
