#include "base/rank.h"

#include <stdbool.h>
#include <string.h>

/*
 * The bits of a binary32 rise with its value. For negative numbers all bits but the sign are
 * inverted.
 */
int32_t qat_rank_key(float x)
{
    int32_t bits;
    x += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? (int32_t)(bits ^ INT32_MAX) : bits;
}

/** Merge two runs of indices by falling key. Of equal keys, the left run's come first. */
static void merge(const int32_t *keys, const int *from, int *to, int begin, int middle, int end)
{
    int left = begin, right = middle;
    for (int i = begin; i < end; i++) {
        bool const take_right =
            right < end && (left == middle || keys[from[right]] > keys[from[left]]);
        to[i] = take_right ? from[right++] : from[left++];
    }
}

void qat_rank_falling(const int32_t *keys, int *indices, int *room, int n)
{
    for (int width = 1; width < n; width *= 2) {
        for (int begin = 0; begin < n; begin += 2 * width) {
            int const middle = n - begin > width ? begin + width : n;
            int const end = n - middle > width ? middle + width : n;
            merge(keys, indices, room, begin, middle, end);
        }
        memcpy(indices, room, (size_t)n * sizeof *indices);
    }
}
