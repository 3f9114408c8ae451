// SPDX-License-Identifier: MIT
//
// Plain GEMMs by a provider that the case names, whatever the library would choose.

#include <string.h>

#include "base/alloc.h"
#include "cases/define.h"
#include "device/context.h"
#include "gemm/gemm.h"
#include "launch/command_list.h"

enum { A, B, C, N_OPERANDS, N_CHECKED_ROWS = 12 };

struct gemm_state {
    struct storage operand[N_OPERANDS];
    struct command_list command_list;
};

static attncl_status put(struct case_data *t, struct storage *s, const struct case_array *a)
{
    s->bytes = case_array_bytes(a);
    TRY(attncl__buffer_create(t->ctx, s->bytes, &s->mem));
    return attncl__buffer_write(t->ctx, s->mem, 0, a->data, s->bytes);
}

static attncl_status append_commands(struct case_data *t, struct gemm_state *p)
{
    const struct sizes *s = &t->c->sizes;
    struct launcher l = {
        .caps = &t->ctx->caps, .command_list = &p->command_list, .gemm = s->provider};
    const struct gemm g = {.batch = 1,
                           .m = s->M,
                           .n = s->N,
                           .k = s->K,
                           .a = {{&p->operand[A]}, 0, s->K, 0},
                           .b = {{&p->operand[B]}, 0, s->N, 0},
                           .c = {{&p->operand[C]}, 0, s->N, 0}};

    TRY(attncl__command_list_begin(t->ctx, &p->command_list));
    return attncl__gemm(&l, &g);
}

static attncl_status open_gemm(struct case_data *t)
{
    const struct sizes *s = &t->c->sizes;
    // There it compiles and runs for seconds, and the library never takes it: one size shows why.
    REQUIRE(strcmp(s->provider, "clblast") != 0 || t->ctx->caps.clblast_allowed || s->N == 512,
            ATTNCL_ERR_UNSUPPORTED, "skipped: CLBlast is slow on CPUs (see the 512 case)");
    struct gemm_state *p = attncl__alloc_zero(sizeof *p);

    REQUIRE(p, ATTNCL_ERR_NO_MEMORY, "state of %s", t->c->name);
    t->state = p;
    const struct case_array *arrays[N_OPERANDS];
    arrays[A] = case_array_add(t, "a", 1, DIMS(1, s->M, s->K));
    arrays[B] = case_array_add(t, "b", 1, DIMS(1, s->K, s->N));
    arrays[C] = case_array_add(t, "y", 0, DIMS(1, s->M, s->N));
    TRY(t->status);
    for (int i = 0; i < N_OPERANDS; ++i)
        TRY(put(t, &p->operand[i], arrays[i]));
    t->flop = 2.0 * (double)s->M * (double)s->N * (double)s->K;
    t->bytes = sizeof(float) * (double)(s->M * s->K + s->K * s->N + s->M * s->N);
    return append_commands(t, p);
}

static attncl_status run_gemm(struct case_data *t)
{
    struct gemm_state *p = t->state;

    return attncl__command_list_enqueue(&p->command_list, 0, NULL, NULL, NULL);
}

static attncl_status read_gemm(struct case_data *t)
{
    const struct gemm_state *p = t->state;
    struct case_array *y = case_array_find(t, "y");

    return attncl__buffer_read(t->ctx, p->operand[C].mem, 0, y->data, case_array_bytes(y));
}

static void close_gemm(struct case_data *t)
{
    struct gemm_state *p = t->state;

    if (!p)
        return;
    attncl__command_list_free(&p->command_list);
    for (int i = 0; i < N_OPERANDS; ++i)
        attncl__buffer_release(&p->operand[i].mem);
    attncl__free(p);
    t->state = NULL;
}

static void check_gemm(const struct case_data *t, struct check *c)
{
    const struct part rows = part_spread(N_CHECKED_ROWS, t->c->sizes.M);

    check_compare(c, (double)t->c->sizes.K, PART(t, "y", ALL, rows, ALL),
                  define_bmm(PART(t, "a", ALL, rows, ALL), case_whole(t, "b")));
}

const struct family bench_device_gemm = {.name = "device_gemm",
                                         .suite = SUITE_DEVICE,
                                         .quantity = QUANTITY_GEMM,
                                         .open = open_gemm,
                                         .run = run_gemm,
                                         .read = read_gemm,
                                         .close = close_gemm,
                                         .check = check_gemm};
