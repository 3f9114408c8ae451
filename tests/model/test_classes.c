// SPDX-License-Identifier: MIT
// The loss of encoders that give scores of classes; test_golden.c has the scores.

#include <math.h>
#include <string.h>

#include "attncl/attncl.h"
#include "support/golden.h"

static attncl_status loss_of(attncl_model *model, const attncl_array *inputs, float *loss_ret)
{
    attncl_value loss;
    attncl_graph *g = test_graph();
    attncl_status status = attncl_model_loss(model, g, NULL, inputs, 2, &loss);
    if (status == ATTNCL_OK) {
        attncl_graph_output(g, "loss", loss);
        ck_ok(attncl_graph_compile(g, NULL));
        for (int i = 0; i < 2; ++i)
            ck_ok(attncl_graph_write_as(g, inputs[i].name, inputs[i].dtype, inputs[i].data,
                                        inputs[i].bytes / attncl_dtype_bytes(inputs[i].dtype)));
        ck_ok(attncl_graph_run(g));
        ck_ok(attncl_graph_read(g, "loss", loss_ret, sizeof *loss_ret));
    }
    attncl_graph_destroy(g);
    return status;
}

TEST(the_loss_is_the_cross_entropy_of_a_class_for_each_sequence)
{
    static const int32_t targets[2] = {4, 1};
    struct golden golden;
    float scores[2][5], loss = 0;
    double want = 0;
    attncl_model *model = golden_open(&golden, "classes_mean");
    attncl_array in[2] = {*golden_input(&golden, "tokens"),
                          {"targets", ATTNCL_I32, 1, {2}, targets, sizeof targets}};
    ck_ok(loss_of(model, in, &loss));
    memcpy(scores, golden_expected(&golden, "output")->data, sizeof scores);
    for (int b = 0; b < 2; ++b) {
        double sum = 0;
        for (int i = 0; i < 5; ++i)
            sum += exp(scores[b][i]);
        want += (log(sum) - scores[b][targets[b]]) / 2;
    }
    ck_assert_msg(fabs(loss - want) <= 1e-5 * want, "the loss is %g, expected %g", (double)loss,
                  want);
    in[1].dim[0] = 1;
    ck_fails(loss_of(model, in, &loss), ATTNCL_ERR_SHAPE, "input targets is [1], must be [2]");
    golden_close(&golden, model);

    model = golden_open(&golden, "encoder_bert");
    in[0] = *golden_input(&golden, "tokens");
    ck_fails(loss_of(model, in, &loss), ATTNCL_ERR_UNSUPPORTED, "n_classes is 0");
    golden_close(&golden, model);
}
