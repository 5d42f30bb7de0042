/**
 * The way from a checkpoint to a calibrated network, which the file is then certified against:
 *
 *     checkpoint --fold--> --equalize--> folded --clip, correct--> eval
 *
 * calibrate.c compares folding, the estimated ranges and corrected biases when they are done, since
 * it has the data. Here: the folded network gives the checkpoint's answers, whatever equalization
 * moved between its layers. And every parameter of it is unchanged in the calibrated network, but
 * for weights that were clipped as the estimator says, and for biases that were corrected.
 */
#include "base/rng.h"
#include "certify/certify.h"
#include "checkpoint/checkpoint.h"
#include "deploy/certified_source.h"

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
        return qat_fail(
            err, QAT_ERR_MISMATCH,
            "export refused: on random inputs, the outputs %s of the %s are not all finite numbers",
            was->name, is_finite(was) ? "folded network" : "checkpoint");
    for (size_t i = 0; i < qat_shape_count(&was->shape); i++) {
        largest = fmax(largest, fabs((double)was->value[i]));
        furthest = fmax(furthest, fabs((double)was->value[i] - (double)is->value[i]));
    }
    if (furthest <= SAME * largest)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_MISMATCH,
                    "export refused: on the same inputs, the folded network's outputs %s differ "
                    "from the checkpoint's by up to %g, where the largest output is %g; folding "
                    "and equalization may change only rounding errors",
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

qat_status qat_certify_calibration(const qat_certified_source *source,
                                   const qat_deploy_options *options, qat_graph *folded,
                                   int max_batch, const qat_graph *eval, qat_error *err)
{
    bool const clips = options->estimator && options->estimator->for_weights; /* NULL: minmax */
    qat_status const st = compare_answers(source, folded, max_batch, err);
    return st ? st
              : cert_clipped_weights(folded, eval, &source->source.quant, clips,
                                     options->correct_bias, err);
}
