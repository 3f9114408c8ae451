// SPDX-License-Identifier: MIT
// Descriptions against the golden files: every parameter, input and output, each shape; a file with
// something missing, mis-shaped or extra.

#include <stdio.h>
#include <string.h>

#include "attncl/describe.h"
#include "base/shape_spec.h"
#include "support/directory.h"
#include "support/golden.h"

FIXTURE(directory_begin, directory_down);

static const char *const archs[] = {
#define ARCH(file, name) #name,
#include "model/arch_list.def"
#undef ARCH
};
enum { N_ARCHS = sizeof archs / sizeof archs[0] };

static const attncl_entry *find_entry(const attncl_description *d, attncl_entry_kind kind,
                                      const char *name)
{
    const attncl_entry *e;
    for (size_t i = 0; (e = attncl_description_at(d, i)) != NULL; ++i)
        if (e->kind == kind && strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

static const struct key_case {
    const char *arch, *key;
    bool optional;
    const char *standard, *condition; // NULL: none
} key_cases[] = {
    {"lm", "layer", false, NULL, NULL},
    {"lm", "max_len", true, "5000", "layer is not feedback_kv, feedback"},
    {"lm", "score", true, NULL, "layer is feedback_kv, feedback"}, // the layer says which
    {"lm", "activation", true, "ReLU", "layer is not gmlp"},
    {"encoder", "embed_scale", true, NULL, "n_vocab is not 0"},
    {"encoder", "final_norm", true, NULL, NULL},
    {"encoder", "n_vocab", true, "0", NULL},
    {"multi_head_attention", "query_size", true, NULL, NULL},
    {"positional_encoding", "max_len", true, NULL, NULL},
    {"optimizer_step", "betas", true, "[0.9, 0.999]", "kind is not sgd"},
    {"train", "model", false, NULL, NULL},
    {"train", "model.d_ffn", false, NULL, "model.arch is lm and model.layer is gmlp"},
};

static void check_text(const struct key_case *c, const char *text, const char *want)
{
    ck_assert_msg(want ? text && strcmp(text, want) == 0 : !text || !*text, "%s: %s: %s", c->arch,
                  c->key, text ? text : "none");
}

TABLE_TEST(keys_have_defaults_and_conditions, key_cases)
{
    const struct key_case *c = &key_cases[_i];
    attncl_description *d = NULL;
    ck_ok(attncl_description_create(c->arch, NULL, 0, &d));
    const attncl_entry *e = find_entry(d, ATTNCL_ENTRY_KEY, c->key);
    ck_assert_msg(e && e->optional == c->optional, "%s: %s", c->arch, c->key);
    check_text(c, e->standard, c->standard);
    check_text(c, e->condition, c->condition);
    attncl_description_destroy(d);
}

// One shape, "[T or 1, B, 4*D]", as the library matches shapes; it has no products and sums, for which
// any extent stands.
static bool one_shape_fits(const char *shape, const attncl_array *a, struct axes *axes)
{
    char text[256], spec[256] = "", *rest;
    const size_t n = strcspn(shape, "]") - 1;
    struct tensor_desc d;
    int axis = 0, n_axes = n > 0;
    snprintf(text, sizeof text, "%.*s", (int)n, shape + 1);
    for (const char *t = text; *t; ++t)
        n_axes += *t == ',';
    for (char *t = strtok_r(text, ",", &rest); t; t = strtok_r(NULL, ",", &rest), ++axis) {
        const int at = a->rank - n_axes + axis; // "..." is the first
        const char *word = t + (*t == ' ');
        if (strpbrk(word, "*+"))
            sprintf(spec + strlen(spec), " %lld", at < 0 ? 0 : (long long)a->dim[at]);
        else
            sprintf(spec + strlen(spec), strstr(word, " or 1") ? " %.1s|1" : " %s", word);
    }
    ck_ok(attncl__desc_make(a->dtype, a->rank, a->dim, &d));
    return attncl__axes_match(axes, spec + (*spec == ' '), a->name, &d) == ATTNCL_OK;
}

static bool shape_fits(const char *shape, const attncl_array *a, struct axes *axes)
{
    const struct axes before = *axes;
    const char *other = strstr(shape, "] or ");
    if (one_shape_fits(shape, a, axes))
        return true;
    *axes = before;
    return other && one_shape_fits(other + strlen("] or "), a, axes);
}

// "input.x" and "x": the name after the prefix; NULL.
static const char *after(const char *name, const char *prefix)
{
    const size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static void check_values(const attncl_safetensors *file, const attncl_description *d,
                         attncl_entry_kind kind, const char *prefix, struct axes *axes)
{
    const attncl_array *a;
    const attncl_entry *e;
    char name[128];
    for (size_t i = 0; (a = attncl_safetensors_at(file, i)) != NULL; ++i) {
        const char *short_name = after(a->name, prefix);
        if (!short_name || after(short_name, "cotangent.") || after(short_name, "grad."))
            continue;
        const char *known = after(short_name, "g.") ? "g.*" : short_name;
        struct axes own; // those have no axes in common
        attncl__axes_init(&own);
        e = find_entry(d, kind, known);
        ck_assert_msg(e != NULL, "%s %s is not described", attncl_description_arch(d), a->name);
        ck_assert_msg(shape_fits(e->shape, a, known == short_name ? axes : &own),
                      "%s: shape of %s is not %s", attncl_description_arch(d), a->name, e->shape);
    }
    for (size_t i = 0; (e = attncl_description_at(d, i)) != NULL; ++i) {
        snprintf(name, sizeof name, "%s%s", prefix, e->name);
        if (e->kind == kind && !e->optional && !strchr(name, '*'))
            ck_assert_msg(attncl_safetensors_find(file, name) != NULL, "%s: no %s in the file",
                          attncl_description_arch(d), name);
    }
}

// True for the first file of its architecture.
static bool check_file(const char *path, bool seen[N_ARCHS])
{
    attncl_safetensors *file;
    attncl_description *d;
    const attncl_entry *e;
    struct axes axes;
    attncl__axes_init(&axes);
    ck_ok(attncl_safetensors_open(path, &file));
    ck_ok(attncl_description_create_for(file, &d));
    int arch = 0;
    while (strcmp(archs[arch], attncl_description_arch(d)) != 0)
        ++arch;
    const bool is_first = !seen[arch];
    seen[arch] = true;
    ck_ok(attncl_description_check(d));
    for (size_t i = 0; (e = attncl_description_at(d, i)) != NULL; ++i) {
        ck_assert_ptr_null(e->problem);
        if (e->kind == ATTNCL_ENTRY_EXTRA)
            ck_assert_msg(after(e->name, "input.") || after(e->name, "expected."),
                          "%s: %s is no parameter", path, e->name);
        if (e->kind == ATTNCL_ENTRY_PARAMETER) {
            const attncl_array *a = attncl_safetensors_find(file, e->name);
            ck_assert(a || e->optional);
            if (!a)
                continue;
            ck_assert_int_eq(a->rank, e->rank);
            ck_assert_mem_eq(a->dim, e->dim, (size_t)e->rank * sizeof *e->dim);
        }
    }
    check_values(file, d, ATTNCL_ENTRY_INPUT, "input.", &axes);
    check_values(file, d, ATTNCL_ENTRY_OUTPUT, "expected.", &axes);
    attncl_description_destroy(d);
    attncl_safetensors_close(file);
    return is_first;
}

// The file with a parameter changed: that one has a problem, no other.
static void check_change(const struct golden *golden, struct golden_change change)
{
    attncl_safetensors *file;
    attncl_description *d;
    const attncl_entry *e;
    const char *path = IN_DIRECTORY("changed.safetensors");
    golden_rewrite(golden, path, change);
    ck_ok(attncl_safetensors_open(path, &file));
    ck_ok(attncl_description_create_for(file, &d));
    for (size_t i = 0; (e = attncl_description_at(d, i)) != NULL; ++i) {
        const bool is_changed = strcmp(e->name, change.parameter) == 0 && e->rank >= 0;
        ck_assert_msg(!e->problem == !is_changed, "%s: %s %s", golden->path, e->name,
                      e->problem ? e->problem : "has no problem");
        if (is_changed)
            ck_assert(
                strstr(e->problem, change.with ? "has shape [9, 1, 2], expected [" : "is missing"));
    }
    ck_fails(attncl_description_check(d), ATTNCL_ERR_FORMAT, change.parameter);
    attncl_description_destroy(d);
    attncl_safetensors_close(file);
}

// Each parameter missing, and of another shape.
static void check_changes(const char *name)
{
    static const float zeros[18];
    const attncl_array with = {"", ATTNCL_F32, 3, {9, 1, 2}, zeros, sizeof zeros};
    struct golden golden;
    attncl_description *d;
    const attncl_entry *e;
    golden_load(&golden, name);
    ck_ok(attncl_description_create_for(golden.file, &d));
    for (size_t i = 0; (e = attncl_description_at(d, i)) != NULL; ++i) {
        if (e->kind != ATTNCL_ENTRY_PARAMETER || e->optional)
            continue;
        check_change(&golden, (struct golden_change){.parameter = e->name});
        check_change(&golden, (struct golden_change){.parameter = e->name, .with = &with});
    }
    attncl_description_destroy(d);
    golden_free(&golden);
}

static void check_golden(const char *name, void *user)
{
    char path[GOLDEN_PATH_BYTES];
    if (after(name, "dropout_"))
        return; // those of dropout are of a loss, which has inputs of its own
    snprintf(path, sizeof path, "%s/%s.safetensors", ATTNCL_TEST_DATA, name);
    if (check_file(path, user))
        check_changes(name);
}

TEST(is_what_the_golden_files_hold)
{
    bool seen[N_ARCHS] = {false};
    golden_each(check_golden, seen);
    for (int i = 0; i < N_ARCHS; ++i)
        ck_assert_msg(seen[i], "no golden file of arch %s", archs[i]);
}

TEST(names_free_axes)
{
    static const struct {
        const char *arch, *config, *name, *shape;
        attncl_entry_kind kind;
        int optional;
    } cases[] = {
        {"linear", "{\"in_features\": 7, \"out_features\": 3}", "x", "[..., 7]", ATTNCL_ENTRY_INPUT,
         0},
        {"linear", "{\"in_features\": 7, \"out_features\": 3}", "output", "[..., 3]",
         ATTNCL_ENTRY_OUTPUT, 0},
        {"linear", "{\"in_features\": 7, \"out_features\": 3}", "bias", "[3]",
         ATTNCL_ENTRY_PARAMETER, 0},
        {"softmax", "{\"dim\": 5}", "output", "[...]", ATTNCL_ENTRY_OUTPUT, 0},
        {"mha", "{\"d_model\": 6, \"heads\": 3}", "key", "[S, B, 6]", ATTNCL_ENTRY_INPUT, 0},
        {"mha", "{\"d_model\": 6, \"heads\": 3}", "mask", "[T or 1, S, B or 1]", ATTNCL_ENTRY_INPUT,
         1},
        {"mha", "{\"d_model\": 6, \"heads\": 3}", "attn", "[T, S, B, 3]", ATTNCL_ENTRY_OUTPUT, 0},
        {"transpose_qkv", "{\"num_heads\": 4}", "X", "[B, T, 4*D]", ATTNCL_ENTRY_INPUT, 0},
        {"transpose_qkv", "{\"num_heads\": 4}", "output", "[4*B, T, D]", ATTNCL_ENTRY_OUTPUT, 0},
        {"masked_softmax", "{}", "valid_lens", "[B, Q] or [B]", ATTNCL_ENTRY_INPUT, 1},
        {"gmlp_block", "{\"d_model\": 6, \"d_ffn\": 8, \"seq_len\": 1}", "sgu.weight", "[1, 1]",
         ATTNCL_ENTRY_PARAMETER, 0},
        {"aft_local", "{\"d_model\": 6, \"seq_len\": 9, \"local_window_size\": 3}", "local_mask",
         "[9, 9]", ATTNCL_ENTRY_BUFFER, 1},
        {"lm",
         "{\"layer\": \"aft_simple\", \"d_model\": 6, \"d_ff\": 8, \"n_layers\": 1, \"n_vocab\": "
         "5}",
         "loss", "[]", ATTNCL_ENTRY_OUTPUT, 1},
        {"lm_sample",
         "{\"layer\": \"aft_simple\", \"d_model\": 6, \"d_ff\": 8, \"n_layers\": 1, \"n_vocab\": "
         "5, "
         "\"steps\": 2}",
         "tokens", "[T + 2, B]", ATTNCL_ENTRY_OUTPUT, 0},
        // Tables of that width would take 17 GB.
        {"relative_shift", "{\"num_hiddens\": 2147483646, \"delta\": 2}", "output",
         "[..., 2147483646]", ATTNCL_ENTRY_OUTPUT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        attncl_description *d;
        ck_ok(attncl_description_create(cases[i].arch, cases[i].config, 0, &d));
        const attncl_entry *e = find_entry(d, cases[i].kind, cases[i].name);
        ck_assert_msg(e != NULL, "%s %s", cases[i].arch, cases[i].name);
        ck_assert_str_eq(e->shape, cases[i].shape);
        ck_assert_int_eq(e->optional, cases[i].optional);
        attncl_description_destroy(d);
    }
}

// -- files that do not fit

static void describe_file(const char *path, attncl_safetensors **file, attncl_description **d)
{
    ck_ok(attncl_safetensors_open(path, file));
    ck_ok(attncl_description_create_for(*file, d));
}

TEST(says_what_a_file_lacks)
{
    struct golden golden;
    attncl_safetensors *file;
    attncl_description *d;
    attncl_model *model;
    golden_load(&golden, "mha");

    const char *path = IN_DIRECTORY("missing.safetensors");
    // another architecture's file: everything is missing, and what is there is extra
    const char *config = "{\"in_features\": 7, \"out_features\": 3}";
    golden_rewrite(&golden, path, (struct golden_change){.arch = "linear", .config = config});
    describe_file(path, &file, &d);
    ck_assert_ptr_nonnull(find_entry(d, ATTNCL_ENTRY_EXTRA, "query.linear.weight"));
    ck_fails(attncl_description_check(d), ATTNCL_ERR_FORMAT, "parameters weight, bias are missing");
    ck_fails(attncl_model_open(test_context(), path, NULL, &model), ATTNCL_ERR_FORMAT,
             "parameters weight, bias are missing");
    attncl_description_destroy(d);
    attncl_safetensors_close(file);

    config = "{\"layer\": \"transformer\", \"d_model\": 6, \"heads\": 3, \"d_ff\": 8, "
             "\"n_layers\": 2000000000}";
    golden_rewrite(&golden, path, (struct golden_change){.arch = "encoder", .config = config});
    ck_fails(attncl_model_open(test_context(), path, NULL, &model), ATTNCL_ERR_FORMAT,
             " and at least 990 more");
    describe_file(path, &file, &d);
    attncl_description_destroy(d);
    attncl_safetensors_close(file);
    golden_free(&golden);
}

TEST(refuses)
{
    attncl_description *d;
    ck_fails(attncl_description_create(NULL, "{}", 0, &d), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_fails(attncl_description_create("linear", "{}", 0, NULL), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_fails(attncl_description_create_for(NULL, &d), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_fails(attncl_description_create("linaer", "{}", 0, &d), ATTNCL_ERR_FORMAT, "linaer");
    ck_fails(attncl_description_create("linear", "{}", 0, &d), ATTNCL_ERR_FORMAT, "in_features");
    ck_fails(attncl_description_create("linear", "[", 0, &d), ATTNCL_ERR_FORMAT, "attncl.config");
    ck_fails(attncl_description_create("encoder",
                                       "{\"layer\": \"aft_simple\", \"d_model\": 6, \"d_ff\": 8, "
                                       "\"n_layers\": 2000000000}",
                                       0, &d),
             ATTNCL_ERR_FORMAT, "200000 parameters");
    attncl_description_destroy(NULL);
    ck_assert_uint_eq(attncl_description_count(NULL), 0);
    ck_assert_ptr_null(attncl_description_at(NULL, 0));
    ck_assert_ptr_null(attncl_description_arch(NULL));
}
