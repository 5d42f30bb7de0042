/** The network's input: how the data's dimensions are the file's. */
#include "foreign/build.h"

#include <stdio.h>
#include <string.h>

static qat_status wrong_input(const builder *b, const qat_foreign_value *v)
{
    char text[96] = "";
    for (int i = 0; i < v->rank; i++) {
        size_t const n = strlen(text);
        snprintf(text + n, sizeof text - n, v->dims[i] < 0 ? "%s?" : "%s%lld", i ? ", " : "",
                 (long long)v->dims[i]);
    }
    return qat_fail(b->err, QAT_ERR_SHAPE,
                    "%s: its input '%.60s' is [%s], but the data have height %d, width %d, %d "
                    "channels (data.height, data.width, data.channels)",
                    b->from->source, v->name, text, b->options->height, b->options->width,
                    b->options->channels);
}

enum { MOST_SAMPLES = 65536 }; /* of a batch, as the file has it */

static bool fits(int64_t dim, int64_t is)
{
    return dim < 0 || dim == is;
}

/** Dimensions of the data, and how they lie in memory. */
struct form {
    int rank;
    int64_t dims[3];
    int axes[3]; /* in the order of memory */
};

static bool has_form(const struct form *f, const int64_t *dims, int rank)
{
    bool good = f->rank == rank;
    for (int i = 0; good && i < rank; i++)
        good = fits(dims[i], f->dims[i]);
    return good;
}

/**
 * Place one sample, whose dimensions stand from `from` on: [C, H, W], [H, W, C], of signals [C, W],
 * [W, C], or [n]. Rows of numbers, with one channel or one column, may have any dimensions, in the
 * file's order.
 */
static bool place_sample(const builder *b, const int64_t *given, int from, int rank, int64_t *dims,
                         int *axes)
{
    const qat_foreign_options *o = b->options;
    int64_t const h = o->height, w = o->width, c = o->channels;
    const struct form forms[] = {
        {3, {c, h, w}, {1, 2, 0}}, {2, {c, w}, {1, 0}},   {3, {h, w, c}, {0, 1, 2}},
        {2, {w, c}, {0, 1}},       {1, {h * w * c}, {0}}, {0, {0}, {0}},
    };
    int64_t n = 1;
    for (size_t i = b->from->channels_last ? 2 : 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *f = &forms[i];
        if (!has_form(f, given + from, rank) || (f->rank == 2 && h > 1) ||
            (f->rank == 0 && h * w * c > 1))
            continue;
        for (int k = 0; k < rank; k++) {
            dims[from + k] = f->dims[k];
            axes[from + k] = from + f->axes[k];
        }
        return true;
    }
    for (int k = from; k < from + rank; k++) {
        if (given[k] < 1 || given[k] > w * c / n)
            return false;
        n *= given[k];
        dims[k] = given[k];
        axes[k] = k;
    }
    return h == 1 && (w == 1 || c == 1) && n == w * c;
}

qat_status fv_place_input(builder *b, const qat_foreign_value *v, qat_node *input, fv *x)
{
    static const int64_t unknown[] = {-1, -1, -1, -1};
    int64_t dims[QAT_FOREIGN_RANK];
    int axes[QAT_FOREIGN_RANK] = {0};
    int const rank = v->rank < 0 ? 4 : v->rank;
    const int64_t *given = v->rank < 0 ? unknown : v->dims;
    int64_t const batch = rank > 0 && given[0] > 0 ? given[0] : 1;
    b->batch = 1;
    if (rank > 0 && place_sample(b, given, 1, rank - 1, dims, axes)) {
        if (batch > MOST_SAMPLES)
            return qat_fail(b->err, QAT_ERR_LIMIT,
                            "%s: its input '%.60s' has a batch of %lld; at most %d is possible",
                            b->from->source, v->name, (long long)batch, MOST_SAMPLES);
        dims[0] = b->batch = batch;
        b->is_open = given[0] < 0;
    } else if (!place_sample(b, given, 0, rank, dims, axes)) {
        return wrong_input(b, v);
    }
    *x = fv_laid_out(b, input, rank, dims, axes);
    return QAT_OK;
}
