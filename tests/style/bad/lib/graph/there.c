// Forms a cycle with here.c, on purpose.
int here(int x);
int there(int x);

int there(int x)
{
    return x > 0 ? here(x - 1) : 0;
}
