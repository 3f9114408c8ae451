// Functions beyond the limits.
int wide_one(int a, int b, int c, int d, int e, int f, int g, int h)
{
    return a + b + c + d + e + f + g + h;
}

int long_one(int a)
{
    ++a;
    ++a;
    ++a;
    ++a;
    ++a;
    ++a;
    return a;
}
