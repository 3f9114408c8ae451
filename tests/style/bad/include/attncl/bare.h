// Needs a header that it does not include, on purpose.
size_t attncl_bare(void);
