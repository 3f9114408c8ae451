# A table that no document has.
set(may_base "")
set(may_op   base)
