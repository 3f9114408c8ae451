# SPDX-License-Identifier: MIT
# attncl.1, from the stream that tools/manual/generate makes.
function roff(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    sub(/^[.']/, "\\\\\\&&", text)
    return text
}
$1 == "V" {
    printf ".TH ATTNCL 1 \"\" \"%s\" \"User Commands\"\n", $2
    print ".nh\n.ad l"
    print ".SH NAME\nattncl \\- runs models with attention and attention\\-free layers on any OpenCL device"
    print ".SH SYNOPSIS\n.B attncl\n.I COMMAND\n[options] ..."
    print ".SH COMMANDS"
}
$1 == "T" && $2 ~ /^usage: / {
    printf ".SS \"%s\"\n", roff(substr($2, 8))
    paragraph = 0
    next
}
$1 == "T" && $2 == "" { paragraph = 1; next }
$1 == "T" {
    if (paragraph)
        print ".PP"
    paragraph = 0
    print roff($2)
}
$1 == "O" {
    name = roff($3)
    gsub(/, /, "\\fR, \\fB", name)
    printf ".TP\n\\fB%s\\fR%s\n%s\n", name, $4 == "" ? "" : " \\fI" roff($4) "\\fR", roff($5)
}
$1 == "E" {
    if (!environment++)
        print ".SH ENVIRONMENT"
    printf ".TP\n.B %s\n%s\n", $2, roff($3)
}
$1 == "N" {
    if (!notes++)
        print ".SH NOTES"
    print roff($2)
}
