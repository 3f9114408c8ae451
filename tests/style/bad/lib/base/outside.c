// Calls what belongs elsewhere, on purpose.
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

void outside(void)
{
    char *text = malloc(10);
    if (!text)
        goto cleanup;
    printf("%s %s", text, getenv("HOME"));
    free(text);
cleanup:
    abort();
}
