/**
 * The epilogue of a detector: boxes from encodings and anchors, then non-maximum suppression.
 * Classes are compared and sorted by their codes, because the real value of a code rises with it.
 * Only the decoded boxes and the scores of kept boxes are real numbers. The operations and their
 * order are those of TensorFlow Lite's kernel, so that equal codes give equal floats.
 */
#include "qat/border.h"

#include "detect/choose.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { IN_BOXES, IN_SCORES, IN_ANCHORS, INPUTS };

/** The parameters of the epilogue, in order. */
enum {
    MAX_DETECTIONS,
    MAX_CLASSES,
    PER_CLASS,
    REGULAR,
    NUM_CLASSES,
    SCORE_THRESHOLD,
    IOU_THRESHOLD,
    Y_SCALE,
    X_SCALE,
    H_SCALE,
    W_SCALE,
    SOURCES,
    PARAMS = SOURCES + 4
};

enum { COORDINATES = 4, MAX_ROWS = 1 << 20 };

/** The tensors and numbers of a detector. */
struct detector {
    const qi_tensor *boxes, *scores, *anchors;
    const int32_t *params;
    int n, classes; /* boxes; scores per box, including the background's */
    const void *box_codes, *score_codes;
    struct candidates c;
};

static float float_of(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float scale_of(const qi_tensor *t)
{
    float scale;
    memcpy(&scale, &t->scale_bits, sizeof scale);
    return scale;
}

/* ------------------------------------------------------------------ the epilogue */

/** Which model output a tensor is; -1: none. */
static int output_of(const qi_model *model, int32_t tensor)
{
    for (int32_t i = 0; i < qi_output_count(model); i++)
        if (qi_output_at(model, i) == tensor)
            return (int)i;
    return -1;
}

static bool is_codes(const qi_tensor *t)
{
    return qi_type_has_codes((qi_type)t->type);
}

/** Do scores rise with their codes? */
static bool rises(const qi_tensor *t)
{
    return scale_of(t) >= FLT_MIN && scale_of(t) <= FLT_MAX;
}

/** Do the tensors fit each other? */
static bool tensors_fit(const struct detector *d)
{
    const qi_tensor *b = d->boxes, *s = d->scores, *a = d->anchors;
    bool const anchors =
        a->data && a->rank == 2 && a->dims[1] == COORDINATES && (is_codes(a) || a->type == QI_S32);
    return is_codes(b) && is_codes(s) && rises(s) && b->rank == 3 && s->rank == 3 &&
           b->dims[0] == 1 && s->dims[0] == 1 && b->dims[1] == s->dims[1] &&
           b->dims[2] >= COORDINATES && anchors && a->dims[0] == b->dims[1];
}

static bool params_fit(const int32_t *p, int classes)
{
    bool const counts = p[MAX_DETECTIONS] >= 1 && p[MAX_CLASSES] >= 1 && p[PER_CLASS] >= 1 &&
                        (int64_t)p[MAX_DETECTIONS] * p[MAX_CLASSES] <= MAX_ROWS;
    float const iou = float_of(p[IOU_THRESHOLD]);
    return counts && p[NUM_CLASSES] >= 1 && p[NUM_CLASSES] <= classes &&
           p[NUM_CLASSES] >= classes - 1 && iou > 0.0f && iou <= 1.0f;
}

/** Open the detector of a model. Returns false if it has none, or an incomplete one. */
static bool open_detector(struct detector *d, const qi_model *model)
{
    const qi_epilogue *e = qi_model_epilogue(model);
    if (!e->name || strcmp(e->name, QAT_DETECTOR_EPILOGUE) != 0 || e->n_inputs != INPUTS ||
        e->n_params != PARAMS)
        return false;
    *d = (struct detector){.boxes = qi_tensor_at(model, e->inputs[IN_BOXES]),
                           .scores = qi_tensor_at(model, e->inputs[IN_SCORES]),
                           .anchors = qi_tensor_at(model, e->inputs[IN_ANCHORS]),
                           .params = e->params};
    if (output_of(model, e->inputs[IN_BOXES]) < 0 || output_of(model, e->inputs[IN_SCORES]) < 0 ||
        !tensors_fit(d) || !params_fit(d->params, d->scores->dims[2]))
        return false;
    d->n = d->boxes->dims[1];
    d->classes = d->scores->dims[2];
    return true;
}

bool qat_is_detector(const qi_model *model)
{
    struct detector d;
    return open_detector(&d, model);
}

int qat_detector_classes(const qi_model *model)
{
    struct detector d;
    return open_detector(&d, model) ? d.params[NUM_CLASSES] : 0;
}

/* ------------------------------------------------------------------ limits */

/** How often two boxes are compared, at most: those that are kept with all others. */
static uint64_t most_comparisons(const struct detector *d)
{
    const int32_t *p = d->params;
    uint64_t const n = (uint64_t)d->n, kept = (uint64_t)p[p[REGULAR] ? PER_CLASS : MAX_DETECTIONS];
    uint64_t const times = p[REGULAR] ? (uint64_t)p[NUM_CLASSES] : 1;
    return times * n * (kept < n ? kept : n); /* n classes and 4 n are at most 2^28 */
}

/** What qat_detect allocates, about. */
static uint64_t memory_of(const struct detector *d)
{
    enum { OF_CHOICE = sizeof(struct choice), OF_ROW = OF_CHOICE + 6 * sizeof(float) + 1 };
    const int32_t *p = d->params;
    uint64_t const n = (uint64_t)d->n, classes = (uint64_t)d->classes;
    uint64_t const room = n + (uint64_t)p[MAX_DETECTIONS];
    uint64_t const rows = (uint64_t)p[MAX_DETECTIONS] * (uint64_t)p[MAX_CLASSES];
    uint64_t const candidates = n * (sizeof(qat_box) + 2 * sizeof(int) + 1) +
                                sizeof(int) * (n * classes + 2 * room + classes);
    return candidates + rows * OF_ROW + (p[REGULAR] ? 2 * room * OF_CHOICE : 0);
}

qat_status qat_detector_limit(const qi_model *model, const char *name, const qi_limits *limits,
                              qat_error *err)
{
    enum { MACS_OF_A_COMPARISON = 16, MIB = 1 << 20 };
    uint64_t const macs = limits->macs ? limits->macs : QI_DEFAULT_MACS;
    uint64_t const memory = limits->memory ? limits->memory : QI_DEFAULT_MEMORY;
    struct detector d;
    if (!open_detector(&d, model))
        return QAT_OK;
    uint64_t const comparisons = most_comparisons(&d), bytes = memory_of(&d);
    if (comparisons > macs / MACS_OF_A_COMPARISON)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "%s: choosing among %d boxes takes up to %llu comparisons, which count as "
                        "%llu multiply-adds, but %llu are allowed (--max-macs)",
                        name, d.n, (unsigned long long)comparisons,
                        (unsigned long long)comparisons * MACS_OF_A_COMPARISON,
                        (unsigned long long)macs);
    if (bytes > memory)
        return qat_fail(err, QAT_ERR_LIMIT,
                        "%s: choosing among %d boxes takes %llu MiB of memory, but %llu MiB are "
                        "allowed (--max-memory)",
                        name, d.n, (unsigned long long)((bytes - 1) / MIB + 1),
                        (unsigned long long)((memory - 1) / MIB + 1));
    return QAT_OK;
}

