/** qat-run: runs a .qm. Pictures pass through bytes and integers only. */
#include "tools/common/limits.h"
#include "tools/common/model.h"
#include "tools/draw_boxes.h"
#include "tools/run_detector.h"
#include "tools/run_sound.h"

#include "base/bytes.h"
#include "base/files/file.h"
#include "base/files/npy.h"
#include "base/number.h"
#include "base/words.h"
#include "qat/sound.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static tool_list inputs, outputs, plugins;
static const char *dump_dir, *draw_dir, *isa, *threshold;
static int64_t top, threads = 1;
static bool json, steps, real;

static const tool_option options[] = {
    {"--input", TOOL_LIST, &inputs, "X.npy",
     "an input of the model, in its own type or as real numbers, of one sample or\n"
     "of n samples, [n, ...] (repeat if there are more inputs)",
     0, 0},
    {"--output", TOOL_LIST, &outputs, "Y.npy",
     "write an output of the model; of n samples or pictures, [n, ...] (repeat if\n"
     "there are more outputs)",
     0, 0},
    {"--real", TOOL_FLAG, &real, NULL, "--output writes what the codes stand for, as float32", 0,
     0},
    {"--steps", TOOL_FLAG, &steps, NULL,
     "the arrays of --input and --output have one more dimension in front: the\n"
     "steps of a sequence, between which the model keeps its states; of a sound:\n"
     "an answer after each of its frames",
     0, 0},
    {"--dump-tensors", TOOL_TEXT, &dump_dir, "DIR",
     "write every tensor as t<number>.npy; the numbers are those that\n"
     "qat-inspect lists",
     0, 0},
    {"--draw", TOOL_TEXT, &draw_dir, "DIR",
     "detectors: write each picture as a PNG, with the boxes of score 0.3 or\n"
     "more; segmentation: write its mask as a PNG, a class for each pixel",
     0, 0},
    {"--threshold", TOOL_TEXT, &threshold, "S",
     "detectors: print and draw only boxes of score S or more, 0 to 1", 0, 0},
    {"--threads", TOOL_INT, &threads, "N", "threads of one run (default 1)", 1, TOOL_THREADS_MAX},
    {"--isa", TOOL_TEXT, &isa, "NAME", "instruction set (default: the best of this processor)", 0,
     0},
    TOOL_PIXELS_OPTION,
    {"--top", TOOL_INT, &top, "K", "print the K best classes (default 1)", 1, 1000},
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load custom layers and tasks from this file (repeatable)", 0, 0},
    TOOL_MEMORY_OPTION(
        "the most memory that the model may take, and an array of --input, in\nMiB (default 4096)"),
    TOOL_MACS_OPTION,
    {"--json", TOOL_FLAG, &json, NULL, "print one JSON object per picture", 0, 0},
    {0}};

static const tool me = {"qat-run",
                        "MODEL.qm (IMAGE|SOUND.wav|FOLDER... | --input X.npy...) [--output "
                        "Y.npy]... [--real] [--steps]\n"
                        "               [--dump-tensors DIR] [--draw DIR] [--threshold S] [--top "
                        "K] [--isa NAME] [--threads N]\n"
                        "               [--max-pixels N] [--plugin FILE.so]... [--max-memory MIB]\n"
                        "               [--max-macs N] [--json]",
                        "Runs a model with integers only, on pictures (" QAT_PICTURE_FORMATS_TEXT
                        "), sounds (WAV)\n"
                        "or arrays.",
                        options,
                        1,
                        TOOL_LIST_MAX};

/** A model with buffers for its inputs and outputs. */
typedef struct runner {
    tool_model m;
    tool_buffers buffers;
    qat_detections found; /* boxes of a detector that are drawn or written as arrays */
    double least;         /* --threshold; -1: not given */
    draw_list drawn;      /* of --draw */
    bool goes_on;         /* the runs of a sound: a run does not begin a sequence */
    qat_status dump_status;
    qat_error *err;
} runner;

static const qi_tensor *input_at(const runner *r, int32_t i)
{
    return qi_tensor_at(r->m.model, qi_input_at(r->m.model, i));
}

static const qi_tensor *output_at(const runner *r, int32_t i)
{
    return qi_tensor_at(r->m.model, qi_output_at(r->m.model, i));
}

