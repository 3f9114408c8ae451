// SPDX-License-Identifier: MIT
//
// A program of the first release: compiled against headers-0.1, run with the library of today.  Its
// structs are also made smaller and larger than they were, as those of other releases.

#include <attncl/attncl.h>
#include <stdio.h>
#include <string.h>

enum { T = 6, B = 2, C = 4, SKIPPED = 77 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, attncl_last_error());       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static attncl_value weight(attncl_graph *g)
{
    static const int64_t dim[] = {C, C};
    float data[C * C];
    for (int i = 0; i < C * C; ++i)
        data[i] = i % (C + 1) == 0 ? 1.0f : 0.0f;
    return attncl_graph_constant(g, ATTNCL_F32, 2, dim, data);
}

// Identity maps and AFT-simple: y is sigmoid(x) times a mean of x.
static void build(attncl_graph *g, const attncl_aft_desc *desc)
{
    static const int64_t dim[] = {T, B, C};
    attncl_aft_params p = ATTNCL_AFT_PARAMS_INIT;
    attncl_attention_inputs in = ATTNCL_ATTENTION_INPUTS_INIT;
    p.query_weight = p.key_weight = p.value_weight = p.output_weight = weight(g);
    in.query = in.key = in.value = attncl_graph_input(g, "x", ATTNCL_F32, 3, dim);
    attncl_graph_output(g, "y", attncl_aft(g, desc, &p, &in));
}

static int run_layer(attncl_context *context)
{
    static float x[T * B * C], y[T * B * C];
    attncl_aft_desc desc = ATTNCL_AFT_DESC_INIT;
    attncl_memory_report report = ATTNCL_MEMORY_REPORT_INIT;
    attncl_graph *g = NULL;

    for (int i = 0; i < T * B * C; ++i)
        x[i] = 1.0f;
    desc.kind = ATTNCL_AFT_SIMPLE;
    CHECK(attncl_graph_create(context, &g) == ATTNCL_OK);
    build(g, &desc);
    CHECK(attncl_graph_memory(g, &report) == ATTNCL_OK && report.io_bytes >= 2 * sizeof x);
    CHECK(attncl_graph_compile(g, NULL) == ATTNCL_OK);
    CHECK(attncl_graph_write(g, "x", x, sizeof x) == ATTNCL_OK);
    CHECK(attncl_graph_run(g) == ATTNCL_OK);
    CHECK(attncl_graph_read(g, "y", y, sizeof y) == ATTNCL_OK);
    for (int i = 0; i < T * B * C; ++i)
        CHECK(y[i] > 0.7310f && y[i] < 0.7311f); // sigmoid(1)
    attncl_graph_destroy(g);
    return 0;
}

// The desc of a release that knew only its kind, or one field more, which is `next`.
static int build_with(attncl_context *context, size_t struct_size, unsigned char next)
{
    struct {
        attncl_aft_desc desc;
        unsigned char more[8];
    } given = {ATTNCL_AFT_DESC_INIT, {0}};
    attncl_graph *g = NULL;

    given.desc.struct_size = struct_size;
    given.desc.kind = ATTNCL_AFT_SIMPLE;
    given.desc.causal = 2; // not read where the size leaves it out
    given.more[0] = next;
    CHECK(attncl_graph_create(context, &g) == ATTNCL_OK);
    build(g, &given.desc);
    const attncl_status status = attncl_graph_status(g);
    attncl_graph_destroy(g);
    return (int)status;
}

static int vary_sizes(attncl_context *context)
{
    const size_t size = sizeof(attncl_aft_desc);
    attncl_device_info info = ATTNCL_DEVICE_INFO_INIT;

    CHECK(build_with(context, offsetof(attncl_aft_desc, window), 0) == ATTNCL_OK);
    CHECK(build_with(context, size + 8, 0) == ATTNCL_OK);
    CHECK(build_with(context, size + 8, 1) == ATTNCL_ERR_ARGUMENT);
    CHECK(strstr(attncl_last_error(), "attncl_aft_desc has struct_size"));
    CHECK(build_with(context, 0, 0) == ATTNCL_ERR_ARGUMENT);

    info.struct_size = offsetof(attncl_device_info, name);
    memset(info.name, 'x', sizeof info.name);
    CHECK(attncl_context_device(context, &info) == ATTNCL_OK);
    CHECK(info.platform_name[0] && info.name[0] == 'x'); // beyond the caller's size
    return 0;
}

int main(void)
{
    attncl_context *context = NULL;
    const attncl_status status = attncl_context_create(NULL, &context);

    if (status == ATTNCL_ERR_NO_DEVICE) {
        fprintf(stderr, "skipped: %s\n", attncl_last_error());
        return SKIPPED;
    }
    CHECK(status == ATTNCL_OK);
    CHECK(run_layer(context) == 0);
    CHECK(vary_sizes(context) == 0);
    CHECK(attncl_context_destroy(context) == ATTNCL_OK);
    puts("programs of 0.1 run");
    return 0;
}
