/** Positions of Resize and Upsample, as the attributes and inputs of the current node say. */
#ifndef QAT_FOREIGN_RESIZE_H
#define QAT_FOREIGN_RESIZE_H

#include "foreign/build.h"

typedef enum fv_filter { FV_NEAREST, FV_LINEAR, FV_CUBIC } fv_filter;

typedef struct fv_resize {
    fv_filter filter;
    const char *place, *rounding; /* coordinate_transformation_mode, nearest_mode */
    double cubic_a;
    bool excludes, antialias; /* exclude_outside, antialias */
    float outside;            /* extrapolation_value */
    double scale[QAT_FOREIGN_RANK], begin[QAT_FOREIGN_RANK], end[QAT_FOREIGN_RANK]; /* roi */
    int64_t dims[QAT_FOREIGN_RANK]; /* of the output */
    /* Do resize_nearest or resize_bilinear have these positions, along dimensions 2 and up? */
    bool is_op, align_corners, half_pixel_centers;
} fv_resize;

qat_status fv_resize_of(builder *b, const fv *x, fv_resize *r);
/** Where ONNX finds output i along a dimension of `in` positions. */
double fv_resize_place(const fv_resize *r, int axis, int64_t i, int64_t in);
/** The input's position that nearest_mode makes of it. */
int64_t fv_resize_nearest(const fv_resize *r, double place, int64_t in);

#endif