/* ------------------------------------------------------------------ arrays */

static qat_npy_type npy_type(const qi_tensor *t)
{
    static const qat_npy_type types[] = {QAT_NPY_U8, QAT_NPY_I8, QAT_NPY_I32, QAT_NPY_I64,
                                         QAT_NPY_I16};
    return types[t->type];
}

static qat_status write_tensor(const char *path, const qi_tensor *t, const void *values,
                               qat_error *err)
{
    int64_t dims[QI_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i];
    return qat_npy_write(path, npy_type(t), t->rank, dims, values, err);
}

/** Does the array have the tensor's dimensions? A leading 1, the batch, may be left out. */
static bool has_shape(const qat_npy *array, const qi_tensor *t)
{
    int const left_out = t->rank - array->rank;
    bool same = left_out == 0 || (left_out == 1 && t->dims[0] == 1);
    for (int i = 0; same && i < array->rank; i++)
        same = array->dims[i] == t->dims[i + left_out];
    return same;
}

/** "[1, 28, 28, 1]" */
static void shape_text(char text[128], const int64_t *dims, int rank)
{
    size_t at = (size_t)snprintf(text, 128, "[");
    for (int i = 0; i < rank && at < 128; i++)
        at += (size_t)snprintf(text + at, 128 - at, "%s%lld", i ? ", " : "", (long long)dims[i]);
    if (at < 128)
        snprintf(text + at, 128 - at, "]");
}

static qat_status wrong_array(const char *path, const qat_npy *array, int input, const qi_tensor *t,
                              qat_error *err)
{
    char found[128], wanted[128];
    int64_t dims[QI_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i];
    shape_text(found, array->dims, array->rank);
    shape_text(wanted, dims, t->rank);
    return qat_fail(err, QAT_ERR_SHAPE,
                    "%s: %s of shape %s, but input %d of the model, %s, is %s of %s", path,
                    qat_npy_type_name(array->type), found, input, t->name,
                    qat_npy_type_name(npy_type(t)), wanted);
}

static qat_status read_array(const char *path, qat_npy *array, qat_error *err)
{
    return qat_npy_read_within(array, path, tool_max_memory(), "--max-memory", err);
}

/** Real numbers of another type as float32; integers are exact, float64 is rounded. */
static float *reals_of(const qat_npy *array)
{
    float *values = malloc((array->count + 1) * sizeof *values);
    for (size_t i = 0; values && i < array->count; i++)
        values[i] = array->type == QAT_NPY_F64 ? (float)((const double *)array->data)[i]
                                               : ((const int16_t *)array->data)[i];
    return values;
}

/** Take an input in the tensor's own type, or real numbers if the model takes them. */
static qat_status take_input(const runner *r, int input, const qat_npy *array, qat_error *err)
{
    const qi_tensor *t = input_at(r, input);
    float *values = NULL;
    if (array->type == npy_type(t)) {
        memcpy(r->buffers.in[input], array->data, t->bytes);
        return QAT_OK;
    }
    if (array->type != QAT_NPY_F32 && !(values = reals_of(array)))
        return qat_out_of_memory(err, inputs.items[input]);
    qat_status const st = qat_model_codes(r->m.model, input, values ? values : array->data,
                                          r->buffers.in[input], err);
    free(values);
    return st;
}

/** Has the array the type of codes, or one of real numbers that become codes? */
static bool has_type(const qat_npy *array, const qi_tensor *t)
{
    return array->type == npy_type(t) ||
           (qi_type_has_codes(t->type) &&
            (array->type == QAT_NPY_F32 || array->type == QAT_NPY_F64 ||
             array->type == QAT_NPY_I16));
}

static qat_status check_input_count(const runner *r, qat_error *err)
{
    int const wanted = (int)qi_input_count(r->m.model);
    if (inputs.count == wanted)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "the model has %d input%s, but --input was given %d time%s", wanted,
                    qat_plural(wanted), inputs.count, qat_plural(inputs.count));
}

/* ------------------------------------------------------------------ all runs */

/** The arrays of all samples, steps or pictures: an input's, and what an output gave so far. */
typedef struct runs {
    int64_t count;
    bool several;                /* the arrays have a dimension for the runs */
    qat_npy in[TOOL_LIST_MAX];   /* by input */
    uint8_t *out[TOOL_LIST_MAX]; /* by --output: codes, or real numbers */
} runs;

