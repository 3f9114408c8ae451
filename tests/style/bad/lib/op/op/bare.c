// Launch before scratch, on purpose.
static attncl_status fwd_launch(struct launcher *l, const struct op_call *call)
{
    return ATTNCL_OK;
}

static attncl_status fwd_scratch(const struct op_sig *sig, size_t *bytes_ret)
{
    return ATTNCL_OK;
}

const struct op_class attncl__op_bare_fwd = {0};
