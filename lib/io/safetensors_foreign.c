// SPDX-License-Identifier: MIT
//
// Files of other formats, by their first bytes: what they are and how to convert them.  Read as the
// length of a safetensors header, the first 8 bytes of each are far above what is possible.

#include <string.h>

#include "io/safetensors.h"

#define CONVERT "convert it with attncl-convert, see docs/model-files.md"

static const struct {
    const char *first;  // bytes at the beginning
    size_t n;           // of them
    const char *within; // bytes further on; NULL: none
    const char *words;
} formats[] = {
    {"PK\3\4", 4, "data.pkl", "a PyTorch checkpoint: " CONVERT},
    {"PK\3\4", 4, ".npy",
     "a NumPy archive (NPZ): save its arrays with safetensors.numpy.save_file()"},
    {"PK\3\4", 4, NULL, "a zip archive, not a safetensors file"},
    {"\x80\2", 2, NULL, "a Python pickle, as old PyTorch checkpoints are: " CONVERT},
    {"\x80\3", 2, NULL, "a Python pickle: " CONVERT},
    {"\x80\4", 2, NULL, "a Python pickle: " CONVERT},
    {"\x80\5", 2, NULL, "a Python pickle: " CONVERT},
    {"\x93NUMPY", 6, NULL, "a NumPy array (NPY): save it with safetensors.numpy.save_file()"},
    {"GGUF", 4, NULL, "a GGUF file: " CONVERT},
    {"\211HDF\r\n", 6, NULL,
     "an HDF5 file (Keras, say): convert the model from its PyTorch checkpoint"},
    {"\x08", 1, "\x12\7pytorch", "an ONNX model: convert the model from its PyTorch checkpoint"},
    {"\x08", 1, "onnx", "an ONNX model: convert the model from its PyTorch checkpoint"},
    {"version https://git-lfs", 23, NULL,
     "a Git LFS pointer: get the file itself with git lfs pull"},
    {"<!DOCTYPE", 9, NULL, "a web page, not a safetensors file"},
    {"<html", 5, NULL, "a web page, not a safetensors file"},
    {"{", 1, NULL, "a JSON text, not a safetensors file"},
    {"\x1f\x8b", 2, NULL, "compressed by gzip: unpack it first"},
};

static bool contains(const unsigned char *data, size_t n, const char *bytes)
{
    const size_t length = strlen(bytes);
    for (size_t i = 0; i + length <= n; ++i)
        if (memcmp(data + i, bytes, length) == 0)
            return true;
    return false;
}

attncl_status attncl__st_refuse_foreign(const unsigned char *data, size_t n, attncl_status status)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; ++i)
        REQUIRE(n < formats[i].n || memcmp(data, formats[i].first, formats[i].n) != 0 ||
                    (formats[i].within && !contains(data, n, formats[i].within)),
                ATTNCL_ERR_FORMAT, "%s", formats[i].words);
    return status;
}
