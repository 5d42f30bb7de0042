#include "deploy/integer_model.h"

#include <string.h>

bool qat_takes_bytes(const qat_input_info *input)
{
    return input->type != QAT_SAMPLE_F32;
}

qat_status qat_freeze_network(qat_qgraph **graph, qat_graph *eval, const qat_input_info *input,
                              qat_profile profile, const qat_log *log, qat_error *err)
{
    *graph = NULL;
    qat_status st = qat_freeze(graph, eval, profile, log, err);
    if (!st && qat_takes_bytes(input))
        st = qat_qgraph_add_input_table(*graph, input->channels, input->mean, input->std, err);
    if (st) {
        qat_qgraph_free(*graph);
        *graph = NULL;
    }
    return st;
}

qat_status qat_finish_network(qat_qgraph *graph, const qat_input_info *in, qat_error *err)
{
    const qat_task *task = qat_task_of(in);
    return task->finish ? task->finish(in, graph, err) : QAT_OK;
}

qi_preprocessing qat_preprocessing_of(const qat_input_info *in)
{
    qi_preprocessing p = {.kind = 2, .channels = in->channels};
    if (in->type == QAT_SAMPLE_SOUND)
        p = (qi_preprocessing){
            .kind = 3, .height = in->height, .width = in->width, .channels = in->channels};
    if (in->type == QAT_SAMPLE_U8)
        p = (qi_preprocessing){.kind = 1,
                               .height = in->height,
                               .width = in->width,
                               .channels = in->channels,
                               .resize_short = in->resize_short,
                               .channel_order = in->channels >= 3};
    if (in->central_crop) {
        p.resize_short = 0;
        p.central_crop = in->central_crop;
    }
    memcpy(p.mean_bits, in->mean, sizeof in->mean);
    memcpy(p.std_bits, in->std, sizeof in->std);
    return p;
}
