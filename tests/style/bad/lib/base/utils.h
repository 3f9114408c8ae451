// A file without an idea, on purpose.
#if 0
#endif
