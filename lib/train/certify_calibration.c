/**
 * The way from a checkpoint to a calibrated network, which the file is then certified against:
 *
 *     checkpoint --fold--> --equalize--> folded --clip, correct--> eval
 *
 * Folding is compared when it is done (calibrate.c), value by value. Here: the folded network gives
 * the checkpoint's answers, whatever equalization moved between its layers. And every parameter of
 * it is unchanged in the calibrated network, but for weights that clipping brought nearer to 0, and
 * for biases that were corrected.
 */
#include "base/rng.h"
#include "train/certified_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = QAT_CERTIFY_BATCH };

static const double SAME = 1e-3; /* of the largest answer */

/* ------------------------------------------------------------------ the same answers */

static void set_parameters(const qat_certified_source *s, qat_graph *graph)
{
    qat_graph_init_params(graph, 0);
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        size_t count = 0;
        const float *values =
            node->is_param ? qat_certified_parameter(s, node->name, &count) : NULL;
        if (values && count == qat_shape_count(&node->shape))
            memcpy(node->value, values, count * sizeof *values);
    }
}

static qat_status run(qat_graph *graph, const qat_input_info *in, int samples, qat_error *err)
{
    qat_status const st = qat_graph_set_batch(graph, samples, err);
    qat_node *x = qat_graph_find(graph, QAT_INPUT_NAME);
    if (st)
        return st;
    qat_rng rng = qat_rng_at(1, qat_hash_name("certify calibration"), 0);
    for (size_t i = 0; i < qat_shape_count(&x->shape); i++)
        x->value[i] = in->min + (in->max - in->min) * (float)qat_rng_uniform(&rng);
    qat_graph_forward(graph, &(qat_run){.mode = QAT_MODE_EVAL});
    return QAT_OK;
}

/** fmax and fabs would pass over a NaN. */
static bool is_finite(const qat_node *node)
{
    for (size_t i = 0; i < qat_shape_count(&node->shape); i++)
        if (!isfinite(node->value[i]))
            return false;
    return true;
}

static qat_status compare_output(const qat_node *was, const qat_node *is, qat_error *err)
{
    double largest = 0, furthest = 0;
    if (!is_finite(was) || !is_finite(is))
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "export refused: the answers %s of the %s are not finite", was->name,
                        is_finite(was) ? "folded network" : "checkpoint");
    for (size_t i = 0; i < qat_shape_count(&was->shape); i++) {
        largest = fmax(largest, fabs((double)was->value[i]));
        furthest = fmax(furthest, fabs((double)was->value[i] - (double)is->value[i]));
    }
    if (furthest <= SAME * largest)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "export refused: the folded network's answers %s are up to %g from the "
                    "checkpoint's, which are up to %g",
                    was->name, furthest, largest);
}

static qat_status compare_answers(const qat_certified_source *s, qat_graph *folded, int max_batch,
                                  qat_error *err)
{
    int const samples = max_batch < SAMPLES ? max_batch : SAMPLES;
    qat_graph *was = NULL;
    char *text = NULL;
    qat_status st = qat_graph_write(s->float_graph, &text, err);
    if (!st)
        st = qat_graph_read(&was, qat_graph_registry(s->float_graph), text, "certificate", err);
    free(text);
    if (!st)
        st = qat_graph_plan(was, samples, QAT_PLAN_EVAL, err);
    if (!st) {
        set_parameters(s, was);
        st = run(was, &s->checkpoint->input, samples, err);
    }
    if (!st)
        st = run(folded, &s->checkpoint->input, samples, err);
    for (int i = 0; !st && i < qat_graph_outputs(was); i++)
        st = compare_output(qat_graph_output_at(was, i), qat_graph_output_at(folded, i), err);
    qat_graph_free(was);
    return st;
}

/* ------------------------------------------------------------------ parameters */

/** Clipping only brings a weight nearer to 0, and never across it. */
static qat_status check_clipped(const qat_node *was, const qat_node *is, bool clips, qat_error *err)
{
    size_t const n = qat_shape_count(&was->shape);
    for (size_t i = 0; i < n; i++) {
        float const a = was->value[i], b = is->value[i];
        bool const nearer = a < 0 ? b >= a && b <= 0 : b <= a && b >= 0;
        if (a != b && !(clips && nearer))
            return qat_fail(err, QAT_ERR_MISMATCH,
                            "export refused: %s, value %zu: %.9g in the folded network, %.9g in "
                            "the calibrated one%s",
                            was->name, i, (double)a, (double)b,
                            clips ? ", which is no clipping" : "; nothing was to change it");
    }
    return QAT_OK;
}

static qat_status compare_parameter(const qat_node *was, const qat_node *is,
                                    const qat_deploy_options *o, qat_error *err)
{
    bool const bias = strcmp(was->init.name, "bias") == 0;
    bool const clips = o->estimator && o->estimator->for_weights; /* NULL: minmax */
    size_t const n = strlen(was->name);
    if (!is && n > 10 && strcmp(was->name + n - 10, "/ema_steps") == 0)
        return QAT_OK; /* only training counts batches */
    if (!is || !is->is_param || !qat_shape_equal(&was->shape, &is->shape))
        return qat_fail(err, QAT_ERR_MISMATCH,
                        "export refused: the calibrated network has no parameter %s of that shape",
                        was->name);
    if (bias && o->correct_bias)
        return is_finite(is)
                   ? QAT_OK
                   : qat_fail(err, QAT_ERR_MISMATCH,
                              "export refused: %s is not finite after its correction", was->name);
    return check_clipped(was, is, clips && !bias, err);
}

static qat_status compare_parameters(const qat_graph *folded, const qat_graph *eval,
                                     const qat_deploy_options *o, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; !st && i < qat_graph_nodes(folded); i++) {
        const qat_node *was = qat_graph_node(folded, i);
        if (was->is_param)
            st = compare_parameter(was, qat_graph_find((qat_graph *)(uintptr_t)eval, was->name), o,
                                   err);
    }
    return st;
}

qat_status qat_certify_calibration(const qat_certified_source *source,
                                   const qat_deploy_options *options, qat_graph *folded,
                                   int max_batch, const qat_graph *eval, qat_error *err)
{
    qat_status const st = compare_answers(source, folded, max_batch, err);
    return st ? st : compare_parameters(folded, eval, options, err);
}
