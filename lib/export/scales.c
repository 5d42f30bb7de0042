#include "export/scales.h"

qat_status qat_export_needs_scales(const qi_model *model, qat_error *err)
{
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        const qi_node *node = qi_node_at(model, i);
        const qi_tensor *w = node->kernel->reads_packed & QI_READS_CODES
                                 ? qi_tensor_at(model, node->inputs[1])
                                 : NULL;
        if (w && !w->scale_bits && w->channel_scales < 0)
            return qat_fail(err, QAT_ERR_UNSUPPORTED,
                            "op %d: the scales of its weights were left out of this file "
                            "(qat-export --strip); take the file that has them",
                            (int)i);
    }
    for (int32_t i = 0; i < qi_input_count(model) + qi_output_count(model); i++) {
        int32_t const at = i < qi_input_count(model)
                               ? qi_input_at(model, i)
                               : qi_output_at(model, i - qi_input_count(model));
        if (qi_tensor_at(model, at)->channel_scales >= 0)
            return qat_fail(err, QAT_ERR_UNSUPPORTED,
                            "%s, an input or output, has a scale for each channel: the exported "
                            "file's activations have one",
                            qi_tensor_at(model, at)->name);
    }
    return QAT_OK;
}
