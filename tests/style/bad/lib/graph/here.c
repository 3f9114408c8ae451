// Forms a cycle with there.c, on purpose.
int there(int x);
int here(int x);

int here(int x)
{
    return x > 0 ? there(x - 1) : 0;
}
