// SPDX-License-Identifier: MIT
// The tuning table: which lines of a file are entries, what is logged of those left out, and which
// files are read at all.

#define _GNU_SOURCE // setenv, symlink, mkfifo
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attncl/log.h"
#include "attncl/tune.h"
#include "attncl/version.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "store/tuning_table.h"
#include "support/directory.h"
#include "support/test.h"

NO_DEVICE;

#define FIRST "attncl-tune 1 " ATTNCL_VERSION_STRING "\n"
#define GOOD  "dev\tdrv\tgemm_cpu\tlarge\tTM=192 TN=128 TK=256\n"

static struct tune_table table;
static char log_text[8192];
static size_t heap_before;

static void remember(attncl_log_level level, const char *text, void *user)
{
    const size_t used = strlen(log_text);

    (void)user;
    if (level <= ATTNCL_LOG_WARN)
        snprintf(log_text + used, sizeof log_text - used, "%s\n", text);
}

static int parse_bytes(const char *text, size_t n)
{
    memset(&table, 0, sizeof table);
    log_text[0] = '\0';
    attncl_log_set(remember, NULL, ATTNCL_LOG_WARN);
    const int taken = attncl__tuned_parse(text, n, "F", "dev", "drv", &table);
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    return taken;
}

static int parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

TEST(entries_of_this_device_are_taken)
{
    ck_assert_int_eq(parse(FIRST "# a comment\n\n" GOOD
                                 "other\tdrv\tgemm_cpu\tlarge\tTM=6 TN=8 TK=16\n"
                                 "dev\tnewer\tgemm_cpu\tmedium\tTM=6 TN=8 TK=16\n"
                                 "dev\tdrv\tgemm_cpu\tsmall\tTM=1536 TN=8 TK=16\n"
                                 "dev\tdrv\trows_cpu\twide\tVW=8 ELEMENTS=4096"),
                     3);
    ck_assert_str_eq(log_text, "");
    const struct tune_entry *entry = &table.entries[TUNE_GEMM_CPU][TUNE_LARGE];
    ck_assert_int_eq(entry->line, 4);
    ck_assert_int_eq(entry->value[GEMM_CPU_TM], 192);
    ck_assert_int_eq(entry->value[GEMM_CPU_TK], 256);
    ck_assert_int_eq(table.entries[TUNE_GEMM_CPU][TUNE_MEDIUM].line, 0); // another driver's
    ck_assert_int_eq(table.entries[TUNE_ROWS_CPU][TUNE_WIDE].value[ROWS_CPU_ELEMENTS], 4096);
    ck_assert_int_eq(table.entries[TUNE_ROWS_CPU][TUNE_WIDE].value[ROWS_CPU_VW], 8);
    // What a cell and a line cannot hold is a space in a device's name.
    static const char odd[] = FIRST " a b\tdrv\tgemm_cpu\tlarge\tTM=192 TN=128 TK=256\n";
    memset(&table, 0, sizeof table);
    ck_assert_int_eq(attncl__tuned_parse(odd, sizeof odd - 1, "F", "#a\tb", "drv", &table), 1);
}

