/**
 * From our order of dimensions to ONNX's. Ours is [N,H,W,C]; ONNX's ops want [N,C,H,W]. A tensor
 * may stand in the file in several forms, which are made where a node needs them:
 *
 *     ONNX_PLAIN    our order; all that are no pictures
 *     ONNX_PLANES   [N,C,H,W] of a picture [N,H,W,C]
 *     ONNX_FLAT     [N, C*H*W] of a tensor [N, H*W*C] that was a picture: flattened from planes. A
 *                   fully connected layer reads it with permuted weights; for others it is put
 * right
 */
#ifndef QAT_EXPORT_ONNX_LAYOUT_H
#define QAT_EXPORT_ONNX_LAYOUT_H

#include "export/onnx/model.h"

enum { ONNX_RANK = 4 };

typedef enum onnx_form { ONNX_PLAIN, ONNX_PLANES, ONNX_FLAT, ONNX_FORMS } onnx_form;

typedef struct onnx_value {
    const char *name; /* that it should have */
    onnx_type type;
    int rank;
    int64_t dims[ONNX_RANK];    /* in our order */
    const void *data;           /* of a constant, in our order; NULL: it is computed */
    int64_t picture[3];         /* of ONNX_FLAT: H, W, C */
    const char *as[ONNX_FORMS]; /* its names in the file; NULL: not in this form, so far */
} onnx_value;

/** The name of the value in this form; it is made if need be. A constant has no ONNX_FLAT. */
const char *onnx_as(onnx_model *m, onnx_value *v, onnx_form form);
/** The form in which it is there already; of a constant, the one that goes with pictures. */
onnx_form onnx_form_of(const onnx_value *v);
/** The value is this node's output, in this form. */
void onnx_set(onnx_value *v, onnx_form form, const char *name);

/** Its dimensions in a form, which is not ONNX_FLAT; and where our axis stands in it. */
void onnx_dims(const onnx_value *v, onnx_form form, int64_t dims[ONNX_RANK]);
int onnx_axis(onnx_form form, int axis);
/** For constants of lower rank: dimensions 1 in front, until there are `rank`. */
void onnx_widen(onnx_value *v, int rank);

/** Values with their dimensions in another order: dimension d of the result is perm[d]. */
const void *onnx_permuted(onnx_model *m, const void *values, size_t bytes, const int64_t *dims,
                          const int *perm);
/** [O,KH,KW,I] to [O,I,KH,KW]; and [A,KH,KW,B] to [B,A,KH,KW]. */
extern const int onnx_to_planes[ONNX_RANK], onnx_last_first[ONNX_RANK];

/** Append a Reshape; the first dimension may be any if the model says so. */
const char *onnx_reshape(onnx_model *m, const char *wanted, const char *value, int rank,
                         const int64_t *dims);
const char *onnx_transpose(onnx_model *m, const char *wanted, const char *value, int rank,
                           const int *perm);

/**
 * May y, [N, H*W*C], be flattened from the planes of x? If so, this is noted in y, and *form is
 * y's: ONNX_PLAIN if the order is ours anyway.
 */
bool onnx_is_flattened(const onnx_value *x, onnx_value *y, onnx_form *form);
/** Weights [rows, I] of a layer that reads x, which is ONNX_FLAT, with their columns in x's order.
 */
const void *onnx_columns(onnx_model *m, const onnx_value *x, const void *weights, size_t bytes,
                         int64_t rows);

/** A window's attributes: of Conv, ConvTranspose and pools. */
typedef struct onnx_window {
    int64_t kernel[2], strides[2], dilations[2], pads[4]; /* pads: top, left, bottom, right */
} onnx_window;
/**
 * What must lie behind the picture: so many rows or columns that there are `out` windows. -1: even
 * without any there would be more.
 */
int64_t onnx_pad_behind(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t before);
/** The sides of a Resize as ONNX wants them: a factor that gives just so many positions. */
float onnx_factor(int64_t in, int64_t out);
void onnx_attr_window(onnx_model *m, onnx_node *node, const onnx_window *w, bool dilated);

#endif
