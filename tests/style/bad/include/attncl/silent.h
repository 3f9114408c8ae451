// SPDX-License-Identifier: MIT
/** A struct without its size, a function that says nothing of errors, on purpose. */
typedef struct attncl_sizeless {
    int a;
} attncl_sizeless;
ATTNCL_API int attncl_silent(const attncl_sizeless *x);