static void runs_free(runs *s)
{
    for (int i = 0; i < TOOL_LIST_MAX; i++)
        qat_npy_free(&s->in[i]);
    for (int i = 0; i < TOOL_LIST_MAX; i++)
        free(s->out[i]);
}

/** The array of one run of `several`. */
static qat_npy one_of(const qat_npy *array, int64_t k)
{
    qat_npy view = *array;
    view.count /= (size_t)array->dims[0];
    view.rank--;
    memmove(view.dims, array->dims + 1, (size_t)view.rank * sizeof *view.dims);
    view.data = (uint8_t *)array->data + (size_t)k * view.count * qat_npy_item_bytes(view.type);
    return view;
}

static qat_status check_array(const runs *s, const runner *r, int i, qat_error *err)
{
    const qat_npy *array = &s->in[i];
    const qi_tensor *t = input_at(r, i);
    int64_t const count = array->rank > 0 ? array->dims[0] : 0;
    if (!has_type(array, t) || (!s->several && !has_shape(array, t)))
        return wrong_array(inputs.items[i], array, i, t, err);
    if (!s->several)
        return QAT_OK;
    if (count < 1 || (i > 0 && count != s->count))
        return qat_fail(err, QAT_ERR_SHAPE,
                        "%s: %lld %s; at least one is wanted, and of all inputs as many",
                        inputs.items[i], (long long)count, steps ? "steps" : "samples");
    qat_npy const view = one_of(array, 0);
    return has_shape(&view, t) ? QAT_OK : wrong_array(inputs.items[i], array, i, t, err);
}

static qat_status read_arrays(runs *s, const runner *r, qat_error *err)
{
    qat_status st = check_input_count(r, err);
    s->count = 1;
    s->several = steps;
    for (int i = 0; i < inputs.count && !st; i++) {
        st = read_array(inputs.items[i], &s->in[i], err);
        s->several |= !st && !has_shape(&s->in[i], input_at(r, i));
    }
    if (!st && s->several && s->in[0].rank)
        s->count = s->in[0].dims[0];
    for (int i = 0; i < inputs.count && !st; i++)
        st = check_array(s, r, i, err);
    return st;
}

static qat_status take_run(const runs *s, const runner *r, int64_t k, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < inputs.count && !st; i++) {
        qat_npy const view = s->several ? one_of(&s->in[i], k) : s->in[i];
        st = take_input(r, i, &view, err);
    }
    return st;
}

/** Are real numbers written? The source model may give them by itself. */
static bool is_real(const qi_tensor *t)
{
    return t->border || (real && qi_type_has_codes(t->type));
}

/** Bytes of one run in an output's array. */
static size_t run_bytes(const qi_tensor *t)
{
    return is_real(t) ? qat_tensor_values(t) * sizeof(float) : t->bytes;
}

/** Room for --output. A detector's are computed from the engine's first two, of one run. */
static qat_status make_outputs(runs *s, const runner *r, qat_error *err)
{
    bool const detector = qat_is_detector(r->m.model);
    int const count = (int)qi_output_count(r->m.model) + (detector ? DETECTOR_OUTPUTS - 2 : 0);
    if (outputs.count > count)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "the model has %d output%s, but --output was given %d time%s", count,
                        qat_plural(count), outputs.count, qat_plural(outputs.count));
    if (s->count > 1 && (dump_dir || (detector && outputs.count)))
        return qat_fail(
            err, QAT_ERR_ARGUMENT, "%s works with one picture or sample only, not with %lld",
            dump_dir ? "--dump-tensors" : "--output of a detector", (long long)s->count);
    for (int i = 0; i < outputs.count && !detector; i++) {
        size_t const each = run_bytes(output_at(r, i));
        if (each && (uint64_t)s->count > tool_max_memory() / each)
            return qat_fail(err, QAT_ERR_LIMIT,
                            "%s: %lld times %zu bytes are more than --max-memory allows",
                            outputs.items[i], (long long)s->count, each);
        s->out[i] = calloc((size_t)s->count, each + !each);
        if (!s->out[i])
            return qat_out_of_memory(err, outputs.items[i]);
    }
    return QAT_OK;
}

