/**
 * Detectors: makes the anchors of a network, the targets of anchors from objects, and the epilogue
 * of the .qm.
 */
#include "task/detector.h"

#include "networks/network.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COORDINATES = 4 };

/* ------------------------------------------------------------------ anchors */

static qat_anchor_spec spec_of(const qat_graph *graph, const qat_recipe *r)
{
    qat_anchor_spec s = qat_anchor_defaults();
    s.min_scale = r->detect.min_scale;
    s.max_scale = r->detect.max_scale;
    s.reduced_lowest = r->detect.reduced_lowest;
    for (int i = 0; i < QAT_MAX_ANCHOR_LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "head%d/boxes", i);
        const qat_node *head = qat_graph_find(graph, name);
        if (!head || head->shape.rank != 4)
            break;
        s.height[s.n_layers] = head->shape.dims[1];
        s.width[s.n_layers++] = head->shape.dims[2];
    }
    return s;
}

/** Check that each anchor has a box and its scores. */
static qat_status check_outputs(const qat_detector *d, const qat_graph *graph, qat_error *err)
{
    int const values[] = {COORDINATES, d->classes + d->rules.background};
    char text[64];
    if (qat_graph_outputs(graph) != 2)
        return qat_fail(err, QAT_ERR_SHAPE, "a detector has 2 outputs, boxes and scores, not %d",
                        qat_graph_outputs(graph));
    for (int i = 0; i < 2; i++) {
        const qat_node *out = qat_graph_output_at(graph, i);
        const qat_shape *shape = &out->shape;
        if (shape->rank != 3 || shape->dims[1] != d->n_anchors || shape->dims[2] != values[i])
            return qat_fail(err, QAT_ERR_SHAPE,
                            "the detector has %d anchors with %d values each, but its output %s is "
                            "%s",
                            d->n_anchors, values[i], out->name, qat_shape_text(shape, text));
    }
    return QAT_OK;
}

qat_status qat_detector_create(qat_detector **detector, const qat_graph *graph, const qat_recipe *r,
                               int classes, qat_error *err)
{
    *detector = NULL;
    qat_detector *d = calloc(1, sizeof *d);
    if (!d)
        return qat_out_of_memory(err, "detector");
    qat_anchor_spec const spec = spec_of(graph, r);
    d->classes = classes;
    d->match_iou = (float)r->detect.match_iou;
    d->rules = (qat_choice_rules){.max_detections = (int)r->detect.max_detections,
                                  .max_classes = 1,
                                  .per_class = (int)r->detect.max_detections,
                                  .regular = true,
                                  .background = r->detect.classification == 1,
                                  .score_threshold = (float)r->detect.score_threshold,
                                  .iou_threshold = (float)r->detect.nms_iou};
    qat_status st = qat_anchors_create(&d->anchors, &spec, err);
    if (!st) {
        d->n_anchors = qat_anchors_count(&spec);
        d->match = malloc((size_t)d->n_anchors * sizeof *d->match);
        st = d->match ? check_outputs(d, graph, err) : qat_out_of_memory(err, "detector");
    }
    if (st) {
        qat_detector_free(d);
        return st;
    }
    *detector = d;
    return QAT_OK;
}

void qat_detector_free(void *detector)
{
    qat_detector *d = detector;
    if (!d)
        return;
    qat_arena_free(&d->memory);
    free(d->match);
    free(d->anchors);
    free(d);
}

/* ------------------------------------------------------------------ targets */

/** Set codes [n, 4] and classes [n] of all anchors for one picture. */
static void set_targets(const qat_detector *d, const qat_truth *truth, float *codes, float *classes)
{
    const int32_t *match = d->match;
    for (int a = 0; a < d->n_anchors; a++, codes += COORDINATES) {
        memset(codes, 0, COORDINATES * sizeof *codes);
        classes[a] = match[a] == QAT_IGNORED ? -1 : 0;
        if (match[a] < 0)
            continue;
        const qat_truth *t = &truth[match[a]];
        qat_centre_box const code = qat_box_encode(&qat_ssd_coder, &d->anchors[a], &t->box);
        memcpy(codes, &code, sizeof code);
        classes[a] = (float)t->label + 1;
    }
}

qat_status qat_feed_targets(const qat_input_info *input, const qat_recipe *recipe, qat_graph *graph,
                            const qat_batch *batch, qat_error *err)
{
    qat_detector *d = input->state;
    qat_node *codes = qat_graph_find(graph, QAT_TARGET_CODES_NAME);
    qat_node *classes = qat_graph_find(graph, QAT_TARGET_CLASSES_NAME);
    size_t const n = (size_t)d->n_anchors;
    for (int i = 0; i < batch->count; i++) {
        const qat_objects *o = &batch->objects[i];
        qat_arena_back(&d->memory, (qat_arena_mark){0});
        int32_t *best = qat_arena_array(&d->memory, (size_t)o->count, sizeof *best);
        if (!best)
            return qat_out_of_memory(err, "targets");
        qat_match_anchors(d->match, best, d->anchors, d->n_anchors, o->truth, o->count,
                          d->match_iou);
        set_targets(d, o->truth, codes->value + (size_t)i * n * COORDINATES,
                    classes->value + (size_t)i * n);
    }
    return QAT_OK;
}

/* ------------------------------------------------------------------ the .qm */

/** Append the anchors as the bits of float32, [N, 4]. */
static int add_anchors(const qat_detector *d, qat_qgraph *graph, qat_error *err)
{
    qat_qtensor const t = {.name = "anchors",
                           .type = QI_S32,
                           .bits = 32,
                           .rank = 2,
                           .dims = {d->n_anchors, COORDINATES, 1, 1},
                           .scale = 1.0f,
                           .source_index = -1,
                           .data = d->anchors};
    return qat_qgraph_tensor(graph, &t, err);
}

qat_status qat_detector_finish(const qat_input_info *input, qat_qgraph *graph, qat_error *err)
{
    const qat_detector *d = input->state;
    const qat_choice_rules *r = &d->rules;
    qat_error inner = {.status = QAT_ERR_NOMEM, .message = "anchors: out of memory"};
    int const anchors = add_anchors(d, graph, &inner);
    if (anchors < 0)
        return qat_fail(err, inner.status, "%s", inner.message);
    int const inputs[] = {graph->outputs[0], graph->outputs[1], anchors};
    int32_t const params[] = {r->max_detections,
                              r->max_classes,
                              r->per_class,
                              r->regular,
                              d->classes,
                              qat_task_bits(r->score_threshold),
                              qat_task_bits(r->iou_threshold),
                              qat_task_bits(qat_ssd_coder.y),
                              qat_task_bits(qat_ssd_coder.x),
                              qat_task_bits(qat_ssd_coder.height),
                              qat_task_bits(qat_ssd_coder.width),
                              -1,
                              -1,
                              -1,
                              -1};
    return qat_qgraph_set_epilogue(graph, QAT_DETECTOR_EPILOGUE, 3, inputs,
                                   (int)(sizeof params / sizeof *params), params, err);
}
