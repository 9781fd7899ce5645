#ifndef HELPER_TEXT_H
#define HELPER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Text that grows; begins as {0}. */
struct text {
  char *bytes;
  size_t length, room;
};

void text_add(struct text *text, const void *bytes, size_t length);
void text_free(struct text *text);
void text_say(struct text *text, const char *words);
__attribute__((format(printf, 2, 3))) void text_format(struct text *text, const char *format, ...);

/* Adds a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void text_json(struct text *text, const char *bytes, size_t length);

/* Adds bytes as base64, without quotes. */
void text_base64(struct text *text, const char *bytes, size_t length);

/* Finds fields that each end with NUL; those that are missing are "". Returns the number of those that are there, `most` at most. */
size_t split_fields(const char *bytes, size_t length, const char **fields, size_t most);

/* Reports whether the bytes are UTF-8. */
bool is_utf8(const char *bytes, size_t length);

#endif
