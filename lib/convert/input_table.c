/**
 * Tables from pixels to codes, with 256 entries per channel. Every input of pixels is defined by
 * them.
 */
#include "convert/convert.h"
#include "integer/quant_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** (pixel - mean) / std in float32, each operation rounded. */
static float pixel_value(int pixel, float mean, float std)
{
    float const centred = (float)pixel - mean;
    return centred / std;
}

void qat_pixel_values(int channels, const float *mean, const float *std, float *values)
{
    for (int c = 0; c < channels; c++)
        for (int pixel = 0; pixel < 256; pixel++)
            values[c * 256 + pixel] = pixel_value(pixel, mean[c], std[c]);
}

void qat_pixel_tables(int channels, const float *mean, const float *std, const qat_qparams *input,
                      void *codes)
{
    qi_type const type = input->hi - input->lo > UINT8_MAX ? QI_S16 : QI_U8;
    for (int c = 0; c < channels; c++)
        for (int pixel = 0; pixel < 256; pixel++)
            qat_store_code(type, codes, (size_t)(c * 256 + pixel),
                           qat_code(input, pixel_value(pixel, mean[c], std[c])));
}

static qat_status check(const qat_qgraph *graph, int channels, const float *mean, const float *std,
                        qat_error *err)
{
    if (graph->n_inputs < 1)
        return qat_fail(err, QAT_ERR_STATE, "input table: the integer graph has no inputs");
    const qat_qtensor *t = &graph->tensors[graph->inputs[0]];
    int const last = t->dims[t->rank - 1];
    if (channels < 1 || channels != last)
        return qat_fail(err, QAT_ERR_SHAPE, "input table: %d channels, but %s has %d", channels,
                        t->name, last);
    for (int c = 0; c < channels; c++)
        if (!(std[c] > 0.0f) || !isfinite(std[c]) || !isfinite(mean[c]))
            return qat_fail(err, QAT_ERR_ARGUMENT,
                            "input table: channel %d has mean %g and std %g; std must be positive",
                            c, (double)mean[c], (double)std[c]);
    return QAT_OK;
}

/** Append the tensor of pixels, one byte per value. */
static int add_pixels(qat_qgraph *graph, const qat_qtensor *codes, qat_error *err)
{
    qat_qtensor pixels = {
        .type = QI_U8,
        .bits = 8,
        .rank = codes->rank,
        .scale = 1.0f,
        .range_max = 255.0f,
        .source_index = -1,
    };
    memcpy(pixels.dims, codes->dims, sizeof pixels.dims);
    snprintf(pixels.name, sizeof pixels.name, "%.*s/pixels", (int)sizeof pixels.name - 8,
             codes->name);
    return qat_qgraph_tensor(graph, &pixels, err);
}

/** Append the op that turns pixels into codes at the end. */
static qat_status append_table(qat_qgraph *graph, const qat_qtensor *codes, int pixels,
                               int channels, const float *mean, const float *std, qat_error *err)
{
    qat_emit const e = {.graph = graph,
                        .name = codes->name,
                        .n_inputs = 1,
                        .inputs = &pixels,
                        .output = graph->inputs[0]};
    int32_t lo, hi;
    qat_tensor_codes(codes, &lo, &hi);
    qat_qparams const p = qat_given_qparams(codes->scale, codes->zero_point, lo, hi);
    void *table = calloc((size_t)channels * 256, qi_type_bytes(codes->type));
    if (!table)
        return qat_out_of_memory(err, codes->name);
    qat_pixel_tables(channels, mean, std, &p, table);
    qat_status const st = qat_emit_table(&e, channels, table, err);
    free(table);
    return st;
}

/** Ops are in execution order, so move the last one to the front. */
static void move_last_to_front(qat_qgraph *graph)
{
    qat_qop const last = graph->ops[graph->n_ops - 1];
    memmove(graph->ops + 1, graph->ops, (size_t)(graph->n_ops - 1) * sizeof *graph->ops);
    graph->ops[0] = last;
}

qat_status qat_qgraph_add_input_table(qat_qgraph *graph, int channels, const float *mean,
                                      const float *std, qat_error *err)
{
    qat_error ignored;
    if (!err)
        err = &ignored;
    qat_status st = check(graph, channels, mean, std, err);
    if (st)
        return st;
    qat_qtensor const codes =
        graph->tensors[graph->inputs[0]]; /* a copy, because the array moves when it grows */
    int const pixels = add_pixels(graph, &codes, err);
    if (pixels < 0)
        return err->status;
    st = append_table(graph, &codes, pixels, channels, mean, std, err);
    if (st)
        return st;
    move_last_to_front(graph);
    graph->inputs[0] = pixels;
    return QAT_OK;
}
