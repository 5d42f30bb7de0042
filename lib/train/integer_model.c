#include "train/integer_model.h"

#include "train/attributes.h"
#include "train/detector.h"

#include <string.h>

bool qat_takes_pixels(const qat_input_info *input)
{
    return input->type == QAT_SAMPLE_U8;
}

qat_status qat_freeze_network(qat_qgraph **graph, qat_graph *eval, const qat_input_info *input,
                              qat_profile profile, const qat_log *log, qat_error *err)
{
    *graph = NULL;
    qat_status st = qat_freeze(graph, eval, profile, log, err);
    if (!st && qat_takes_pixels(input))
        st = qat_qgraph_add_input_table(*graph, input->channels, input->mean, input->std, err);
    if (st) {
        qat_qgraph_free(*graph);
        *graph = NULL;
    }
    return st;
}

qat_status qat_finish_network(qat_qgraph *graph, const qat_input_info *input, qat_error *err)
{
    if (input->detector)
        return qat_detector_finish(input->detector, graph, err);
    return input->attributes.count ? qat_attributes_finish(&input->attributes, graph, err) : QAT_OK;
}

qi_preprocessing qat_preprocessing_of(const qat_input_info *input)
{
    qi_preprocessing p = {.kind = 2, .channels = input->channels};
    if (qat_takes_pixels(input))
        p = (qi_preprocessing){.kind = 1,
                               .height = input->height,
                               .width = input->width,
                               .channels = input->channels,
                               .resize_short = input->resize_short,
                               .channel_order = input->channels >= 3};
    memcpy(p.mean_bits, input->mean, sizeof input->mean);
    memcpy(p.std_bits, input->std, sizeof input->std);
    return p;
}