/* ------------------------------------------------------------------ codes */

static int32_t code_at(const qi_tensor *t, const void *codes, size_t at)
{
    return (int32_t)qi_value_at((qi_type)t->type, codes, at);
}

/** Like qat_border_dequantize. */
static float real_of(const qi_tensor *t, int32_t code)
{
    return scale_of(t) * (float)(code - t->zero_point);
}

/** The smallest code whose real value reaches the threshold, or one above all codes. */
static int32_t least_code(const qi_tensor *t, float threshold)
{
    int32_t const codes = 1 << 8 * qi_type_bytes((qi_type)t->type);
    int32_t code = t->type == QI_U8 ? 0 : -codes / 2;
    int32_t const beyond = code + codes;
    while (code < beyond && !(real_of(t, code) >= threshold))
        code++;
    return code;
}

static void unpack_scores(struct detector *d)
{
    size_t const count = (size_t)d->n * (size_t)d->classes;
    for (size_t i = 0; i < count; i++)
        d->c.keys[i] = code_at(d->scores, d->score_codes, i);
}

/* ------------------------------------------------------------------ boxes */

/** From codes, or from the bits of real numbers. */
static qat_centre_box centre_at(const qi_tensor *t, const void *codes, size_t at)
{
    float v[COORDINATES];
    for (size_t i = 0; i < COORDINATES; i++)
        v[i] = t->type == QI_S32 ? float_of(((const int32_t *)codes)[at + i])
                                 : real_of(t, code_at(t, codes, at + i));
    return (qat_centre_box){v[0], v[1], v[2], v[3]};
}