static void copy_output(const runner *r, int i, const void *codes, void *to)
{
    const qi_tensor *t = output_at(r, i);
    if (is_real(t))
        qat_border_dequantize_at(r->m.model, qi_output_at(r->m.model, i), codes, to);
    else
        memcpy(to, codes, t->bytes);
}

static void keep_run(const runs *s, const runner *r, int64_t k)
{
    for (int i = 0; i < outputs.count && s->out[i]; i++) {
        const qi_tensor *t = output_at(r, i);
        copy_output(r, i, r->buffers.out[i], s->out[i] + (size_t)k * run_bytes(t));
    }
}

/** An output's array: samples stand where the tensor has a batch of 1, steps before it. */
static qat_status write_output(const runs *s, const qi_tensor *t, const char *path,
                               const void *values, qat_error *err)
{
    int64_t dims[QI_MAX_RANK + 1] = {s->count};
    int const left_out = s->several && !steps && t->rank > 0 && t->dims[0] == 1, more = s->several;
    for (int d = left_out; d < t->rank; d++)
        dims[d - left_out + more] = t->dims[d];
    return qat_npy_write(path, is_real(t) ? QAT_NPY_F32 : npy_type(t), t->rank - left_out + more,
                         dims, values, err);
}

static qat_status write_detector_output(const runs *s, const runner *r, int i, qat_error *err)
{
    if (i < DETECTOR_OUTPUTS)
        return run_detector_write(&r->found, i, outputs.items[i], err);
    int const at = i - DETECTOR_OUTPUTS + 2;
    const qi_tensor *t = output_at(r, at);
    void *values = calloc(1, run_bytes(t) + 1);
    if (!values)
        return qat_out_of_memory(err, outputs.items[i]);
    copy_output(r, at, r->buffers.out[at], values);
    qat_status const st = write_output(s, t, outputs.items[i], values, err);
    free(values);
    return st;
}

static qat_status write_outputs(const runs *s, const runner *r, qat_error *err)
{
    qat_status st = QAT_OK;
    for (int i = 0; i < outputs.count && !st; i++)
        st = qat_is_detector(r->m.model)
                 ? write_detector_output(s, r, i, err)
                 : write_output(s, output_at(r, i), outputs.items[i], s->out[i], err);
    return st;
}

/* ------------------------------------------------------------------ running */

static void dump_tensor(void *context, const qi_model *model, int32_t index, const void *data)
{
    runner *r = context;
    const qi_tensor *t = qi_tensor_at(model, index);
    char path[1024], label[TOOL_LABEL_MAX];
    tool_tensor_label(label, tool_is_numbered(model), t->source_index, index);
    int const n = snprintf(path, sizeof path, "%s/%s.npy", dump_dir, label);
    if (r->dump_status)
        return;
    if (n < 0 || (size_t)n >= sizeof path)
        r->dump_status = qat_fail(r->err, QAT_ERR_ARGUMENT, "%s: the path is too long", dump_dir);
    else
        r->dump_status = write_tensor(path, t, data, r->err);
}

static qat_status run(runner *r, qat_error *err)
{
    const void *const *in = (const void *const *)r->buffers.in;
    qat_status st = dump_dir ? qat_make_dirs(dump_dir, err) : QAT_OK;
    if (st)
        return st;
    r->err = err;
    r->dump_status = QAT_OK;
    if (!steps && !r->goes_on)
        qi_host_reset(r->m.host, NULL);
    if (dump_dir)
        qi_host_run_visit(r->m.host, NULL, in, r->buffers.out, dump_tensor, r);
    else
        qi_host_run(r->m.host, in, r->buffers.out);
    st = r->dump_status;
    if (!st && (outputs.count || dump_dir || draw_dir) && qat_is_detector(r->m.model)) {
        qat_detections_free(&r->found);
        st = qat_detect(&r->found, r->m.model, (const void *const *)r->buffers.out, err);
        if (!st && dump_dir)
            st = run_detector_dump(&r->found, dump_dir, err);
    }
    return st;
}

/* ------------------------------------------------------------------ answers */

static const qat_task *task_of(const runner *r)
{
    return qat_task_of_model(r->m.registry, r->m.model);
}

