#include "tools/common/model.h"

#include "tools/common/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qat_status tool_file_kind(const char *path, tool_file *kind, qat_error *err)
{
    static const uint8_t qm_magic[8] = {0x89, 'Q', 'A', 'T', 'Q', 'M', '\r', '\n'};
    uint8_t start[8] = {0};
    FILE *file = fopen(path, "rb");
    if (!file)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", path, strerror(errno));
    size_t const n = fread(start, 1, sizeof start, file);
    bool const failed = ferror(file) != 0;
    fclose(file);
    if (failed)
        return qat_fail(err, QAT_ERR_IO, "%s: cannot read it", path);
    size_t const length = strlen(path);
    if (qat_checkpoint_magic(start, n))
        *kind = TOOL_FILE_CHECKPOINT;
    else if (n == sizeof start && !memcmp(start, qm_magic, n))
        *kind = TOOL_FILE_QM;
    else if (n == sizeof start && !memcmp(start + 4, "TFL3", 4))
        *kind = TOOL_FILE_TFLITE;
    else
        *kind =
            length > 4 && !strcmp(path + length - 4, ".ini") ? TOOL_FILE_RECIPE : TOOL_FILE_OTHER;
    return QAT_OK;
}

qat_status tool_spare(const char *path, const char *format, qat_error *err)
{
    tool_file there = TOOL_FILE_OTHER;
    if (!tool_file_kind(path, &there, NULL) &&
        (there == TOOL_FILE_CHECKPOINT || (there == TOOL_FILE_QM && strcmp(format, "qm") != 0)))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s is a %s; it would be overwritten: give another name for the %s file",
                        path, there == TOOL_FILE_QM ? ".qm" : "checkpoint", format);
    return QAT_OK;
}

qat_status tool_not_opened(const char *path, qat_error *err)
{
    tool_file kind = TOOL_FILE_OTHER;
    if (!tool_file_kind(path, &kind, NULL) && kind == TOOL_FILE_TFLITE)
        return qat_fail(
            err, QAT_ERR_FORMAT,
            "%s is a TensorFlow Lite model; make a .qm of it first: qat-import %s OUT.qm", path,
            path);
    if (kind == TOOL_FILE_CHECKPOINT)
        return qat_fail(err, QAT_ERR_FORMAT,
                        "%s is a checkpoint; make a .qm of it first: qat-export %s OUT.qm", path,
                        path);
    return err->status;
}

qat_status tool_name_file(const char *path, qat_error *err)
{
    char message[QAT_ERROR_MESSAGE_MAX];
    if (err->status != QAT_ERR_UNSUPPORTED || strstr(err->message, path))
        return err->status;
    memcpy(message, err->message, sizeof message);
    return qat_fail(err, err->status, "%.300s: %s", path, message);
}

/** What comes behind the engine has limits, too. */
static qat_status limit_answer(const tool_model *m, const char *path, const qi_limits *limits,
                               qat_error *err)
{
    const qat_task *task = qat_task_of_model(m->registry, m->model);
    return task && task->limit ? task->limit(m->model, path, limits, err) : QAT_OK;
}

qat_status tool_model_open(tool_model *m, const char *path, const tool_run *how, qat_error *err)
{
    static const tool_list none;
    const tool_list *plugins = how->plugins ? how->plugins : &none;
    *m = (tool_model){0};
    qat_status st =
        qat_open_registry_files(&m->registry, &m->plugins, plugins->items, plugins->count, err);
    if (st)
        return st;
    qi_host_options const options = {.custom = qat_plugins_kernels(m->plugins),
                                     .isa = how->isa,
                                     .threads = (int)how->threads,
                                     .limits = tool_limits_of()};
    if (qi_host_open(&m->host, path, &options, err))
        st = tool_not_opened(path, err);
    else {
        m->model = qi_host_model(m->host);
        st = limit_answer(m, path, &options.limits, err);
    }
    if (st)
        tool_model_close(m);
    return st;
}

void tool_model_close(tool_model *m)
{
    qi_host_close(m->host);
    qat_registry_free(m->registry);
    qat_plugins_free(m->plugins);
    *m = (tool_model){0};
}

