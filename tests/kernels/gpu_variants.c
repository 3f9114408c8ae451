// SPDX-License-Identifier: MIT
//
// attncl-gpu-variants DIRECTORY: the kernels that the library's rows give each vendor's GPUs, without a GPU.  Each op whose
// spec has `gpu` sizes is launched, with its gradients, on a device that is only described (devices[]), once as if all rows
// fitted and again with one more row refused each time, until none is left.  Every distinct specialisation goes into
// DIRECTORY as a complete source; standard output tells, a line each and tabs between: source, device, kernel, work-group
// size, bytes of local memory passed as arguments, rows refused before, case.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attncl/gradient.h"
#include "attncl/status.h"
#include "base/alloc.h"
#include "device/context.h"
#include "device/program.h"
#include "graph/nodes.h"
#include "launch/command_list.h"
#include "support/launch_mock.h"
#include "support/spec_point.h"

#define GPU(maker, multiple, group, units, local)                                                  \
    {                                                                                              \
        .vendor = (maker), .variant = VARIANT_GPU, .is_gpu = true, .compute_units = (units),       \
        .max_group = (group), .local_bytes = (local), .global_bytes = 16ull << 30,                 \
        .max_buffer_bytes = 4ull << 30, .align_bytes = 128, .vector_width = 4,                     \
        .group_multiple = (multiple), .address_bits = 64                                           \
    }

// As the drivers describe them; tests/kernels/gpu-resources knows which compilers each name is for.
static const struct {
    const char *name;
    struct device_caps caps;
    bool adds; // only what the devices before it have not, back to the last that adds nothing
    enum matrix_instruction mma;
    enum gemm_precision precision;
    size_t unit_local_bytes;
} devices[] = {
    {"nvidia", GPU(VENDOR_NVIDIA, 32, 1024, 132, 49152), false, MMA_NONE, GEMM_F32, 0},
    {"nvidia-80", GPU(VENDOR_NVIDIA, 32, 1024, 132, 49152), true, MMA_PTX, GEMM_F32, 164 << 10},
    {"nvidia-80", GPU(VENDOR_NVIDIA, 32, 1024, 132, 49152), true, MMA_PTX, GEMM_TF32, 164 << 10},
    {"nvidia-80", GPU(VENDOR_NVIDIA, 32, 1024, 132, 49152), true, MMA_PTX, GEMM_BF16, 164 << 10},
    {"cdna", GPU(VENDOR_AMD, 64, 256, 104, 65536), false, MMA_NONE, GEMM_F32, 0},
    {"cdna-mma", GPU(VENDOR_AMD, 64, 256, 104, 65536), true, MMA_MFMA, GEMM_F32, 0},
    {"rdna", GPU(VENDOR_AMD, 32, 256, 40, 65536), false, MMA_NONE, GEMM_F32, 0},
    {"rdna3-mma", GPU(VENDOR_AMD, 32, 256, 40, 65536), true, MMA_WMMA, GEMM_BF16, 0},
    {"rdna4-mma", GPU(VENDOR_AMD, 32, 256, 40, 65536), true, MMA_WMMA_GFX12, GEMM_BF16, 0},
    {"intel", GPU(VENDOR_INTEL, 1, 256, 32, 65536), false, MMA_NONE, GEMM_F32, 0},
    {"arc-mma", GPU(VENDOR_INTEL, 1, 256, 32, 65536), true, MMA_DPAS_8, GEMM_BF16, 0},
    {"xe2-mma", GPU(VENDOR_INTEL, 1, 256, 32, 65536), true, MMA_DPAS_16, GEMM_BF16, 0},
    {"any", GPU(VENDOR_OTHER, 1, 256, 32, 32768), false, MMA_NONE, GEMM_F32, 0},
};
enum { N_DEVICES = sizeof devices / sizeof devices[0], MAX_STEPS = 16, MAX_SEEN = 4096 };
enum { MAX_VALUES = 32 }; // of a node

struct variant_writer {
    attncl_context ctx; // nothing but where sources come from
    const struct device_caps *caps;
    const char *directory, *device;
    char label[SPEC_TEXT_BYTES]; // of the case
    int step, refusals;          // fits() says no to the first `step` different rows
    char refused[MAX_STEPS][KSPEC_DEFINES_BYTES];
    uint32_t seen[MAX_SEEN]; // what this device has already
    size_t n_seen;
};
static struct variant_writer writer;

static uint32_t hash_text(uint32_t hash, const char *text)
{
    for (const char *c = text; *c; ++c)
        hash = (hash ^ (unsigned char)*c) * 16777619u; // FNV-1a
    return hash;
}

