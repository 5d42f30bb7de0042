/** qat-eval for a .qm: runs the integer engine on the test data. */
#include "tools/common/model_data.h"
#include "tools/eval.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/files/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void eval_note_data(eval_results *r, const qat_dataset *d, int classes)
{
    r->classes = classes;
    snprintf(r->data, sizeof r->data, "%s", qat_dataset_info_of(d)->name);
}

qat_status eval_look_on(const eval_results *r, figures *f, qat_input_info *input,
                        const qat_dataset *d, qat_error *err)
{
    return r->looks ? figures_begin(f, input, qat_dataset_info_of(d), err) : QAT_OK;
}

/** Write one sample's pixels in the form that the engine takes. */
static qat_status dump_sample(const char *dir, const qat_dataset *d, int index, qat_writer *labels,
                              qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(d);
    int64_t const dims[] = {1, info->height, info->width, info->channels};
    char path[1024];
    int label;
    uint8_t *values = malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels);
    if (!values)
        return qat_out_of_memory(err, NULL);
    qat_status st = qat_dataset_get(d, index, values, &label, err);
    snprintf(path, sizeof path, "%.900s/%d.npy", dir, index);
    if (!st)
        st = qat_npy_write(path, QAT_NPY_U8, 4, dims, values, err);
    if (!st)
        qat_write_text(labels, "%d.npy %d\n", index, label);
    free(values);
    return st;
}

static qat_status dump_inputs(const eval_request *q, const qat_dataset *d, qat_error *err)
{
    char path[1024];
    const qat_dataset_info *info = qat_dataset_info_of(d);
    int const n = q->samples > 0 && q->samples < info->count ? (int)q->samples : info->count;
    if (info->type == QAT_SAMPLE_F32)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "--dump-inputs works with pictures and sounds only");
    qat_status st = qat_make_dirs(q->dump_dir, err);
    snprintf(path, sizeof path, "%.900s/labels.txt", q->dump_dir);
    qat_writer labels = {0};
    for (int i = 0; i < n && !st; i++)
        st = dump_sample(q->dump_dir, d, i, &labels, err);
    if (!st)
        st = labels.failed ? qat_out_of_memory(err, path)
                           : qat_file_write_atomic(path, labels.bytes, labels.count, err);
    qat_writer_free(&labels);
    return st;
}

qat_status eval_model(const char *path, const qat_recipe *other, const eval_request *q,
                      eval_results *r, qat_error *err)
{
    tool_model m;
    tool_model_data of = {0};
    char label[] = "engine";
    tool_run const how = {.plugins = q->plugins, .isa = q->isa};
    qat_status st = tool_model_open(&m, path, &how, err);
    if (st)
        return st;
    st = tool_model_data_open(&of, &m, other, q->data, q->central_crop, err);
    if (!st && q->dump_dir)
        st = dump_inputs(q, of.data, err);
    if (!st)
        st = eval_look_on(r, &r->quantized_figures, &of.input, of.data, err);
    if (!st) {
        eval_note_data(r, of.data, of.input.classes);
        r->isa = qi_host_isa(m.host);
        st = qat_evaluate_model(m.host, &of.input, of.data, q->samples, tool_tick, label,
                                &r->quantized, err);
    }
    if (!st && r->looks)
        st = figures_end(&r->quantized_figures, err);
    tool_model_data_close(&of);
    tool_model_close(&m);
    return st;
}
