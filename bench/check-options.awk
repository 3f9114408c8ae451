# awk -f check-options.awk -v DIRECTORY=bench -- ARGUMENT...: refuses mistakes in attncl-bench's options before it is built:
# unknown options, missing values, and --only texts that no case's name has.  Exit status 2 after a line on stderr.

function distance(a, b,    i, j, d, cost) {
    for (j = 0; j <= length(b); ++j)
        d[0, j] = j
    for (i = 1; i <= length(a); ++i) {
        d[i, 0] = i
        for (j = 1; j <= length(b); ++j) {
            cost = d[i - 1, j - 1] + (substr(a, i, 1) != substr(b, j, 1))
            if (d[i - 1, j] + 1 < cost)
                cost = d[i - 1, j] + 1
            d[i, j] = d[i, j - 1] + 1 < cost ? d[i, j - 1] + 1 : cost
        }
    }
    return d[length(a), length(b)]
}

function nearest(word, known,    name, best, least, far) {
    for (name in known) {
        far = distance(word, substr(name, 1, length(word) + 1))
        if (!best || far < least || far == least && name < best) {
            best = name
            least = far
        }
    }
    return best
}

function refuse(text) {
    print "bench/run: " text > "/dev/stderr"
    exit 2
}

function check_only(texts,    n, i, name, part, known) {
    n = split(tolower(texts), part, ",")
    for (i = 1; i <= n; ++i) {
        known = part[i] == "" || part[i] == "headline" || part[i] ~ /^=/
        for (name in names)
            known = known || index(name, part[i])
        if (!known)
            refuse("--only " part[i] ": in no case's name, nearest: " nearest(part[i], names))
    }
}

BEGIN {
    table = DIRECTORY "/harness/options.c"
    while ((getline line < table) > 0)
        if (match(line, /^ *\{"[a-z-]+", 0, OPTION_/)) {
            split(line, cell, "\"")
            takes["--" cell[2]] = line !~ /OPTION_SWITCH/
        }
    takes["--help"] = 0
    for (i = split("cases.def roofline/roofline.def", files, " "); i > 0; --i)
        while ((getline line < (DIRECTORY "/" files[i])) > 0)
            if (line ~ /^CASE\(/) {
                split(line, cell, "[,\"] *")
                names[tolower(cell[4])] = names[cell[2]] = 1
            }
    for (i = 1; i < ARGC; ++i) {
        option = value = ARGV[i]
        sub(/=.*/, "", option)
        if (!(option in takes))
            refuse(option ~ /^-/ ? "unknown option " option ", nearest: " nearest(option, takes) "; see --help" : \
                   "unexpected argument '" option "'; see --help")
        if (!takes[option])
            continue
        if (option == value && i + 1 == ARGC)
            refuse(option " needs a value; see --help")
        value = option == value ? ARGV[++i] : substr(value, length(option) + 2)
        if (option == "--only")
            check_only(value)
    }
    exit 0
}
