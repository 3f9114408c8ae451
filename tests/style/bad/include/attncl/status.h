// A status code without a test.
#define ATTNCL_STATUS_LIST(X) X(ERR_UNTESTED, 1, "nothing provokes this")