static bool fits(const struct kspec *spec, bool no_spills)
{
    struct variant_writer *const w = &writer;

    (void)no_spills;
    for (int i = 0; i < w->refusals; ++i)
        if (strcmp(w->refused[i], spec->defines) == 0)
            return false;
    if (w->refusals == w->step)
        return true;
    strcpy(w->refused[w->refusals++], spec->defines);
    return false;
}

static attncl_status write_source(struct variant_writer *w, const struct kspec *spec,
                                  const char *path)
{
    char *text = NULL;

    TRY(attncl__source_load(&w->ctx, spec->file, &text));
    FILE *file = fopen(path, "wb");
    if (file) {
        fprintf(file, "%s%s", spec->defines, text);
        fclose(file);
    }
    attncl__free(text);
    REQUIRE(file, ATTNCL_ERR_IO, "cannot write %s", path);
    return ATTNCL_OK;
}

static attncl_status launch(const struct kspec *spec, const struct grid *grid)
{
    struct variant_writer *const w = &writer;
    const char *base = strrchr(spec->file, '/');
    struct kspec complete = *spec;
    kspec_set_shuffle(&complete, w->caps);
    const uint32_t program = hash_text(hash_text(2166136261u, spec->file), complete.defines);
    const uint32_t kernel = hash_text(program, spec->kernel);
    char path[512];

    for (size_t i = 0; i < w->n_seen; ++i)
        if (w->seen[i] == kernel)
            return ATTNCL_OK;
    REQUIRE(w->n_seen < MAX_SEEN, ATTNCL_ERR_STATE, "more than %d kernels", MAX_SEEN);
    w->seen[w->n_seen++] = kernel;
    snprintf(path, sizeof path, "%s/%s.%08" PRIx32 ".cl", w->directory,
             base ? base + 1 : spec->file, program);
    TRY(write_source(w, &complete, path));
    printf("%s\t%s\t%s\t%zu\t%zu\t%d\t%s\n", path, w->device, spec->kernel,
           grid->local[0] * grid->local[1] * grid->local[2], launch_mock_local_bytes(), w->step,
           w->label);
    return ATTNCL_OK;
}

// No launch of ours reads or writes it.
static struct storage nothing;

static attncl_status launch_node(struct launcher *l, const attncl_graph *g, const struct node *node)
{
    struct tensor_desc descs[MAX_VALUES];
    struct span spans[MAX_VALUES] = {{0}};
    struct op_call call = {.in = spans, .out = spans + node->cls->n_in};
    size_t scratch = 0;

    attncl__graph_fill_sig(g, node, descs, &call.sig);
    call.sig.caps = l->caps;
    for (int i = 0; i < call.sig.n_in + call.sig.n_out; ++i)
        spans[i].storage = attncl__desc_present(&descs[i]) ? &nothing : NULL;
    if (node->cls->scratch)
        TRY(node->cls->scratch(&call.sig, &scratch));
    call.scratch.storage = &nothing;
    return node->cls->launch(l, &call);
}

// All rows of the node's fallback list; a launch that finds none is the end of it.
static bool write_rows(struct variant_writer *w, struct launcher *l, const attncl_graph *g, int n)
{
    for (w->step = 0; w->step < MAX_STEPS; ++w->step) {
        w->refusals = 0;
        const attncl_status status = launch_node(l, g, &g->nodes[n]);
        const bool end = status == ATTNCL_ERR_UNSUPPORTED || w->refusals < w->step;
        if (status != ATTNCL_OK && !(end && w->step > 0)) {
            fprintf(stderr, "%s on %s: %s\n", w->label, w->device, attncl_last_error());
            return false;
        }
        if (end)
            break;
    }
    return true;
}

static void add_op(attncl_graph *g, const struct spec_point *p, const attncl_value *in,
                   attncl_value *out)
{
    const struct op_class *cls = attncl__op_find(p->spec->op);

    if (!cls) {
        p->spec->build(g, p->c->params, in, out);
        return;
    }
    const attncl_value first = attncl__graph_add(g, cls, p->c->params, in, cls->n_in);
    for (int i = 0; i < cls->n_out; ++i)
        out[i] = attncl__graph_result(g, first, i);
}

