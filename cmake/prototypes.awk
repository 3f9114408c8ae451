# SPDX-License-Identifier: MIT
# Prints a prototype for every function ref_* that the given C files define and do not keep static.
/^[a-z].*[ *]ref_[a-z0-9_]+\(/ && !/^static/ { text = ""; inside = 1 }
inside && /^\{/ { print text ";"; inside = 0 }
inside { text = text (text == "" ? "" : "\n") $0 }
inside && /;/ { inside = 0 }
