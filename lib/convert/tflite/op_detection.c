/**
 * TFLite_Detection_PostProcess: decodes boxes from anchors and keeps the best, in float32. Its two
 * integer inputs become outputs of the .qm. The operator itself becomes the epilogue of the .qm,
 * which qat/border.h computes. Its options are a FlexBuffer map.
 *
 * Inputs: box encodings [1, N, >= 4], class scores [1, N, C], anchors [N, 4]. The first two are
 * uint8, or float32 from a DEQUANTIZE. The anchors are uint8 if the encodings are uint8, else
 * float32.
 */
#include "base/flatbuffers/flexbuffer.h"
#include "convert/tflite/import.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BOXES, SCORES, ANCHORS, COORDINATES = 4, MAX_DETECTIONS = 100000 };

/* ------------------------------------------------------------------ inputs */

/**
 * Find the engine tensor of the encodings or scores, and whether the operator sees them as float32.
 */
static qat_status find_codes(tfl_importer *im, int i, int *tensor, bool *real)
{
    const tfl_value *v = tfl_value_of(im, i);
    *real = v && v->real_of >= 0;
    if (*real) {
        *tensor = im->values[v->real_of].tensor;
        return QAT_OK;
    }
    qat_status const st = tfl_input(im, i, tensor);
    if (!st && (im->graph->tensors[*tensor].type != QI_U8 || im->graph->tensors[*tensor].data))
        return tfl_refuse(im, "input %d is neither a computed uint8 tensor nor dequantized", i);
    return st;
}

/**
 * Store a float32 constant as the bits of its values, because the engine has no float32 tensors.
 */
static qat_status real_constant(tfl_importer *im, int i, int64_t count, int *tensor)
{
    const tfl_tensor *t = tfl_tensor_of(im, i);
    size_t const bytes = (size_t)count * sizeof(float);
    if (t->type != TFL_FLOAT32 || t->data_bytes != bytes)
        return tfl_refuse(im, "its anchors, tensor %d (%s), are not a float32 constant",
                          im->op->inputs[i], t->name);
    qat_qtensor q = {.type = QI_S32, .bits = 32, .scale = 1.0f, .source_index = im->op->inputs[i]};
    snprintf(q.name, sizeof q.name, "%s", t->name);
    q.data = (void *)t->data;
    return tfl_append(im, &q, &tfl_value_of(im, i)->shape, tensor);
}

static qat_status find_anchors(tfl_importer *im, bool real, int64_t boxes, int *tensor)
{
    tfl_shape shape;
    qat_status const st = tfl_input_shape(im, ANCHORS, 2, 2, &shape);
    if (st)
        return st;
    if (!tfl_tensor_of(im, ANCHORS)->data || shape.dims[0] != boxes || shape.dims[1] != COORDINATES)
        return tfl_refuse(im, "its anchors are not a constant [%d, 4]", (int)boxes);
    if (real)
        return real_constant(im, ANCHORS, boxes * COORDINATES, tensor);
    if (tfl_tensor_of(im, ANCHORS)->type != TFL_UINT8)
        return tfl_refuse(im, "its anchors are %s instead of uint8, which its box encodings are",
                          tfl_type_name(tfl_tensor_of(im, ANCHORS)->type));
    return tfl_input(im, ANCHORS, tensor);
}

static qat_status find_inputs(tfl_importer *im, int32_t *classes)
{
    tfl_detection *d = &im->detection;
    tfl_shape boxes, scores;
    bool real_boxes = false, real_scores = false;
    qat_status st = tfl_input_shape(im, BOXES, 3, 3, &boxes);
    if (!st)
        st = tfl_input_shape(im, SCORES, 3, 3, &scores);
    if (!st && (boxes.dims[0] != 1 || scores.dims[0] != 1 || boxes.dims[1] != scores.dims[1] ||
                boxes.dims[2] < COORDINATES))
        st = tfl_refuse(im, "encodings [%d, %d, %d] and scores [%d, %d, %d] do not fit",
                        (int)boxes.dims[0], (int)boxes.dims[1], (int)boxes.dims[2],
                        (int)scores.dims[0], (int)scores.dims[1], (int)scores.dims[2]);
    if (!st)
        st = find_codes(im, BOXES, &d->boxes, &real_boxes);
    if (!st)
        st = find_codes(im, SCORES, &d->scores, &real_scores);
    if (st)
        return st;
    *classes = scores.dims[2];
    return find_anchors(im, real_boxes, boxes.dims[1], &d->anchors);
}

