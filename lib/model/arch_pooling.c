// SPDX-License-Identifier: MIT
//
// attention_pooling: Nadaraya-Watson kernel regression.

#include <math.h>

#include "attncl/attention.h"
#include "model/arch.h"

struct settings {
    attncl_pooling_kernel kind;
    double sigma;
};

static const struct choice kernels[] = {
    {"gaussian", ATTNCL_POOL_GAUSSIAN},
    {"boxcar", ATTNCL_POOL_BOXCAR},
    {"constant", ATTNCL_POOL_CONSTANT},
    {"epanechikov", ATTNCL_POOL_EPANECHIKOV},
    {0},
};

static attncl_status check(void *settings)
{
    const struct settings *s = settings;
    REQUIRE(s->kind != ATTNCL_POOL_GAUSSIAN || (float)s->sigma != 0, ATTNCL_ERR_FORMAT,
            "sigma is %g, expected a number but 0", s->sigma);
    return ATTNCL_OK;
}

static attncl_value build(struct build *b, const void *settings)
{
    const struct settings *s = settings;
    const attncl_value x = attncl__input(b, "x_train"), y = attncl__input(b, "y_train");
    const attncl_value z = attncl__input(b, "x_val");
    attncl_value weights;
    const attncl_value result =
        attncl_attention_pooling(b->graph, s->kind, (float)s->sigma, x, y, z, &weights);
    attncl_graph_output(b->graph, "y_hat", result);
    attncl_graph_output(b->graph, "attention_w", weights);
    return ATTNCL_NONE_VALUE;
}

const struct arch_class attncl__arch_attention_pooling = {
    .example = "{\"kernel\": \"gaussian\"}",
    .settings_bytes = sizeof(struct settings),
    .keys = KEYS({"kernel", KEY_WORD, AT(settings, kind), .choices = kernels},
                 {"sigma", KEY_NUMBER, AT(settings, sigma), .min = -INFINITY, OR(1),
                  WHEN("kernel", "gaussian")},
                 CHECK(check)),
    .inputs = PORTS(PORT("x_train", F32, "N"), PORT("y_train", F32, "N"), PORT("x_val", F32, "M")),
    .outputs = PORTS(PORT("y_hat", F32, "M"), PORT("attention_w", F32, "N M")),
    .build = build,
};
