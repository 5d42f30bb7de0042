#include "fuzz/fuzz_parts.h"

#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 2, SIZE = 2 };

void fuzz_parts_read(struct fuzz_parts *p, const uint8_t *data, size_t size, int n)
{
    size_t at = HEAD;
    *p = (struct fuzz_parts){.n = n};
    p->mode = size > 0 ? data[0] : 0;
    p->options = size > 1 ? data[1] : 0;
    for (int i = 0; i < n; i++) {
        bool const last = i + 1 == n;
        size_t const head = last ? 0 : SIZE;
        size_t wanted = SIZE_MAX;
        p->at[i] = data + size;
        if (at > size || size - at < head)
            continue;
        if (!last)
            wanted = data[at] | (size_t)data[at + 1] << 8;
        at += head;
        p->at[i] = data + at;
        p->size[i] = wanted < size - at ? wanted : size - at;
        at += p->size[i];
    }
}

size_t fuzz_parts_write(const struct fuzz_parts *p, uint8_t *data, size_t most)
{
    size_t at = HEAD;
    if (most < HEAD)
        return 0;
    data[0] = p->mode;
    data[1] = p->options;
    for (int i = 0; i < p->n; i++) {
        size_t const head = i + 1 == p->n ? 0 : SIZE;
        if (p->size[i] > FUZZ_PART_MAX || most - at < head || most - at - head < p->size[i])
            return 0;
        if (head) {
            data[at] = (uint8_t)p->size[i];
            data[at + 1] = (uint8_t)(p->size[i] >> 8);
        }
        if (p->size[i])
            memcpy(data + at + head, p->at[i], p->size[i]);
        at += head + p->size[i];
    }
    return at;
}

char *fuzz_parts_text(const struct fuzz_parts *p, int part)
{
    char *text = fuzz_allocate(sizeof(void *), p->size[part] + 1);
    if (p->size[part])
        memcpy(text, p->at[part], p->size[part]);
    text[p->size[part]] = 0;
    return text;
}

size_t fuzz_parts_mutate(uint8_t *data, size_t size, size_t most, unsigned int seed, int n,
                         fuzz_part_mutator *mutate)
{
    uint64_t x = seed;
    struct fuzz_parts p;
    uint8_t *part = fuzz_allocate(sizeof(void *), most + 1);
    uint8_t *out = fuzz_allocate(sizeof(void *), most + 1);
    fuzz_parts_read(&p, data, size, n);
    int const i = (int)fuzz_below(&x, (size_t)n);
    if (fuzz_below(&x, 24) == 0) {
        p.mode = (uint8_t)fuzz_random(&x);
    } else if (fuzz_below(&x, 12) == 0) {
        p.options ^= (uint8_t)(1u << fuzz_below(&x, 8));
    } else {
        size_t const room = most < FUZZ_PART_MAX ? most : FUZZ_PART_MAX;
        if (p.size[i])
            memcpy(part, p.at[i], p.size[i]);
        p.size[i] = mutate(part, p.size[i], room, &p, i, &x);
        p.at[i] = part;
    }
    size_t const made = fuzz_parts_write(&p, out, most);
    if (made)
        memcpy(data, out, made);
    free(part);
    free(out);
    return made ? made : LLVMFuzzerMutate(data, size, most);
}

size_t fuzz_parts_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                        uint8_t *out, size_t most, unsigned int seed, int n)
{
    uint64_t x = seed;
    struct fuzz_parts p, q;
    fuzz_parts_read(&p, a, a_size, n);
    fuzz_parts_read(&q, b, b_size, n);
    int const i = (int)fuzz_below(&x, (size_t)n);
    p.at[i] = q.at[i];
    p.size[i] = q.size[i];
    if (fuzz_below(&x, 4) == 0)
        p.options = q.options;
    return fuzz_parts_write(&p, out, most);
}
