/**
 * The same samples by two ways: the file's own (what qat-run does with a picture), and that of the
 * training data. The codes that the network's input gets must be equal.
 *
 *     picture file --> qat_image_load, by the .qm's fields --> bytes --> the .qm's table --> codes
 *                  '-> data set of kind folder, by the recipe --> real --> eq. 12 ----------'
 *
 * The pictures are made here: smaller, larger and of another shape than the network's input, noise
 * over slopes, each channel different. So mean and std, the order of the channels, resizing and
 * cropping all matter. Real numbers take the same two ways.
 */
#include "base/rng.h"
#include "certify/certify.h"
#include "checkpoint/checkpoint.h"
#include "deploy/certified_source.h"
#include "evaluate/data.h"
#include "recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PICTURES = 4, ROWS = 8, PATH_MAX_HERE = 512 };

typedef struct pictures {
    const qat_certified_source *s;
    const qi_model *model;
    qat_input_info input; /* two classes, like the folder */
    char folder[PATH_MAX_HERE];
    qat_dataset *data;
    uint8_t *bytes; /* one sample by the file's way, then the same by the data's */
    qat_error *err;
} pictures;

/* ------------------------------------------------------------------ picture files */

/** Wider, narrower, smaller, and of the very size. */
static void size_of(const qat_input_info *in, int number, int *height, int *width)
{
    static const int scale[PICTURES][2] = {{3, 4}, {5, 2}, {1, 1}, {2, 2}};
    *height = (in->height * scale[number][0] + 1) / 2 + (number < 3 ? 3 : 0);
    *width = (in->width * scale[number][1] + 1) / 2 + (number < 3 ? 7 : 0);
}

static void paint(uint8_t *pixels, int height, int width, int channels, int number)
{
    qat_rng rng = qat_rng_at(1, qat_hash_name("certify pictures"), (uint64_t)number);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) {
                int const slope = c == 0 ? 190 * x / width : c == 1 ? 190 * y / height : 60;
                *pixels++ = (uint8_t)(slope + (int)qat_rng_below(&rng, 64));
            }
}

static void path_of(const pictures *p, int number, char path[PATH_MAX_HERE + 64])
{
    snprintf(path, PATH_MAX_HERE + 64, "%s/train/%c/%d.ppm", p->folder, 'a' + number % 2, number);
}

/** A portable pixmap, or graymap: the simplest picture file there is. */
static qat_status write_picture(const pictures *p, int number)
{
    char path[PATH_MAX_HERE + 64];
    int height, width;
    int const channels = p->input.channels;
    size_of(&p->input, number, &height, &width);
    path_of(p, number, path);
    size_t const count = (size_t)height * (size_t)width * (size_t)channels;
    uint8_t *pixels = malloc(count);
    if (!pixels)
        return qat_out_of_memory(p->err, "certificate");
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL;
    if (ok) {
        paint(pixels, height, width, channels, number);
        fprintf(file, "P%d\n%d %d\n255\n", channels == 1 ? 5 : 6, width, height);
        ok = fwrite(pixels, 1, count, file) == count;
        ok = fclose(file) == 0 && ok;
    }
    free(pixels);
    return ok ? QAT_OK
              : qat_fail(
                    p->err, QAT_ERR_IO,
                    "%s: a test picture for the check of the preprocessing cannot be written there",
                    path);
}

/** A folder of its own in `base`. */
static bool make_folder(pictures *p, const char *base, int length)
{
    int const n = snprintf(p->folder, sizeof p->folder, "%.*s/qat-certify-XXXXXX", length, base);
    bool const ok = n < (int)sizeof p->folder && mkdtemp(p->folder) != NULL;
    if (!ok)
        *p->folder = 0;
    return ok;
}