static qat_status decode_boxes(struct detector *d, qat_error *err)
{
    const int32_t *p = d->params;
    qat_box_coder const coder = {float_of(p[Y_SCALE]), float_of(p[X_SCALE]), float_of(p[H_SCALE]),
                                 float_of(p[W_SCALE])};
    for (int i = 0; i < d->n; i++) {
        qat_centre_box const code =
            centre_at(d->boxes, d->box_codes, (size_t)i * (size_t)d->boxes->dims[2]);
        qat_centre_box const anchor = centre_at(d->anchors, d->anchors->data, 4 * (size_t)i);
        qat_box const b = d->c.boxes[i] = qat_box_decode(&coder, &anchor, &code);
        if (!(b.ymin <= b.ymax && b.xmin <= b.xmax))
            return qat_fail(err, QAT_ERR_NUMERIC,
                            "detector: the corners of box %d are reversed, or not numbers", i);
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ all of it */

static qat_choice_rules rules_of(const struct detector *d)
{
    const int32_t *p = d->params;
    return (qat_choice_rules){.max_detections = p[MAX_DETECTIONS],
                              .max_classes = p[MAX_CLASSES],
                              .per_class = p[PER_CLASS],
                              .regular = p[REGULAR] != 0,
                              .background = d->classes - p[NUM_CLASSES],
                              .score_threshold = float_of(p[SCORE_THRESHOLD]),
                              .iou_threshold = float_of(p[IOU_THRESHOLD])};
}

static void set_row(const struct detector *d, qat_detections *found, int row,
                    const struct choice *choice)
{
    memcpy(&found->boxes[COORDINATES * (size_t)row], &d->c.boxes[choice->box], sizeof(qat_box));
    found->classes[row] = (float)choice->class;
    found->scores[row] = real_of(d->scores, choice->key);
    found->used[row] = true;
}

static qat_status choose(struct detector *d, qat_detections *found, qat_error *err)
{
    qat_choice_rules const rules = rules_of(d);
    struct choice *rows = calloc((size_t)found->rows, sizeof *rows);
    bool const chosen =
        rows && qat_choose(&d->c, d->n, d->params[NUM_CLASSES], &rules,
                           least_code(d->scores, rules.score_threshold), rows, &found->found);
    for (int i = 0; chosen && i < found->rows; i++)
        if (rows[i].box >= 0)
            set_row(d, found, i, &rows[i]);
    free(rows);
    return chosen ? QAT_OK : qat_out_of_memory(err, "detector");
}

static qat_status alloc_result(struct detector *d, qat_detections *found, qat_error *err)
{
    int const rows = d->params[MAX_DETECTIONS] * d->params[MAX_CLASSES];
    found->rows = rows;
    found->label_offset = d->classes - d->params[NUM_CLASSES];
    memcpy(found->source_index, d->params + SOURCES, sizeof found->source_index);
    found->boxes = calloc((size_t)rows * COORDINATES, sizeof *found->boxes);
    found->classes = calloc((size_t)rows, sizeof *found->classes);
    found->scores = calloc((size_t)rows, sizeof *found->scores);
    found->used = calloc((size_t)rows, sizeof *found->used);
    bool const whole = found->boxes && found->classes && found->scores && found->used;
    return whole ? QAT_OK : qat_out_of_memory(err, "detector");
}

qat_status qat_detect(qat_detections *found, const qi_model *model, const void *const *outputs,
                      qat_error *err)
{
    struct detector d;
    *found = (qat_detections){0};
    if (!open_detector(&d, model))
        return qat_fail(err, QAT_ERR_FORMAT, "detector: the model has no complete epilogue %s",
                        QAT_DETECTOR_EPILOGUE);
    const qi_epilogue *e = qi_model_epilogue(model);
    d.box_codes = outputs[output_of(model, e->inputs[IN_BOXES])];
    d.score_codes = outputs[output_of(model, e->inputs[IN_SCORES])];
    qat_status st = qat_candidates_init(&d.c, d.n, d.classes, d.params[MAX_DETECTIONS])
                        ? alloc_result(&d, found, err)
                        : qat_out_of_memory(err, "detector");
    if (!st) {
        unpack_scores(&d);
        st = decode_boxes(&d, err);
    }
    if (!st)
        st = choose(&d, found, err);
    qat_candidates_free(&d.c);
    if (st)
        qat_detections_free(found);
    return st;
}

void qat_detections_free(qat_detections *found)
{
    free(found->boxes);
    free(found->classes);
    free(found->scores);
    free(found->used);
    *found = (qat_detections){0};
}
