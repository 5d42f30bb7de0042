#include "border/select.h"

#include <stdlib.h>
#include <string.h>

bool qat_candidates_init(struct candidates *c, int n, int classes, int most)
{
    size_t const boxes = (size_t)n, room = boxes + (size_t)most;
    size_t const order = room > (size_t)classes ? room : (size_t)classes;
    *c = (struct candidates){.boxes = calloc(boxes, sizeof *c->boxes),
                             .scores = calloc(boxes * (size_t)classes, sizeof *c->scores),
                             .values = calloc(room, sizeof *c->values),
                             .order = calloc(order, sizeof *c->order),
                             .passed = calloc(boxes, sizeof *c->passed),
                             .kept = calloc(boxes, sizeof *c->kept),
                             .alive = calloc(boxes, 1)};
    return c->boxes && c->scores && c->values && c->order && c->passed && c->kept && c->alive;
}

void qat_candidates_free(struct candidates *c)
{
    free(c->boxes);
    free(c->scores);
    free(c->values);
    free(c->order);
    free(c->passed);
    free(c->kept);
    free(c->alive);
    *c = (struct candidates){0};
}

/* ------------------------------------------------------------------ a heap whose root is smallest
 */

/** Put `index` at or above the hole, below `top`: larger values sink. */
static void rise(const float *values, int *heap, int hole, int top, int index)
{
    while (hole > top && values[heap[(hole - 1) / 2]] > values[index]) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = index;
}

/** Fill the hole at `top` with `index`: the smaller children move up to the bottom, then it rises.
 */
static void refill(const float *values, int *heap, int top, int n, int index)
{
    int hole = top;
    for (int right = 2 * hole + 2; right <= n; right = 2 * hole + 2) {
        int const left = right - 1;
        int const child = right == n || values[heap[right]] > values[heap[left]] ? left : right;
        heap[hole] = heap[child];
        hole = child;
    }
    rise(values, heap, hole, top, index);
}

/** The k largest, as a heap in the first k places. */
static void gather(const float *values, int n, int k, int *order)
{
    for (int i = k / 2 - 1; i >= 0; i--)
        refill(values, order, i, k, order[i]);
    for (int i = k; i < n; i++)
        if (values[order[i]] > values[order[0]]) {
            int const index = order[i];
            order[i] = order[0];
            refill(values, order, 0, k, index);
        }
}

static int first_largest(const float *values, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

void qat_select_largest(const float *values, int n, int k, int *order)
{
    if (k == 1) {
        order[0] = first_largest(values, n);
        return;
    }
    for (int i = 0; i < n; i++)
        order[i] = i;
    gather(values, n, k, order);
    for (int last = k - 1; last > 0; last--) {
        int const index = order[last];
        order[last] = order[0];
        refill(values, order, 0, last, index);
    }
}

/* ------------------------------------------------------------------ suppression */

static float larger(float a, float b)
{
    return a < b ? b : a;
}

static float smaller(float a, float b)
{
    return b < a ? b : a;
}

static float overlap_of(const struct box *a, const struct box *b)
{
    float const area_a = (a->ymax - a->ymin) * (a->xmax - a->xmin);
    float const area_b = (b->ymax - b->ymin) * (b->xmax - b->xmin);
    if (area_a <= 0.0f || area_b <= 0.0f)
        return 0.0f;
    float const height = smaller(a->ymax, b->ymax) - larger(a->ymin, b->ymin);
    float const width = smaller(a->xmax, b->xmax) - larger(a->xmin, b->xmin);
    float const shared = larger(height, 0.0f) * larger(width, 0.0f);
    return shared / (area_a + area_b - shared);
}

/** Merge two runs of indices by falling value; of equal ones the left run's first. */
static void merge(const float *values, const int *from, int *to, int begin, int middle, int end)
{
    int left = begin, right = middle;
    for (int i = begin; i < end; i++) {
        bool const take_right =
            right < end && (left == middle || values[from[right]] > values[from[left]]);
        to[i] = take_right ? from[right++] : from[left++];
    }
}

/** Sort indices by falling value, stable. */
static void sort_falling(const float *values, int *indices, int *room, int n)
{
    for (int width = 1; width < n; width *= 2) {
        for (int begin = 0; begin < n; begin += 2 * width) {
            int const middle = begin + width < n ? begin + width : n;
            int const end = middle + width < n ? middle + width : n;
            merge(values, indices, room, begin, middle, end);
        }
        memcpy(indices, room, (size_t)n * sizeof *indices);
    }
}

int qat_suppress(struct candidates *c, int n, float threshold, float overlap, int most)
{
    int passed = 0, kept = 0;
    for (int i = 0; i < n; i++)
        if (c->values[i] >= threshold)
            c->passed[passed++] = i;
    sort_falling(c->values, c->passed, c->order, passed);
    memset(c->alive, 1, (size_t)passed);
    for (int i = 0; i < passed && kept < most; i++) {
        if (!c->alive[i])
            continue;
        c->kept[kept++] = c->passed[i];
        for (int j = i + 1; j < passed; j++)
            if (c->alive[j] &&
                overlap_of(&c->boxes[c->passed[i]], &c->boxes[c->passed[j]]) > overlap)
                c->alive[j] = 0;
    }
    return kept;
}
