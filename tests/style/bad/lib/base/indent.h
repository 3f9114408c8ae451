// Is not formatted, on purpose.
int  indent;
