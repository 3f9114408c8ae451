// SPDX-License-Identifier: MIT
/** A struct without its size, a function that says nothing of errors, on purpose. */
typedef struct attncl_sizeless {
    int a;
} attncl_sizeless;
ATTNCL_API int attncl_silent(const attncl_sizeless *x);
/** Says neither what it computes nor whose the result is. */
ATTNCL_API attncl_value attncl_shapeless(int *g);
ATTNCL_API int attncl_orphan(int **orphan_ret);