const char *tool_input_takes(const qi_model *model)
{
    static const char *const types[] = {"uint8 codes", "int8 codes", "int32 numbers",
                                        "int64 numbers", "int16 codes"};
    _Static_assert(sizeof types / sizeof *types == QI_TYPES, "every type has a name");
    const qi_tensor *t = qi_tensor_at(model, qi_input_at(model, 0));
    if (qi_model_preprocessing(model)->kind == 1)
        return "pictures";
    if (qi_model_preprocessing(model)->kind == 3)
        return "sounds";
    bool const real = t->border || qi_model_preprocessing(model)->kind == 2;
    return real ? "real numbers" : types[t->type];
}

void tool_tensor_label(char label[TOOL_LABEL_MAX], bool numbered, int source_index, int index)
{
    bool const from_source = source_index >= 0;
    snprintf(label, TOOL_LABEL_MAX, "%c%d", from_source || !numbered ? 't' : 'q',
             from_source ? source_index : index);
}

bool tool_is_numbered(const qi_model *model)
{
    for (int32_t i = 0; i < qi_tensor_count(model); i++)
        if (qi_tensor_at(model, i)->source_index >= 0)
            return true;
    return false;
}

static bool allocate_each(void **buffers, const qi_model *model, int32_t n,
                          int32_t (*tensor_at)(const qi_model *, int32_t))
{
    for (int32_t i = 0; i < n; i++)
        if (!(buffers[i] = calloc(1, qi_tensor_at(model, tensor_at(model, i))->bytes + 1)))
            return false;
    return true;
}

qat_status tool_buffers_create(tool_buffers *b, const qi_model *model, qat_error *err)
{
    int32_t const n_in = qi_input_count(model), n_out = qi_output_count(model);
    b->in = calloc((size_t)n_in + 1, sizeof *b->in);
    b->out = calloc((size_t)n_out + 1, sizeof *b->out);
    if (b->in && b->out && allocate_each(b->in, model, n_in, qi_input_at) &&
        allocate_each(b->out, model, n_out, qi_output_at))
        return QAT_OK;
    return qat_out_of_memory(err, NULL);
}

static void free_each(void **buffers)
{
    for (void **p = buffers; p && *p; p++)
        free(*p);
    free(buffers);
}

void tool_buffers_free(tool_buffers *b)
{
    free_each(b->in);
    free_each(b->out);
    *b = (tool_buffers){0};
}

/* ------------------------------------------------------------------ C source */

void tool_print_c_sizes(const qat_c_sizes *s, const qat_c_preprocessing *preprocessing)
{
    size_t const data = s->constants + s->parameters + s->test;
    printf("as C source, in bytes: constants %zu, parameters %zu, self-test %zu, arena %zu\n",
           s->constants, s->parameters, s->test, s->arena);
    printf("  %-14s %10s %10s %10s %10s\n", "", "flash", "its code", "RAM", "its stack");
    for (int i = 0; i < QAT_C_CORES; i++)
        printf("  %-14s %10zu %10zu %10zu %10zu\n", qat_c_core_names[i], data + s->code[i],
               s->code[i], s->arena + s->stack[i], s->stack[i]);
    size_t least = SIZE_MAX, most = 0;
    for (int i = 0; i < QAT_C_CORES; i++) {
        least = preprocessing->code[i] < least ? preprocessing->code[i] : least;
        most = preprocessing->code[i] > most ? preprocessing->code[i] : most;
    }
    if (preprocessing->ram)
        printf("  preprocessing, if called: flash %zu to %zu, RAM at most %zu\n", least, most,
               preprocessing->ram);
}

void tool_print_source(const qi_host *model)
{
    qat_c_sizes sizes;
    qat_c_preprocessing const preprocessing =
        qat_c_preprocessing_of(qi_model_preprocessing(qi_host_model(model)));
    qat_error err;
    if (qat_c_measure(model, NULL, &sizes, &err))
        printf("as C source: %s\n", tool_shown(err.message));
    else
        tool_print_c_sizes(&sizes, &preprocessing);
}