/** Can the answer be printed? If not, it must be written to a file. */
static qat_status check_answer(const runner *r, qat_error *err)
{
    const qi_tensor *t = output_at(r, 0);
    if (outputs.count || dump_dir || task_of(r))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "the output %s (%zu values in %d dimensions) is not a list of classes: write "
                    "it with --output Y.npy",
                    t->name, qat_tensor_values(t), t->rank);
}

static qat_status print_answer(const runner *r, const char *name, qat_error *err)
{
    const qi_model *model = r->m.model;
    const qat_task *task = task_of(r);
    qat_answer const asked = {.model = model,
                              .outputs = (const void *const *)r->buffers.out,
                              .name = name,
                              .json = json,
                              .top = top,
                              .least = r->least};
    qat_text text = {0};
    qat_status const st = task ? task->answer(&text, &asked, err) : QAT_OK;
    if (!st && task && json) {
        printf("{\"input\": ");
        tool_json_string(name);
    } else if (!st && task)
        fputs(tool_shown(name), stdout);
    if (!st && text.count)
        fwrite(text.bytes, 1, text.count, stdout);
    bool const failed = text.failed;
    qat_writer_free(&text);
    return failed ? qat_out_of_memory(err, name) : st;
}

/** A file is one input. Check that the model takes no others. */
static qat_status check_one_input(const runner *r, const char *path, qat_error *err)
{
    int const n = qi_input_count(r->m.model);
    return n == 1 ? QAT_OK
                  : qat_fail(err, QAT_ERR_UNSUPPORTED,
                             "%s is one input, but the model takes %d: give --input X.npy for each",
                             path, n);
}

static qat_status run_picture(runner *r, const char *path, qat_error *err)
{
    const qi_preprocessing *p = qi_model_preprocessing(r->m.model);
    if (p->kind != 1)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "the model takes %s and does not say how pictures become them: give "
                        "--input X.npy",
                        tool_input_takes(r->m.model));
    qat_image_size const size = {.height = p->height,
                                 .width = p->width,
                                 .channels = p->channels,
                                 .central_crop = p->central_crop / 1e6,
                                 .resize_short = p->resize_short,
                                 .order_bgr = p->channel_order == 2,
                                 .max_pixels = (int)tool_limits_given.pixels};
    qat_status st = qat_image_read(path, &size, r->buffers.in[0], err);
    if (!st)
        st = check_answer(r, err);
    if (!st)
        st = run(r, err);
    if (!st)
        st = print_answer(r, path, err);
    if (!st && draw_dir && qat_has_pixels(r->m.model))
        st = draw_mask(r->m.model, r->buffers.out[0], path, draw_dir, (int)tool_limits_given.pixels,
                       err);
    else if (!st && draw_dir)
        st = draw_boxes(&r->found, r->least, path, draw_dir, (int)tool_limits_given.pixels, err);
    return st;
}

static bool takes_sounds(const runner *r)
{
    return qi_model_preprocessing(r->m.model)->kind == 3;
}

/** Run a sound, as many times as a model with states takes for it; with --steps each run answers,
 *  else the last one. `k` is the number of the next answer. */
static qat_status run_wave(runner *r, const runs *s, const char *path, int64_t k, qat_error *err)
{
    run_sound sound;
    char name[1100];
    size_t const bytes = input_at(r, 0)->bytes;
    qat_status st = run_sound_read(&sound, r->m.model, path, err);
    if (!st)
        st = check_answer(r, err);
    qi_host_reset(r->m.host, NULL);
    r->goes_on = true;
    for (int64_t i = 0; !st && i < sound.runs; i++) {
        bool const answers = steps || i == sound.runs - 1;
        int64_t const end =
            i * sound.run_samples + (int64_t)qat_wave_samples(sound.run_samples / QI_SOUND_HOP);
        memcpy(r->buffers.in[0], sound.codes + (size_t)i * bytes, bytes);
        st = run(r, err);
        qat_format(name, sizeof name, steps ? "%.1000s at %.3f s" : "%.1000s", path,
                   (double)end / QI_SOUND_RATE);
        if (!st && answers && !outputs.count)
            st = print_answer(r, name, err);
        if (!st && answers && k < s->count)
            keep_run(s, r, k++);
    }
    r->goes_on = false;
    free(sound.codes);
    return st;
}

