// SPDX-License-Identifier: MIT
// Expanding the includes of kernel sources.

#include <string.h>

#include "base/alloc.h"
#include "device/program.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

static attncl_context anywhere; // only its setting about the environment is read
static size_t heap_before;

static void set_up(void)
{
    heap_before = attncl__alloc_live();
    setenv("ATTNCL_CL_DIR", directory_up(), 1);
}

static void tear_down(void)
{
    unsetenv("ATTNCL_CL_DIR");
    directory_down();
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t n = 0;
    for (; (text = strstr(text, part)); ++text)
        ++n;
    return n;
}

FIXTURE(set_up, tear_down);

TEST(includes_are_replaced_once)
{
    char *text = NULL;

    directory_write("op/a.cl",
                    "// first\n#include \"common/x.clh\"\n  #  include <none>\n\t#include  "
                    "\"common/y.clh\"\nint last;");
    directory_write("common/x.clh", "int x;\n#include \"common/y.clh\"\nint after_y;\n");
    directory_write("common/y.clh", "int y;\n#include \"common/x.clh\"\n");
    ck_ok(attncl__source_load(&anywhere, "op/a.cl", &text));
    ck_assert_str_eq(text, "#line 1 \"op/a.cl\"\n"
                           "// first\n"
                           "#line 1 \"common/x.clh\"\n"
                           "int x;\n"
                           "#line 1 \"common/y.clh\"\n"
                           "int y;\n"
                           "\n"
                           "#line 3 \"common/x.clh\"\n"
                           "int after_y;\n"
                           "#line 3 \"op/a.cl\"\n"
                           "  #  include <none>\n"
                           "\n"
                           "int last;\n");
    attncl__free(text);
}

TEST(an_empty_file_is_a_text)
{
    char *text = NULL;

    directory_write("op/a.cl", "");
    ck_ok(attncl__source_load(&anywhere, "op/a.cl", &text));
    ck_assert_str_eq(text, "#line 1 \"op/a.cl\"\n");
    attncl__free(text);
}

TEST(missing_files_are_named)
{
    char *text = NULL;

    directory_write("op/a.cl", "\n\n#include \"common/gone.clh\"\n");
    ck_fails(attncl__source_load(&anywhere, "op/a.cl", &text), ATTNCL_ERR_IO, "common/gone.clh");
    ck_assert_ptr_nonnull(strstr(attncl_last_error(), "op/a.cl:3"));
    ck_fails(attncl__source_load(&anywhere, "op/b.cl", &text), ATTNCL_ERR_IO, "op/b.cl");
    directory_write("op/c.cl", "#include \"../../etc/passwd\"\n");
    ck_fails(attncl__source_load(&anywhere, "op/c.cl", &text), ATTNCL_ERR_ARGUMENT, "passwd");
    ck_fails(attncl__source_load(&anywhere, "/etc/passwd", &text), ATTNCL_ERR_ARGUMENT, "passwd");
    unsetenv("ATTNCL_CL_DIR");
    ck_fails(attncl__source_load(&anywhere, "op/gone.cl", &text), ATTNCL_ERR_STATE, "op/gone.cl");
    ck_assert_ptr_null(text);
}

TEST(what_is_embedded_is_complete)
{
    unsetenv("ATTNCL_CL_DIR");
    ck_assert_uint_gt(attncl__n_sources, 0);
    for (size_t i = 0; i < attncl__n_sources; ++i) {
        char *text = NULL;

        ck_ok(attncl__source_load(&anywhere, attncl__sources[i].file, &text));
        ck_assert_uint_eq(occurrences(text, "#include"), 0);
        ck_assert_uint_ge(strlen(text), attncl__sources[i].n_bytes / 2);
        attncl__free(text);
    }
}