// The op of values of which only shapes are known, with the gradients of the inputs `wanted`.
static void build(attncl_graph *g, const struct spec_point *p, unsigned wanted)
{
    attncl_value x[SPEC_MAX_IN] = {{0}}, of[SPEC_MAX_IN], dx[SPEC_MAX_IN];
    attncl_value out[SPEC_MAX_OUT] = {{0}}, y[SPEC_MAX_OUT], dy[SPEC_MAX_OUT];
    size_t n_y = 0, n_x = 0;

    for (int i = 0; i < p->n_in; ++i) {
        int64_t dim[ATTNCL_MAX_RANK];
        const int rank = spec_shape(&p->in_slot[i], &p->sizes, dim);
        if (wanted >> i & 1) // placeholders are one value to gradients
            of[n_x++] = x[i] =
                attncl_graph_input(g, p->in_slot[i].name, p->in_slot[i].dtype, rank, dim);
        else if (p->in_slot[i].present)
            x[i] = attncl__graph_placeholder(g, p->in_slot[i].dtype, rank, dim);
    }
    add_op(g, p, x, out);
    for (int i = 0; i < SPEC_MAX_OUT && wanted; ++i) {
        const attncl_shape s = attncl_graph_shape(g, out[i]);
        if (s.dtype != ATTNCL_F32)
            continue;
        y[n_y] = out[i];
        dy[n_y++] = attncl__graph_placeholder(g, s.dtype, s.rank, s.dim);
    }
    if (wanted)
        attncl_graph_gradient(g, n_y, y, dy, n_x, of, dx);
}

static bool write_point(struct variant_writer *w, struct launcher *l, const struct spec_point *p,
                        unsigned wanted)
{
    attncl_graph *g = NULL;
    bool ok = attncl__graph_create_unbound(&g) == ATTNCL_OK;

    if (!ok)
        return false;
    build(g, p, wanted);
    if (attncl__graph_failed(g)) {
        fprintf(stderr, "%s: %s\n", w->label, g->message);
        ok = false;
    }
    for (int n = 0; ok && n < g->n_nodes; ++n)
        ok = write_rows(w, l, g, n);
    attncl_graph_destroy(g);
    return ok;
}

static const char *sizes_of(const struct op_spec *s, const struct op_case *c)
{
    return c->gpu ? c->gpu : s->gpu ? s->gpu : "";
}

// Whether a case before differs in nothing but what its inputs hold.
static bool is_repeated(const struct op_spec *s, const struct op_case *c)
{
    const struct op_class *cls = attncl__op_find(s->op);

    for (const struct op_case *old = s->cases; old != c; ++old)
        if (strcmp(sizes_of(s, old), sizes_of(s, c)) == 0 &&
            strcmp(old->with ? old->with : "", c->with ? c->with : "") == 0 &&
            (old->params == c->params || (cls && old->params && c->params &&
                                          memcmp(old->params, c->params, cls->params_bytes) == 0)))
            return true;
    return false;
}

static bool write_spec(struct variant_writer *w, struct launcher *l, const struct op_spec *s)
{
    bool ok = true;

    for (const struct op_case *c = s->cases; c == s->cases || c->name; ++c) {
        struct spec_point p = spec_point_of(s, c);
        const unsigned wanted = spec_wanted(&p);
        for (int k = 0;
             *sizes_of(s, c) && !is_repeated(s, c) && spec_sizes_at(sizes_of(s, c), k, &p.sizes);
             ++k) {
            spec_describe(&p, w->label);
            ok &= write_point(w, l, &p, 0); // no output is saved
            ok &= !wanted || write_point(w, l, &p, wanted);
        }
    }
    return ok;
}

int main(int argc, char **argv)
{
    struct variant_writer *w = &writer;
    bool ok = true;

    if (argc != 2) {
        fputs("usage: attncl-gpu-variants DIRECTORY\n", stderr);
        return 2;
    }
    for (size_t d = 0; d < N_DEVICES; ++d) {
        if (!devices[d].adds)
            w->n_seen = 0;
        w->ctx.ignore_environment = true;
        w->directory = argv[1];
        w->device = devices[d].name;
        const struct launch_mock mock = {fits, launch};
        struct device_caps caps = devices[d].caps;
        caps.unit_local_bytes = devices[d].unit_local_bytes;
        caps.mma = devices[d].mma;
        caps.attention_mma = caps.attention_bwd_mma = caps.mma <= MMA_MFMA ? caps.mma : MMA_NONE;
        caps.precision = devices[d].precision;
        caps.shuffle = caps.vendor == VENDOR_NVIDIA  ? SHUFFLE_PTX
                       : caps.vendor == VENDOR_AMD   ? SHUFFLE_AMD
                       : caps.vendor == VENDOR_INTEL ? SHUFFLE_INTEL
                                                     : SHUFFLE_NONE;
        caps.shuffle_lanes = caps.vendor == VENDOR_INTEL ? 8 : caps.group_multiple;
        w->caps = &caps;
        struct launcher l = {.caps = &caps, .gemm = "native"};
        launch_mock_set(&mock);
        for (int i = 0; spec_at(i); ++i)
            ok &= write_spec(w, &l, spec_at(i));
    }
    return ok ? 0 : 1;
}
