#define _GNU_SOURCE
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const void *bytes, size_t length) {
  if (text->length + length > text->room) {
    text->room = (text->length + length) * 2 + 256;
    text->bytes = realloc(text->bytes, text->room);
    if (!text->bytes) _Exit(1);
  }
  if (length > 0) memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
}

void text_free(struct text *text) {
  free(text->bytes);
  *text = (struct text){0};
}

void text_say(struct text *text, const char *words) { text_add(text, words, strlen(words)); }

void text_format(struct text *text, const char *format, ...) {
  char *words;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&words, format, arguments);
  va_end(arguments);
  if (length < 0) _Exit(1);
  text_add(text, words, (size_t)length);
  free(words);
}

size_t split_fields(const char *bytes, size_t length, const char **fields, size_t most) {
  const char *at = bytes, *end = bytes + length;
  size_t found = 0;
  for (size_t i = 0; i < most; i++) {
    const char *nul = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
    fields[i] = nul ? at : "";
    if (!nul) continue;
    at = nul + 1;
    found++;
  }
  return found;
}

/* Returns the length of the UTF-8 character at the beginning of the bytes, 0 where there is none (RFC 3629). */
static size_t character(const unsigned char *at, size_t length) {
  if (at[0] < 0x80) return 1;
  size_t size = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
  if (at[0] < 0xc2 || at[0] > 0xf4 || size > length) return 0;
  for (size_t i = 1; i < size; i++)
    if ((at[i] & 0xc0) != 0x80) return 0;
  /* Overlong forms, surrogates, and what lies above U+10FFFF. */
  if (at[0] == 0xe0 && at[1] < 0xa0) return 0;
  if (at[0] == 0xed && at[1] > 0x9f) return 0;
  if (at[0] == 0xf0 && at[1] < 0x90) return 0;
  if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
  return size;
}

bool is_utf8(const char *bytes, size_t length) {
  const unsigned char *at = (const unsigned char *)bytes;
  for (size_t size; length > 0; at += size, length -= size)
    if ((size = character(at, length)) == 0) return false;
  return true;
}

void text_json(struct text *text, const char *bytes, size_t length) {
  const unsigned char *at = (const unsigned char *)bytes;
  text_say(text, "\"");
  while (length > 0) {
    size_t size = character(at, length);
    if (size == 0) {
      text_say(text, "\xef\xbf\xbd");
      size = 1;
    } else if (*at < 0x20 || *at == 0x7f) text_format(text, "\\u%04x", *at);
    else if (*at == '"' || *at == '\\') text_format(text, "\\%c", *at);
    else text_add(text, at, size);
    at += size;
    length -= size;
  }
  text_say(text, "\"");
}

void text_base64(struct text *text, const char *bytes, size_t length) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const unsigned char *at = (const unsigned char *)bytes;
  for (; length > 0; at += 3) {
    size_t size = length < 3 ? length : 3;
    unsigned long group = (unsigned long)at[0] << 16 | (size > 1 ? at[1] << 8 : 0) | (size > 2 ? at[2] : 0);
    char quad[4] = {letters[group >> 18], letters[group >> 12 & 63], letters[group >> 6 & 63], letters[group & 63]};
    if (size < 3) quad[3] = '=';
    if (size < 2) quad[2] = '=';
    text_add(text, quad, sizeof quad);
    length -= size;
  }
}
