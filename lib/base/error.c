// SPDX-License-Identifier: MIT
//
// Status names, and the calling thread's last error.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"

// Long enough for a path and the names of all architectures.
enum { MESSAGE_BYTES = 2048, WHERE_BYTES = 64 };

static const char out_of_memory[] = "out of memory";

static _Thread_local char last_message[MESSAGE_BYTES];
static _Thread_local char last_where[WHERE_BYTES];

// A message is one line, but a path, a tensor's name or a build log may contain line ends and
// control characters: C0, DEL, and C1 (U+0080 to U+009F, two bytes of UTF-8).
static void replace_control_chars(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; ++p) {
        if (*p < 0x20 || *p == 0x7f)
            *p = ' ';
        else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0)
            p[0] = p[1] = ' ';
    }
}

static void add_prefix(const char *text)
{
    const size_t start = strlen(text) + 2, length = strlen(last_message); // 2: ": "
    if (start >= sizeof last_message)
        return;
    const size_t capacity = sizeof last_message - start;
    const size_t keep = length < capacity ? length : capacity - 1;
    memmove(last_message + start, last_message, keep);
    memcpy(last_message, text, start - 2);
    memcpy(last_message + start - 2, ": ", 2);
    last_message[start + keep] = '\0';
}

attncl_status attncl__prefix_failure(attncl_status status, const char *fmt, ...)
{
    char text[MESSAGE_BYTES];
    va_list args;

    if (status == ATTNCL_OK)
        return status;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    replace_control_chars(text);
    add_prefix(text);
    return status;
}

attncl_status attncl__fail(attncl_status status, const char *file, int line, const char *fmt, ...)
{
    // The arguments may point into last_message, so the text is formatted elsewhere first.
    char text[MESSAGE_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    replace_control_chars(text);
    memcpy(last_message, text, sizeof text);
    // The caller's text says only what the memory was for, unless it passes on a message that has these words.
    if (status == ATTNCL_ERR_NO_MEMORY && !strstr(text, out_of_memory))
        add_prefix(out_of_memory);

    const char *slash = strrchr(file, '/');
    snprintf(last_where, sizeof last_where, "%s:%d", slash ? slash + 1 : file, line);
    return status;
}

const char *attncl_last_error(void)
{
    return last_message;
}

const char *attncl_last_error_where(void)
{
    return last_where;
}

const char *attncl_status_name(attncl_status status)
{
    switch (status) {
#define NAME_OF(name, value, text)                                                                 \
    case ATTNCL_##name:                                                                            \
        return "ATTNCL_" #name;
        ATTNCL_STATUS_LIST(NAME_OF)
#undef NAME_OF
    }
    return "unknown status";
}

const char *attncl_status_text(attncl_status status)
{
    switch (status) {
#define TEXT_OF(name, value, text)                                                                 \
    case ATTNCL_##name:                                                                            \
        return text;
        ATTNCL_STATUS_LIST(TEXT_OF)
#undef TEXT_OF
    }
    return "unknown status";
}