/** In TMPDIR or /tmp; where nothing can be written there, beside the output. */
static qat_status make_folders(pictures *p, const char *output)
{
    static const char *const parts[] = {"/train", "/train/a", "/train/b"};
    const char *base = getenv("TMPDIR"), *slash = strrchr(output, '/');
    const char *beside = slash ? output : ".";
    int const length = slash ? (int)(slash - output) : 1;
    char path[PATH_MAX_HERE + 64];
    base = base && *base ? base : "/tmp";
    bool ok = make_folder(p, base, (int)strlen(base)) || make_folder(p, beside, length);
    for (int i = 0; ok && i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", p->folder, parts[i]);
        ok = mkdir(path, 0700) == 0;
    }
    return ok ? QAT_OK
              : qat_fail(
                    p->err, QAT_ERR_IO,
                    "the check of the preprocessing writes test pictures, but no folder for them "
                    "can be made in %s or beside %s; set TMPDIR to a folder that can be written",
                    base, output);
}

static void remove_folders(const pictures *p)
{
    static const char *const parts[] = {"/train/a", "/train/b", "/train", ""};
    char path[PATH_MAX_HERE + 64];
    if (!*p->folder)
        return;
    for (int i = 0; i < PICTURES; i++) {
        path_of(p, i, path);
        (void)unlink(path);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s%s", p->folder, parts[i]);
        (void)rmdir(path);
    }
}

/* ------------------------------------------------------------------ both ways */

static qat_status open_folder(pictures *p)
{
    const qat_input_info *in = &p->input;
    qat_dataset_options const o = {.kind = "folder",
                                   .path = p->folder,
                                   .height = in->height,
                                   .width = in->width,
                                   .channels = in->channels,
                                   .resize_short = (int)p->s->recipe->data.resize_short,
                                   .central_crop = p->s->recipe->data.central_crop};
    return qat_dataset_open(&p->data, &o, QAT_SPLIT_TRAIN, p->err);
}

/** The table that the file puts in front of its network. */
static const qi_node *table_of(const qi_model *model)
{
    int32_t const input = qi_input_at(model, 0);
    for (int i = 0; i < qi_node_count(model); i++)
        if (qi_node_at(model, i)->inputs[0] == input)
            return qi_node_at(model, i);
    return NULL;
}

static qat_status refuse(const pictures *p, int picture, size_t value, int by_file, int by_data)
{
    return qat_fail(p->err, QAT_ERR_MISMATCH,
                    "test picture %d, value %zu: read as the file's preprocessing says it has the "
                    "code %d, but read as in training it has the code %d",
                    picture, value, by_file, by_data);
}

/** Pixels as the training data's loader normalises them, and their code. */
static int32_t code_by_data(const pictures *p, const qi_tensor *y, uint8_t pixel, size_t channel)
{
    float const centred = (float)pixel - p->input.mean[channel];
    return cert_code_in_float32(y, centred / p->input.std[channel]);
}

/** Sample `index` of the folder is picture `number`. */
static qat_status compare_picture(const pictures *p, int number, int index, int64_t *codes)
{
    char path[PATH_MAX_HERE + 64];
    int label;
    const qi_preprocessing *q = qi_model_preprocessing(p->model);
    const qi_node *node = table_of(p->model);
    const qi_tensor *y = qi_tensor_at(p->model, node->outputs[0]);
    const qi_tensor *table = qi_tensor_at(p->model, node->inputs[1]);
    size_t const count = cert_count(y), channels = (size_t)q->channels;
    path_of(p, number, path);
    qat_image_size const size = {.height = q->height,
                                 .width = q->width,
                                 .channels = q->channels,
                                 .central_crop = q->central_crop / 1e6,
                                 .resize_short = q->resize_short,
                                 .order_bgr = q->channel_order == 2};
    qat_status st = qat_image_read(path, &size, p->bytes, p->err);
    if (!st)
        st = qat_dataset_get(p->data, index, p->bytes + count, &label, p->err);
    for (size_t i = 0; !st && i < count; i++) {
        size_t const row = table->rank == 2 && table->dims[0] > 1 ? i % channels : 0;
        int32_t const by_file = cert_code(table, row * 256 + p->bytes[i]);
        int32_t const by_data = code_by_data(p, y, p->bytes[count + i], i % channels);
        if (by_file != by_data)
            return refuse(p, number, i, by_file, by_data);
    }
    *codes += (int64_t)count;
    return st;
}

