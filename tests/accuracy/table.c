// SPDX-License-Identifier: MIT

#include "accuracy/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attncl/context.h"
#include "support/test.h"

static const char *variant(void)
{
    const char *name = getenv("ATTNCL_VARIANT");
    return name ? name : "own";
}

void table_add(const char *what, double worst, double bound, const char *unit, const char *where)
{
    const char *path = getenv("ATTNCL_ACCURACY");
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;
    FILE *file = path ? fopen(path, "a") : NULL;

    if (!file)
        return;
    ck_ok(attncl_context_device(test_context(), &info));
    fprintf(file, "| %s | %s | %s | %.3g | %.3g | %s | %s |\n", info.name, variant(), what, worst,
            bound, unit, where);
    fclose(file);
}

uint32_t table_stride(uint32_t usual)
{
    const char *text = getenv("ATTNCL_ACCURACY_STRIDE");
    const long stride = text ? strtol(text, NULL, 10) : 0;
    return stride > 0 ? (uint32_t)stride : usual;
}

double ulp_of(double want)
{
    const int exponent = ilogb(want);
    return ldexp(1, (exponent < -126 ? -126 : exponent) - 23);
}
