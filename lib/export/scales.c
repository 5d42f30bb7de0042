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
    return QAT_OK;
}