/** The folder's samples come by class: 0 and 2, then 1 and 3. */
static qat_status compare_pictures(pictures *p, int64_t *codes)
{
    static const int order[PICTURES] = {0, 2, 1, 3};
    qat_status st = QAT_OK;
    size_t const count =
        (size_t)p->input.height * (size_t)p->input.width * (size_t)p->input.channels;
    p->bytes = malloc(2 * count);
    if (!p->bytes)
        return qat_out_of_memory(p->err, "certificate");
    for (int i = 0; !st && i < PICTURES; i++)
        st = compare_picture(p, order[i], i, codes);
    return st;
}

void qat_certify_leave_out(qat_certificate *certificate, const char *what, const char *why)
{
    cert c = {.result = certificate};
    cert_uncertified(&c, what, why);
}

/** Which picture files there would be for 2 or 4 channels is not known here. */
static void name_uncertified(qat_certificate *certificate, int channels)
{
    char why[32];
    snprintf(why, sizeof why, "%d channels", channels);
    qat_certify_leave_out(certificate, "preprocessing of pictures", why);
}

qat_status qat_certify_pictures(const qat_certified_source *source, const qi_model *model,
                                const char *output, qat_certificate *certificate, int64_t *codes,
                                qat_error *err)
{
    pictures p = {.s = source, .model = model, .input = source->checkpoint->input, .err = err};
    p.input.classes = 2;
    p.input.task = qat_task_find(NULL, "classes");
    if (p.input.channels != 1 && p.input.channels != 3) {
        name_uncertified(certificate, p.input.channels);
        return QAT_OK;
    }
    qat_status st = make_folders(&p, output);
    for (int i = 0; !st && i < PICTURES; i++)
        st = write_picture(&p, i);
    if (!st)
        st = open_folder(&p);
    if (!st)
        st = compare_pictures(&p, codes);
    qat_dataset_close(p.data);
    free(p.bytes);
    remove_folders(&p);
    return st;
}

/* ------------------------------------------------------------------ rows of real numbers */

/** Values around mean, over a little more than the input's range; then by both ways. */
qat_status qat_certify_rows(const qat_certified_source *source, const qi_model *model,
                            int64_t *codes, qat_error *err)
{
    const qat_input_info *in = &source->checkpoint->input;
    const qi_tensor *t = qi_tensor_at(model, qi_input_at(model, 0));
    size_t const n = cert_count(t), channels = (size_t)in->channels;
    float *values = malloc(n * sizeof *values);
    void *made = malloc(t->bytes);
    qat_status st = values && made ? QAT_OK : qat_out_of_memory(err, "certificate");
    for (int row = 0; !st && row < ROWS; row++) {
        qat_rng rng = qat_rng_at(1, qat_hash_name("certify rows"), (uint64_t)row);
        for (size_t i = 0; i < n; i++) {
            size_t const c = channels <= QAT_CHANNEL_VALUES ? i % channels : 0;
            float const x =
                in->min + (in->max - in->min) * (1.2f * (float)qat_rng_uniform(&rng) - 0.1f);
            values[i] = x * in->std[c] + in->mean[c];
        }
        st = qat_model_codes(model, 0, values, made, err);
        for (size_t i = 0; !st && i < n; i++) {
            size_t const c = channels <= QAT_CHANNEL_VALUES ? i % channels : 0;
            float const centred = values[i] - in->mean[c];
            int32_t const by_file = (int32_t)qi_value_at((qi_type)t->type, made, i);
            int32_t const by_data = cert_code_in_float32(t, centred / in->std[c]);
            if (by_file != by_data)
                st = qat_fail(err, QAT_ERR_MISMATCH,
                              "value %zu of a row: the file's preprocessing gives the code %d for "
                              "%g, but that of the training data gives the code %d",
                              i, (int)by_file, (double)values[i], (int)by_data);
        }
        *codes += (int64_t)n;
    }
    free(values);
    free(made);
    return st;
}
