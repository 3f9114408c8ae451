// SPDX-License-Identifier: MIT
// The heap: counting blocks, failing on demand, refusing sizes that overflow.

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "support/test.h"

NO_DEVICE;

TEST(blocks_are_counted)
{
    const size_t before = attncl__alloc_live();
    char *a = attncl__alloc(0), *b = attncl__alloc_zero(100), *c = attncl__copy_text("text");
    char *d = attncl__copy_bytes("a\0b", 3), *e = attncl__copy_bytes(NULL, 0);
    int *f = attncl__alloc_array(10, sizeof *f), *g = attncl__grow_array(NULL, 3, sizeof *g);

    ck_assert(a && b && c && d && e && f && g);
    ck_assert_uint_eq(attncl__alloc_live(), before + 7);
    for (int i = 0; i < 100; ++i)
        ck_assert_int_eq(b[i], 0);
    for (int i = 0; i < 10; ++i)
        ck_assert_int_eq(f[i], 0);
    ck_assert_str_eq(c, "text");
    ck_assert_mem_eq(d, "a\0b", 4);
    ck_assert_str_eq(e, "");

    g[2] = 42;
    int *grown = attncl__grow_array(g, 1000, sizeof *g);
    ck_assert(grown && grown[2] == 42);
    ck_assert_uint_eq(attncl__alloc_live(), before + 7);

    attncl__free(a), attncl__free(b), attncl__free(c), attncl__free(d);
    attncl__free(e), attncl__free(f), attncl__free(grown), attncl__free(NULL);
    ck_assert_uint_eq(attncl__alloc_live(), before);
}

TEST(sizes_that_overflow_are_refused)
{
    const size_t before = attncl__alloc_live();
    char *kept = attncl__alloc(1);
    ck_assert_ptr_null(attncl__alloc_array(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(attncl__grow_array(kept, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(attncl__copy_bytes("", SIZE_MAX));
    attncl__free(kept);
    ck_assert_uint_eq(attncl__alloc_live(), before);
}

TEST(the_nth_request_fails_once)
{
    void *p[5];
    attncl__alloc_fail_at(3);
    for (int i = 0; i < 5; ++i) {
        p[i] = i == 2 ? attncl__grow_array(p[0], 2, 8) : attncl__alloc(8);
        ck_assert_int_eq(p[i] == NULL, i == 2);
        ck_assert_int_eq(attncl__alloc_has_failed(), i >= 2);
    }
    attncl__alloc_fail_at(0);
    ck_assert(!attncl__alloc_has_failed());
    for (int i = 0; i < 5; ++i)
        attncl__free(p[i]); // p[0] was kept when growing it failed
}

enum { N_THREADS = 4, N_REQUESTS = 2000 };

static void *request_often(void *n_failed)
{
    for (int i = 0; i < N_REQUESTS; ++i) {
        void *p = attncl__alloc(16);
        *(int *)n_failed += p == NULL;
        attncl__free(p);
    }
    return NULL;
}

TEST(one_request_fails_whatever_the_threads)
{
    pthread_t thread[N_THREADS];
    int n_failed[N_THREADS] = {0}, sum = 0;
    const size_t before = attncl__alloc_live();
    attncl__alloc_fail_at(N_REQUESTS);
    for (int i = 0; i < N_THREADS; ++i)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, request_often, &n_failed[i]), 0);
    for (int i = 0; i < N_THREADS; ++i) {
        pthread_join(thread[i], NULL);
        sum += n_failed[i];
    }
    attncl__alloc_fail_at(0);
    ck_assert_int_eq(sum, 1);
    ck_assert_uint_eq(attncl__alloc_live(), before);
}

TEST(a_list_grows_when_it_is_full)
{
    size_t capacity = 0;
    int *list = NULL;

    for (size_t n = 0; n < 100; ++n) {
        const size_t before = capacity;
        ck_assert(GROW_LIST(list, n, capacity));
        ck_assert_uint_gt(capacity, n);
        ck_assert(n < before ? capacity == before : capacity > before);
        list[n] = (int)n;
    }
    for (int n = 0; n < 100; ++n)
        ck_assert_int_eq(list[n], n);
    const size_t before = capacity;
    attncl__alloc_fail_at(1);
    ck_assert(!GROW_LIST(list, capacity, capacity));
    attncl__alloc_fail_at(0);
    ck_assert_uint_eq(capacity, before);
    attncl__free(list);
}
