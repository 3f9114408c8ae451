// Calls a function of a higher directory, on purpose.
int here(int x);
int calls_up(int x);

int calls_up(int x)
{
    return here(x);
}
