/**
 * Boxes: their overlap, and their codes relative to an anchor, which a network learns.
 *
 *     code = scale (centre - anchor centre) / anchor size,  scale log(size / anchor size)
 */
#include "qat/detect.h"

#include <math.h>

const qat_box_coder qat_ssd_coder = {10, 10, 5, 5};

qat_centre_box qat_box_centre(const qat_box *b)
{
    return (qat_centre_box){0.5f * (b->ymin + b->ymax), 0.5f * (b->xmin + b->xmax),
                            b->ymax - b->ymin, b->xmax - b->xmin};
}

qat_box qat_box_corners(const qat_centre_box *c)
{
    float const h = 0.5f * c->height, w = 0.5f * c->width;
    return (qat_box){c->y - h, c->x - w, c->y + h, c->x + w};
}

/* ------------------------------------------------------------------ overlap */

static float larger(float a, float b)
{
    return a < b ? b : a;
}

static float smaller(float a, float b)
{
    return b < a ? b : a;
}

static float area_of(const qat_box *b)
{
    return (b->ymax - b->ymin) * (b->xmax - b->xmin);
}

static float shared_area(const qat_box *a, const qat_box *b)
{
    float const height = smaller(a->ymax, b->ymax) - larger(a->ymin, b->ymin);
    float const width = smaller(a->xmax, b->xmax) - larger(a->xmin, b->xmin);
    return larger(height, 0.0f) * larger(width, 0.0f);
}

float qat_box_iou(const qat_box *a, const qat_box *b)
{
    float const area_a = area_of(a), area_b = area_of(b);
    if (area_a <= 0.0f || area_b <= 0.0f)
        return 0.0f;
    float const shared = shared_area(a, b);
    return shared / (area_a + area_b - shared);
}

float qat_box_covered(const qat_box *box, const qat_box *by)
{
    float const area = area_of(box);
    return area > 0.0f ? shared_area(box, by) / area : 0.0f;
}

/* ------------------------------------------------------------------ codes */

static float encode_place(float scale, double place, double anchor, double anchor_size)
{
    return (float)((double)scale * (place - anchor) / anchor_size);
}

static float encode_size(float scale, float size, float anchor_size)
{
    return (float)((double)scale * log((double)size / (double)anchor_size));
}

qat_centre_box qat_box_encode(const qat_box_coder *coder, const qat_centre_box *anchor,
                              const qat_box *box)
{
    double const y = 0.5 * ((double)box->ymin + (double)box->ymax);
    double const x = 0.5 * ((double)box->xmin + (double)box->xmax);
    return (qat_centre_box){
        encode_place(coder->y, y, (double)anchor->y, (double)anchor->height),
        encode_place(coder->x, x, (double)anchor->x, (double)anchor->width),
        encode_size(coder->height, box->ymax - box->ymin, anchor->height),
        encode_size(coder->width, box->xmax - box->xmin, anchor->width),
    };
}

/** Decode one axis: the lowest and the highest coordinate. */
static void decode_axis(float place_code, float place_scale, float size_code, float size_scale,
                        float anchor, float anchor_size, float *lo, float *hi)
{
    double const size = (double)anchor_size;
    float const centre = (float)((double)place_code / (double)place_scale * size + (double)anchor);
    float const half = (float)(0.5 * exp((double)size_code / (double)size_scale) * size);
    *lo = centre - half;
    *hi = centre + half;
}

qat_box qat_box_decode(const qat_box_coder *coder, const qat_centre_box *anchor,
                       const qat_centre_box *code)
{
    qat_box b;
    decode_axis(code->y, coder->y, code->height, coder->height, anchor->y, anchor->height, &b.ymin,
                &b.ymax);
    decode_axis(code->x, coder->x, code->width, coder->width, anchor->x, anchor->width, &b.xmin,
                &b.xmax);
    return b;
}
