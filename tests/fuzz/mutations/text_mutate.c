#include "fuzz/mutations/text_mutate.h"

#include "fuzz/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t fuzz_replace(uint8_t *bytes, size_t size, size_t most, size_t at, size_t cut,
                    const void *with, size_t n)
{
    if (at > size || cut > size - at || size - cut > most || n > most - (size - cut))
        return size;
    memmove(bytes + at + n, bytes + at + cut, size - at - cut);
    if (n)
        memcpy(bytes + at, with, n);
    return size - cut + n;
}

/** One call of the mutator. */
struct text {
    uint8_t *at;
    size_t size, most;
    uint64_t *x;
    const char *const *words;
};

static void replace(struct text *t, size_t at, size_t cut, const void *with, size_t n)
{
    t->size = fuzz_replace(t->at, t->size, t->most, at, cut, with, n);
}

/** A copy of some bytes of the text in place of others. */
static void copy_over(struct text *t, size_t from, size_t n, size_t at, size_t cut)
{
    uint8_t *copy = fuzz_allocate(sizeof(void *), n);
    if (n)
        memcpy(copy, t->at + from, n);
    replace(t, at, cut, copy, n);
    free(copy);
}

/* ------------------------------------------------------------------ words */

static int is_word(int c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '-' || c == '+';
}

/** The word at or behind a random place; its size, 0: none. */
static size_t some_word(const struct text *t, size_t *at)
{
    size_t n = 0;
    *at = fuzz_below(t->x, t->size);
    while (*at < t->size && !is_word(t->at[*at]))
        ++*at;
    while (*at > 0 && *at < t->size && is_word(t->at[*at - 1]))
        --*at;
    while (*at + n < t->size && is_word(t->at[*at + n]))
        n++;
    return n;
}

static const char *word_of_format(const struct text *t)
{
    size_t n = 0;
    while (t->words[n])
        n++;
    return n ? t->words[fuzz_below(t->x, n)] : "";
}

static void put_word(struct text *t)
{
    size_t at;
    const char *word = word_of_format(t);
    size_t const cut = fuzz_below(t->x, 3) ? some_word(t, &at) : 0;
    if (!cut)
        at = fuzz_below(t->x, t->size + 1);
    replace(t, at, cut, word, strlen(word));
}

/** A number of the kind that breaks readers, as text. */
static size_t number_text(uint64_t *x, char *text, size_t max)
{
    static const char *const odd[] = {"0",
                                      "-1",
                                      "1e308",
                                      "-1e308",
                                      "1e309",
                                      "1e-320",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "0x10",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "9223372036854775808",
                                      "18446744073709551616",
                                      "0.1",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "00000000000000000000000000000000000001",
                                      "3.4028236e38",
                                      "2147483647",
                                      "2147483648",
                                      "1000000000"};
    uint32_t const n = fuzz_number(x, 7);
    if (fuzz_below(x, 2))
        return (size_t)snprintf(text, max, "%s", odd[fuzz_below(x, sizeof odd / sizeof *odd)]);
    return (size_t)snprintf(text, max, "%ld", fuzz_below(x, 2) ? (long)(int32_t)n : (long)n);
}

static void put_number(struct text *t)
{
    char number[64];
    size_t at, n = 0;
    for (int i = 0; i < 16 && !n; i++) {
        n = some_word(t, &at);
        n = n && isdigit(t->at[at + n - 1]) ? n : 0;
    }
    if (n)
        replace(t, at, n, number, number_text(t->x, number, sizeof number));
}

/** A word becomes another word of the text. */
static void copy_word(struct text *t)
{
    size_t from, to;
    size_t const n = some_word(t, &from), cut = some_word(t, &to);
    if (n && cut)
        copy_over(t, from, n, to, cut);
}

/* ------------------------------------------------------------------ lines and ranges */

/** The line around a random place, with its end; its size. */
static size_t some_line(const struct text *t, size_t *at)
{
    size_t n = 0;
    *at = fuzz_below(t->x, t->size + 1);
    while (*at > 0 && t->at[*at - 1] != '\n')
        --*at;
    while (*at + n < t->size && t->at[*at + n] != '\n')
        n++;
    return n + (*at + n < t->size);
}

static void copy_line(struct text *t)
{
    size_t from, to;
    size_t const n = some_line(t, &from), cut = some_line(t, &to);
    copy_over(t, from, n, to, fuzz_below(t->x, 2) ? cut : 0);
}

static void drop_line(struct text *t)
{
    size_t at;
    size_t const n = some_line(t, &at);
    replace(t, at, n, NULL, 0);
}

static void drop_range(struct text *t)
{
    size_t const at = fuzz_below(t->x, t->size), left = t->size - at;
    replace(t, at, fuzz_below(t->x, (left < 64 ? left : 64) + 1), NULL, 0);
}

static void copy_range(struct text *t)
{
    size_t const from = fuzz_below(t->x, t->size), left = t->size - from;
    size_t const n = fuzz_below(t->x, (left < 200 ? left : 200) + 1);
    copy_over(t, from, n, fuzz_below(t->x, t->size + 1), 0);
}

static void put_mark(struct text *t)
{
    static const char marks[] = "\n\r\t ,;:=[](){}\"'#%/\\.-+e0_|*?\x80\xff@";
    size_t const at = fuzz_below(t->x, t->size + 1);
    size_t const cut = at < t->size && fuzz_below(t->x, 2);
    replace(t, at, cut, &marks[fuzz_below(t->x, sizeof marks - 1)], 1);
}

static void blind(struct text *t)
{
    t->size = LLVMFuzzerMutate(t->at, t->size, t->most);
}

size_t fuzz_text_mutate(uint8_t *text, size_t size, size_t most, uint64_t *x,
                        const char *const *words)
{
    static void (*const changes[])(struct text *) = {put_word,   put_word,   put_number, put_number,
                                                     copy_word,  copy_line,  drop_line,  put_mark,
                                                     drop_range, copy_range, blind};
    struct text t = {text, size, most, x, words};
    for (size_t n = 1 + fuzz_below(x, 3); n > 0; n--)
        changes[fuzz_below(x, sizeof changes / sizeof *changes)](&t);
    return t.size;
}