static const struct {
    const char *line, *words;
} bad[] = {
    {"dev\tdrv\tgemm_cpu\tlarge", "5 cells"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=192\tTN=128 TK=256", "5 cells"},
    {"nonsense", "5 cells"},
    {"dev\tdrv\tgemm_xpu\tlarge\tTM=192 TN=128 TK=256", "this class"},
    {"dev\tdrv\tgemm_cpu\thuge\tTM=192 TN=128 TK=256", "this class"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=192 TN=128", "TK is missing"},
    {"dev\tdrv\tgemm_cpu\tlarge\t", "TM is missing"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=192 TM=192 TN=128 TK=256", "twice"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=192 TN=128 TK=256 TX=1", "no value of this name"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=193 TN=128 TK=256", "6 to 1536, multiples of 6"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=0 TN=128 TK=256", "TM = 0"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=-6 TN=128 TK=256", "NAME=NUMBER"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=99999999999999999999 TN=128 TK=256", "NAME=NUMBER"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=192TN=128 TK=256", "NAME=NUMBER"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM= TN=128 TK=256", "NAME=NUMBER"},
    {"dev\tdrv\tgemm_cpu\tlarge\tTM=192  TN=128 TK=256", "NAME=NUMBER"},
    {"dev\tdrv\trows_cpu\twide\tVW=12 ELEMENTS=4096", "powers of 2"},
    {"dev\tdrv\trows_gpu\twide\tLS=1024", "LS = 1024"},
};

LOOP_TEST(a_bad_line_is_named_and_left_out, 0, COUNT_OF(bad))
{
    char text[512];

    snprintf(text, sizeof text, FIRST "%s\n" GOOD, bad[_i].line);
    ck_assert_int_eq(parse(text), 1);
    ck_assert_msg(strncmp(log_text, "F:2: ", 5) == 0, "%s", log_text);
    ck_assert_msg(strstr(log_text, bad[_i].words), "'%s' lacks '%s'", log_text, bad[_i].words);
    ck_assert_int_eq(table.entries[TUNE_GEMM_CPU][TUNE_LARGE].line, 3);
}

TEST(a_second_entry_for_the_same_is_left_out)
{
    ck_assert_int_eq(parse(FIRST GOOD "dev\tdrv\tgemm_cpu\tlarge\tTM=6 TN=8 TK=16\n"), 1);
    ck_assert_ptr_nonnull(strstr(log_text, "F:3: line 2 has this entry"));
    ck_assert_int_eq(table.entries[TUNE_GEMM_CPU][TUNE_LARGE].value[GEMM_CPU_TM], 192);
}

TEST(a_file_of_another_version_is_left_out)
{
    ck_assert_int_eq(parse("attncl-tune 1 9.9.9\n" GOOD), 0);
    ck_assert_ptr_nonnull(strstr(log_text, "F:1: "));
    ck_assert_int_eq(parse(GOOD), 0);
    ck_assert_int_eq(parse(""), 0);
}

TEST(many_bad_lines_are_not_all_logged)
{
    struct strbuf t = STRBUF_EMPTY;

    attncl__strbuf_add(&t, "%s", FIRST);
    for (int i = 0; i < 1000; ++i)
        attncl__strbuf_add(&t, "x\n");
    ck_assert_int_eq(parse(t.data), 0);
    ck_assert_ptr_nonnull(strstr(log_text, "992 more lines"));
    ck_assert_uint_lt(strlen(log_text), 1000);
    attncl__strbuf_free(&t);
}

TEST(merging_keeps_what_was_not_measured)
{
    static const char old[] = FIRST "# gone\n" GOOD "dev\tdrv\tgemm_cpu\tsmall\tTM=6 TN=8 TK=16\n"
                                    "other\tdrv\tgemm_cpu\tlarge\tTM=6 TN=8 TK=16\n"
                                    "rubbish\n";
    bool measured[N_TUNABLES][TUNE_MAX_CLASSES] = {{false}};
    struct tune_table found = {.path = NULL};
    struct strbuf t = STRBUF_EMPTY;

    measured[TUNE_GEMM_CPU][TUNE_LARGE] = measured[TUNE_ROWS_CPU][TUNE_WIDE] = true;
    found.entries[TUNE_ROWS_CPU][TUNE_WIDE].line = 1;
    found.entries[TUNE_ROWS_CPU][TUNE_WIDE].value[ROWS_CPU_ELEMENTS] = 4096;
    found.entries[TUNE_ROWS_CPU][TUNE_WIDE].value[ROWS_CPU_VW] = 8;
    attncl__tuned_merge(old, sizeof old - 1, "dev", "drv", &found, measured, &t);
    ck_assert(!t.failed);
    ck_assert_int_eq(parse(t.data), 2);
    ck_assert_str_eq(log_text, "");
    ck_assert_int_eq(table.entries[TUNE_GEMM_CPU][TUNE_LARGE].line, 0); // measured: no gain
    ck_assert_int_ne(table.entries[TUNE_GEMM_CPU][TUNE_SMALL].line, 0);
    ck_assert_int_eq(table.entries[TUNE_ROWS_CPU][TUNE_WIDE].value[ROWS_CPU_VW], 8);
    ck_assert_ptr_nonnull(strstr(t.data, "other\tdrv"));
    ck_assert_ptr_null(strstr(t.data, "rubbish"));
    attncl__strbuf_free(&t);
}

static void files_up(void)
{
    directory_begin();
    heap_before = attncl__alloc_live();
    log_text[0] = '\0';
    attncl_log_set(remember, NULL, ATTNCL_LOG_WARN);
}

static void files_down(void)
{
    attncl_log_set(NULL, NULL, ATTNCL_LOG_WARN);
    ck_assert_uint_eq(attncl__alloc_live(), heap_before);
    directory_down();
    setenv("ATTNCL_TUNE", "off", 1);
    unsetenv("XDG_CONFIG_HOME");
}

FIXTURE(files_up, files_down);

static const struct tuning_key key = {"dev", "drv", false};

static bool finds_entries(void)
{
    log_text[0] = '\0';
    struct tune_table *found = attncl__tuning_load(&key);
    const bool has = found && found->entries[TUNE_GEMM_CPU][TUNE_LARGE].line;
    attncl__tuning_free(found);
    return has;
}

TEST(the_file_is_in_the_users_configuration)
{
    directory_write("attncl/tune.txt", FIRST GOOD);
    unsetenv("ATTNCL_TUNE");
    setenv("XDG_CONFIG_HOME", IN_DIRECTORY("."), 1);
    ck_assert(finds_entries());
    setenv("ATTNCL_TUNE", "off", 1);
    ck_assert(!finds_entries());
    setenv("ATTNCL_TUNE", IN_DIRECTORY("attncl/tune.txt"), 1);
    ck_assert(finds_entries());
    ck_assert_ptr_null(attncl__tuning_load(&(struct tuning_key){"dev", "drv", true}));
    setenv("ATTNCL_TUNE", IN_DIRECTORY("nothing"), 1);
    ck_assert(!finds_entries());
    ck_fails(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", false}, false),
             ATTNCL_ERR_ARGUMENT, "there is no such file");
    directory_write("attncl/other.txt", "hello\n");
    setenv("ATTNCL_TUNE", IN_DIRECTORY("attncl/other.txt"), 1);
    ck_fails(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", false}, false),
             ATTNCL_ERR_ARGUMENT, "other.txt: no tuning file, which begins with attncl-tune");
    ck_fails(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", false}, true),
             ATTNCL_ERR_ARGUMENT, "other.txt: no tuning file, which begins with attncl-tune");
    ck_assert_int_eq(truncate(IN_DIRECTORY("attncl/other.txt"), 70000), 0);
    ck_fails(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", false}, true),
             ATTNCL_ERR_ARGUMENT, "other.txt, which would be replaced: ");
    ck_fails(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", false}, false),
             ATTNCL_ERR_ARGUMENT, "other.txt, which is not read: ");
    directory_write("attncl/other.txt", "attncl-tune 1 0.0.9\n");
    ck_ok(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", false}, true));
    ck_ok(attncl__tuning_check_file(&(struct tuning_key){"dev", "drv", true}, false));
    unsetenv("ATTNCL_TUNE");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    char *home = getenv("HOME") ? attncl__copy_text(getenv("HOME")) : NULL;
    unsetenv("HOME");
    ck_assert(!finds_entries());
    ck_assert_str_eq(log_text, "");
    if (home)
        setenv("HOME", home, 1);
    attncl__free(home);
}

TEST(a_file_that_others_could_have_written_is_not_read)
{
    char path[FILE_BYTES], to[FILE_BYTES];

    directory_write("own/tune.txt", FIRST GOOD);
    directory_path("own/tune.txt", path);
    setenv("ATTNCL_TUNE", path, 1);
    ck_assert(finds_entries());
    ck_assert_int_eq(chmod(path, 0620), 0);
    ck_assert(!finds_entries());
    ck_assert_ptr_nonnull(strstr(log_text, "writable by others"));
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert_int_eq(chmod(IN_DIRECTORY("own"), 0707), 0);
    ck_assert(!finds_entries());
    ck_assert_ptr_nonnull(strstr(log_text, "others can write"));
    ck_assert_int_eq(chmod(IN_DIRECTORY("own"), 0700), 0);
    ck_assert_int_eq(symlink(path, directory_path("own/link", to)), 0);
    setenv("ATTNCL_TUNE", to, 1);
    ck_assert(!finds_entries());
    ck_assert_int_eq(mkfifo(directory_path("own/pipe", to), 0600), 0);
    setenv("ATTNCL_TUNE", to, 1);
    ck_assert(!finds_entries()); // and does not wait
    ck_assert_int_eq(truncate(path, 70000), 0);
    setenv("ATTNCL_TUNE", path, 1);
    ck_assert(!finds_entries());
    ck_assert_ptr_nonnull(strstr(log_text, "impossible size"));
}

TEST(entries_are_stored_for_this_user_alone)
{
    bool measured[N_TUNABLES][TUNE_MAX_CLASSES] = {{false}};
    struct tune_table found = {.path = NULL};
    char *path = NULL;
    struct stat st;

    measured[TUNE_GEMM_CPU][TUNE_LARGE] = true;
    found.entries[TUNE_GEMM_CPU][TUNE_LARGE] =
        (struct tune_entry){.value = {96, 128, 64}, .line = 1};
    unsetenv("ATTNCL_TUNE");
    setenv("XDG_CONFIG_HOME", IN_DIRECTORY("new/config"), 1);
    ck_ok(attncl__tuning_store(&key, &found, measured, &path));
    ck_assert_str_eq(path, IN_DIRECTORY("new/config/attncl/tune.txt"));
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(stat(IN_DIRECTORY("new/config/attncl"), &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0700);
    attncl__free(path);
    path = NULL;
    ck_assert(finds_entries());
    ck_assert_uint_eq(directory_count(), 1); // nothing temporary

    setenv("ATTNCL_TUNE", "off", 1);
    ck_fails(attncl__tuning_store(&key, &found, measured, &path), ATTNCL_ERR_IO, "off");
    setenv("ATTNCL_TUNE", "/proc/no/such/tune.txt", 1);
    ck_fails(attncl__tuning_store(&key, &found, measured, &path), ATTNCL_ERR_IO, "/proc/no/such");
    ck_assert_ptr_null(path);
}

#define OF(device, values) device "\tdrv\tgemm_cpu\tlarge\t" values "\n"

static char *content(const char *name)
{
    static char text[4096];
    FILE *file = fopen(IN_DIRECTORY(name), "r");

    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

TEST(entries_of_several_files_are_merged)
{
    static const char comment[] =
        "# device, driver, kernel, class of shapes, values; by attncl tune\n";
    char a[FILE_BYTES], b[FILE_BYTES], out[FILE_BYTES], want[1024];
    const char *const paths[] = {directory_path("a.txt", a), directory_path("b.txt", b)};
    size_t n = 0;

    directory_path("out.txt", out);
    unsetenv("ATTNCL_TUNE");
    setenv("XDG_CONFIG_HOME", IN_DIRECTORY("user"), 1);
    ck_fails(attncl_tuning_export(out, &n), ATTNCL_ERR_STATE, "attncl tune");
    ck_assert_uint_eq(directory_count(), 0);
    directory_write("a.txt", FIRST "# a comment\n" OF("own", "TM=96 TN=64 TK=256")
                                 OF("a", "TM=96 TN=64 TK=256"));
    directory_write("b.txt", FIRST OF("b", "TM=6 TN=8 TK=16") OF("own", "TM=192 TN=64 TK=256"));
    ck_ok(attncl_tuning_import(paths, 1, &n));
    ck_assert_uint_eq(n, 2);
    ck_ok(attncl_tuning_import(paths, 2, &n));
    ck_assert_uint_eq(n, 3);
    ck_ok(attncl_tuning_export(out, &n));
    ck_assert_uint_eq(n, 3);
    snprintf(want, sizeof want,
             FIRST "%s" OF("own", "TM=192 TN=64 TK=256") OF("a", "TM=96 TN=64 TK=256")
                 OF("b", "TM=6 TN=8 TK=16"),
             comment);
    ck_assert_str_eq(content("out.txt"), want);
    ck_assert_str_eq(content("user/attncl/tune.txt"), want);
    // With a file that is not right nothing is taken.
    const char *const damaged[][2] = {
        {"attncl-tune 1 0.0.9\n", "0.0.9"},
        {"", "begins with \"\""},
        {FIRST "\n" OF("b", "TM=7 TN=8 TK=16"), "b.txt:3: TM = 7"},
        {FIRST "b\tdrv\tgemm_xpu\tlarge\tTM=6\n", "b.txt:2: no kernel"},
        {FIRST "b drv\n", "b.txt:2: an entry has 5 cells"}};
    directory_write("a.txt", FIRST OF("new", "TM=96 TN=64 TK=256"));
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; ++i) {
        directory_write("b.txt", damaged[i][0]);
        ck_fails(attncl_tuning_import(paths, 2, &n), ATTNCL_ERR_FORMAT, damaged[i][1]);
        ck_assert_str_eq(content("user/attncl/tune.txt"), want);
    }
    unlink(b);
    ck_fails(attncl_tuning_import(paths, 2, &n), ATTNCL_ERR_IO, "b.txt");
    ck_fails(attncl_tuning_import(paths, 0, &n), ATTNCL_ERR_ARGUMENT, "0 tuning files");
    ck_fails(attncl_tuning_import((const char *const[]){NULL}, 1, &n), ATTNCL_ERR_ARGUMENT, "NULL");
    ck_fails(attncl_tuning_export(IN_DIRECTORY("none/out.txt"), &n), ATTNCL_ERR_IO, "none");
    setenv("ATTNCL_TUNE", "off", 1);
    ck_fails(attncl_tuning_import(paths, 1, &n), ATTNCL_ERR_IO, "off");
    ck_assert_uint_eq(n, 3);
}
