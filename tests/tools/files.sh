# SPDX-License-Identifier: MIT
# Small safetensors files, written by the shell: safetensors FILE HEADER [DATA], DATA in printf's escapes.
safetensors() {
    n=${#2}
    printf '%b' "$(printf '\\0%03o\\0%03o\\0000\\0000\\0000\\0000\\0000\\0000' $((n % 256)) $((n / 256)))" >"$1"
    printf '%s' "$2" >>"$1"
    printf '%b' "${3-}" >>"$1"
}

# A model without parameters and an input for it: softmax of [1, 2, 3, 4].
softmax_model() {
    safetensors "$1" '{"__metadata__":{"attncl.arch":"softmax","attncl.config":"{}"}}'
}
softmax_input() {
    safetensors "$1" '{"x":{"dtype":"F32","shape":[1,4],"data_offsets":[0,16]}}' \
        '\0000\0000\0200\0077\0000\0000\0000\0100\0000\0000\0100\0100\0000\0000\0200\0100'
}

# A linear map without its weight, with a short bias and something else.
broken_linear() {
    safetensors "$1" '{"__metadata__":{"attncl.arch":"linear","attncl.config":"{\"in_features\":1,\"out_features\":3}"},
"bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"extra":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' \
        '\0000\0000\0000\0000\0000\0000\0000\0000\0000\0000\0000\0000'
}