/** Refuse --top, which would be ignored, if the answer is not a list of classes. */
static void check_top(const runner *r)
{
    const qat_task *task = task_of(r);
    if (top && task && task->no_top)
        tool_usage(&me, "--top is for classifiers: %s", task->no_top);
    if (top && (!task || !qat_is_list(output_at(r, 0))))
        tool_usage(&me, "--top is for classifiers: the output %s is not a list of scores",
                   output_at(r, 0)->name);
    top = top ? top : 1;
}

/** Refuse --draw if the model sees only a part of the picture. */
static void check_draw(const runner *r)
{
    if (!draw_dir)
        return;
    if (!qat_is_detector(r->m.model) && !qat_has_pixels(r->m.model))
        tool_usage(&me, "--draw is for detectors and segmentation: this model has no boxes");
    if (inputs.count)
        tool_usage(&me, "--draw works with pictures, not with --input");
    if (qi_model_preprocessing(r->m.model)->resize_short ||
        qi_model_preprocessing(r->m.model)->central_crop)
        tool_usage(&me, "--draw: the model sees only a part of the picture, so its %s the whole",
                   qat_is_detector(r->m.model) ? "boxes do not fit" : "mask does not fit");
}

static void check_threshold(runner *r)
{
    char *end;
    r->least = -1;
    if (!threshold)
        return;
    if (!qat_is_detector(r->m.model))
        tool_usage(&me, "--threshold is for detectors: this model has no boxes");
    r->least = qat_number_of(threshold, &end);
    if (end == threshold || *end || !(r->least >= 0 && r->least <= 1))
        tool_usage(&me, "--threshold %s: expected a score from 0 to 1", threshold);
}

/* ------------------------------------------------------------------ all of them */

/** Refuse what tells answers, which are written and not printed; and --real of nothing. */
static void check_told(const runner *r)
{
    const char *what = threshold ? "--threshold" : top ? "--top" : json ? "--json" : NULL;
    if (real && !outputs.count)
        tool_usage(&me, "--real needs --output");
    if (what && outputs.count && (inputs.count || takes_sounds(r)))
        tool_usage(&me, "%s tells an answer, but --output writes it to a file", what);
}

/** Refuse --steps where it means nothing. */
static void check_steps(const runner *r, const tool_list *args)
{
    if (steps && !inputs.count && (!takes_sounds(r) || !qi_state_count(r->m.model)))
        tool_usage(&me, "--steps works with --input, or with a sound and a model with states");
    if (steps && !inputs.count && (args->count > 2 || !qat_wave_has_ending(args->items[1])))
        tool_usage(&me, "--steps takes one sound, a file that ends in .wav");
    if (steps && dump_dir)
        tool_usage(&me, "--dump-tensors writes the tensors of one run: give it without --steps");
    if (steps && qat_is_detector(r->m.model))
        tool_usage(&me, "--steps is not for detectors");
}

static qat_status run_arrays(runner *r, runs *s, qat_error *err)
{
    char name[1100];
    qat_status st = read_arrays(s, r, err);
    if (!st)
        st = check_answer(r, err);
    if (!st)
        st = make_outputs(s, r, err);
    qi_host_reset(r->m.host, NULL);
    for (int64_t k = 0; k < s->count && !st; k++) {
        st = take_run(s, r, k, err);
        if (!st)
            st = run(r, err);
        qat_format(name, sizeof name, s->several && !steps ? "%.1000s[%lld]" : "%.1000s",
                   inputs.items[0], (long long)k);
        if (!st && !outputs.count)
            st = print_answer(r, name, err);
        if (!st)
            keep_run(s, r, k);
    }
    return st;
}

static int is_picture(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && qat_picture_has_ending(entry->d_name);
}

