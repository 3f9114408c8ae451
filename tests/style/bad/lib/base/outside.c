// Calls what belongs elsewhere, on purpose.
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

void outside(void)
{
    char *text = malloc(10);
    printf("%s %s", text, getenv("HOME"));
    free(text);
    abort();
}
