// Sets kernel arguments in a second place, on purpose.
static void one(cl_kernel k)
{
    clSetKernelArg(k, 0, 4, 0);
}

static void two(cl_kernel k)
{
    clSetKernelArg(k, 1, 4, 0);
}