static int is_sound(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && qat_wave_has_ending(entry->d_name);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/** The pictures, or sounds, of a folder, or the file itself. They are as many as *n; free both
 *  kinds. */
static qat_status list_files(const char *path, bool sounds, struct dirent ***found, int *n,
                             qat_error *err)
{
    struct stat about;
    *found = NULL;
    *n = 1;
    if (stat(path, &about) || !S_ISDIR(about.st_mode))
        return QAT_OK;
    *n = scandir(path, found, sounds ? is_sound : is_picture, by_bytes);
    if (*n < 0)
        return qat_fail(err, QAT_ERR_IO, "%s: %s", path, strerror(errno));
    return *n ? QAT_OK
              : qat_fail(err, QAT_ERR_FORMAT, "%s: no %s in this folder", path,
                         sounds ? "sounds" : "pictures");
}

/** The answers that a file gives: one, or with --steps one for each of a sound's frames. */
static qat_status count_answers(const runner *r, const char *path, int64_t *k, qat_error *err)
{
    run_sound sound = {.runs = 1};
    qat_status const st = steps ? run_sound_read(&sound, r->m.model, path, err) : QAT_OK;
    free(sound.codes);
    *k += sound.runs;
    return st;
}

static qat_status run_file(runner *r, const runs *s, const char *path, int64_t *k, qat_error *err)
{
    int64_t const first = *k;
    qat_status st = count_answers(r, path, k, err);
    if (!st && *k > s->count)
        return qat_fail(err, QAT_ERR_STATE, "%s: another file came", path);
    if (!st)
        st = check_one_input(r, path, err);
    if (!st && takes_sounds(r))
        return run_wave(r, s, path, first, err);
    if (!st)
        st = run_picture(r, path, err);
    if (!st)
        keep_run(s, r, first);
    return st;
}

/** Run, or only count, the pictures or sounds of an argument. */
static qat_status run_argument(runner *r, runs *s, const char *path, int64_t *k, bool count_only,
                               qat_error *err)
{
    struct dirent **found;
    int n;
    char file[1300];
    qat_status st = list_files(path, takes_sounds(r), &found, &n, err);
    for (int i = 0; i < n; i++) {
        if (found)
            qat_format(file, sizeof file, "%.1000s/%s", path, found[i]->d_name);
        if (!st && count_only && draw_dir)
            st = draw_list_add(&r->drawn, found ? file : path, draw_dir, err);
        if (!st && count_only)
            st = count_answers(r, found ? file : path, k, err);
        else if (!st)
            st = run_file(r, s, found ? file : path, k, err);
        if (found)
            free(found[i]);
    }
    free(found);
    return st;
}

static qat_status run_pictures(runner *r, runs *s, const tool_list *args, qat_error *err)
{
    qat_status st = draw_dir ? qat_make_dirs(draw_dir, err) : QAT_OK;
    for (int i = 1; i < args->count && !st; i++)
        st = run_argument(r, s, args->items[i], &s->count, true, err);
    if (!st)
        st = draw_list_check(&r->drawn, err);
    draw_list_free(&r->drawn);
    s->several = steps || s->count > 1;
    if (!st)
        st = make_outputs(s, r, err);
    int64_t k = 0;
    for (int i = 1; i < args->count && !st; i++)
        st = run_argument(r, s, args->items[i], &k, false, err);
    return st;
}

static qat_status run_all(runner *r, const tool_list *args, qat_error *err)
{
    static runs s;
    qat_status st = inputs.count ? run_arrays(r, &s, err) : run_pictures(r, &s, args, err);
    if (!st)
        st = write_outputs(&s, r, err);
    runs_free(&s);
    return st;
}

int main(int argc, char **argv)
{
    tool_list args;
    qat_error err;
    runner r = {0};
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    if ((args.count > 1) == (inputs.count > 0))
        tool_usage(&me, "give either pictures, sounds or --input");
    tool_check_isa(&me, isa);
    tool_run const how = {.plugins = &plugins, .isa = isa, .threads = threads};
    qat_status st = tool_model_open(&r.m, args.items[0], &how, &err);
    if (!st)
        check_told(&r);
    if (!st)
        check_top(&r);
    if (!st)
        check_draw(&r);
    if (!st)
        check_threshold(&r);
    if (!st)
        check_steps(&r, &args);
    if (!st)
        st = tool_buffers_create(&r.buffers, r.m.model, &err);
    if (!st)
        st = run_all(&r, &args, &err);
    qat_detections_free(&r.found);
    tool_buffers_free(&r.buffers);
    tool_model_close(&r.m);
    return st ? tool_failed(&me, &err) : 0;
}