/* ------------------------------------------------------------------ options */

/** A number of the map; NAN if there is none. */
static double number(const flex_map *map, const char *key)
{
    double value;
    return flex_number(map, key, &value) ? value : NAN;
}

static qat_status read_int(tfl_importer *im, const flex_map *map, const char *key, double absent,
                           int32_t most, int32_t *value)
{
    double const stored = number(map, key), x = isnan(stored) ? absent : stored;
    if (!(x >= 0 && x <= most))
        return tfl_refuse(im, "its option %s is %g", key, x);
    *value = (int32_t)x;
    return QAT_OK;
}

static qat_status read_real(tfl_importer *im, const flex_map *map, const char *key, double lo,
                            double hi, int32_t *bits)
{
    float const x = (float)number(map, key);
    if (!((double)x > lo && (double)x <= hi))
        return tfl_refuse(im, "its option %s is %g", key, (double)x);
    memcpy(bits, &x, sizeof *bits);
    return QAT_OK;
}

static qat_status read_options(tfl_importer *im, int32_t classes, int32_t *params)
{
    static const struct {
        const char *key;
        double absent; /* NAN: the option must be given */
        int32_t most;
    } ints[] = {{"max_detections", NAN, MAX_DETECTIONS},
                {"max_classes_per_detection", NAN, MAX_DETECTIONS},
                {"detections_per_class", 100, MAX_DETECTIONS},
                {"use_regular_nms", 0, 1},
                {"num_classes", NAN, MAX_DETECTIONS}};
    static const struct {
        const char *key;
        double lo, hi;
    } reals[] = {{"nms_score_threshold", -1e30, 1e30},
                 {"nms_iou_threshold", 0, 1},
                 {"y_scale", 0, 1e30},
                 {"x_scale", 0, 1e30},
                 {"h_scale", 0, 1e30},
                 {"w_scale", 0, 1e30}};
    flex_map map;
    qat_status st = QAT_OK;
    if (!flex_root_map(&map, fb_bytes(&im->op->custom_options), im->op->custom_options.count))
        return tfl_refuse(im, "its options are not a FlexBuffer map");
    for (int i = 0; i < 5 && !st; i++)
        st = read_int(im, &map, ints[i].key, ints[i].absent, ints[i].most, &params[i]);
    for (int i = 0; i < 6 && !st; i++)
        st = read_real(im, &map, reals[i].key, reals[i].lo, reals[i].hi, &params[5 + i]);
    if (!st && (params[0] < 1 || params[1] < 1 || params[4] < 1 || params[2] < 1))
        st = tfl_refuse(im, "one of its options that must be positive is 0");
    if (!st && (params[4] > classes || params[4] < classes - 1))
        st = tfl_refuse(im, "%d classes, but scores of %d", (int)params[4], (int)classes);
    return st;
}

static qat_status import_custom(tfl_importer *im)
{
    tfl_detection *d = &im->detection;
    int32_t classes;
    if (strcmp(im->op->name, "TFLite_Detection_PostProcess") != 0)
        return tfl_refuse(im, "the custom operator %s is not supported", im->op->name);
    if (im->op->n_inputs != 3 || im->op->n_outputs != 4 || d->present)
        return tfl_refuse(im, "it has %d inputs and %d outputs, or is the second of its kind",
                          im->op->n_inputs, im->op->n_outputs);
    qat_status st = find_inputs(im, &classes);
    if (!st)
        st = read_options(im, classes, d->params);
    for (int i = 0; i < 4 && !st; i++) {
        int const index = im->op->outputs[i];
        if (im->values[index].known || im->model->tensors[index].data)
            return tfl_refuse(im, "tensor %d already has a value", index);
        im->values[index] = (tfl_value){.tensor = -1, .real_of = -1, .detection = true};
        d->params[11 + i] = index;
    }
    d->present = !st;
    return st;
}

const tfl_handler tfl_detection_handlers[] = {
    {TFL_CUSTOM, TFL_NO_OPTIONS, 0, TFL_MAX_OPERANDS, 0, import_custom}, {0}};
