/**
 * Shows a data set: writes its first pictures into one PNG, with a row for each class. If samples
 * have a real value, such as an age, there is a row for each ten of it.
 *
 *     contact_sheet KIND OUT.png [PATH]        KIND as in a recipe's [data] kind
 */
#include "qat/dataset.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 24, SCALE = 2, GAP = 2, MAX_ROWS = 20, TENS = 8, RGB = 3 };

typedef struct sheet {
    uint8_t *rgb;
    int height, width, rows;
} sheet;

/** Put one picture, enlarged, at a place of the sheet. */
static void put(sheet *s, const qat_dataset_info *info, const uint8_t *values, int row, int column)
{
    int const top = row * (info->height * SCALE + GAP), left = column * (info->width * SCALE + GAP);
    for (int y = 0; y < info->height * SCALE; y++) {
        for (int x = 0; x < info->width * SCALE; x++) {
            const uint8_t *p = values + ((y / SCALE) * info->width + x / SCALE) * info->channels;
            uint8_t *to =
                s->rgb + ((size_t)(top + y) * (size_t)s->width + (size_t)(left + x)) * RGB;
            for (int k = 0; k < RGB; k++)
                to[k] = p[info->channels == RGB ? k : 0];
        }
    }
}

static int row_of(const qat_dataset *dataset, int index, int label)
{
    const float *targets = qat_dataset_targets(dataset, index);
    float const value = targets ? targets[qat_dataset_info_of(dataset)->classes] : 0;
    if (!targets)
        return label;
    return value >= 0 && value < 10 * MAX_ROWS ? (int)value / 10 : MAX_ROWS;
}

static qat_status fill(sheet *s, const qat_dataset *dataset, uint8_t *values, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(dataset);
    int used[MAX_ROWS] = {0}, label;
    for (int i = 0; i < info->count; i++) {
        qat_status st = qat_dataset_get(dataset, i, values, &label, err);
        if (st)
            return st;
        int const row = row_of(dataset, i, label);
        if (row < s->rows && used[row] < COLUMNS)
            put(s, info, values, row, used[row]++);
    }
    return QAT_OK;
}

static qat_status write_png(const sheet *s, const char *path, qat_error *err)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = PNG_FORMAT_RGB,
                       .width = (png_uint_32)s->width,
                       .height = (png_uint_32)s->height};
    if (png_image_write_to_file(&image, path, 0, s->rgb, 0, NULL))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_IO, "cannot write %s: %s", path, image.message);
}

static qat_status render(const qat_dataset *dataset, const char *path, qat_error *err)
{
    const qat_dataset_info *info = qat_dataset_info_of(dataset);
    if (info->type != QAT_SAMPLE_U8)
        return qat_fail(err, QAT_ERR_UNSUPPORTED, "%s: not pictures", info->name);
    sheet s = {.rows = info->has_targets          ? TENS
                       : info->classes < MAX_ROWS ? info->classes
                                                  : MAX_ROWS};
    s.height = s.rows * (info->height * SCALE + GAP);
    s.width = COLUMNS * (info->width * SCALE + GAP);
    s.rgb = calloc((size_t)s.height * (size_t)s.width, RGB);
    uint8_t *values = malloc((size_t)info->height * (size_t)info->width * (size_t)info->channels);
    qat_status st = QAT_OK;
    if (!s.rgb || !values)
        st = qat_out_of_memory(err, "sheet");
    if (!st)
        st = fill(&s, dataset, values, err);
    if (!st)
        st = write_png(&s, path, err);
    free(s.rgb);
    free(values);
    return st;
}

int main(int argc, char **argv)
{
    qat_error err;
    qat_dataset *dataset;
    if (argc < 3) {
        fprintf(stderr, "usage: contact_sheet KIND OUT.png [PATH]\n");
        return 2;
    }
    qat_dataset_options options = {
        .kind = argv[1], .path = argc > 3 ? argv[3] : NULL, .seed = 1, .train_count = 600};
    qat_status st = qat_dataset_open(&dataset, &options, QAT_SPLIT_TRAIN, &err);
    if (!st)
        st = render(dataset, argv[2], &err);
    qat_dataset_close(dataset);
    if (st)
        fprintf(stderr, "contact_sheet: %s\n", err.message);
    return st ? 1 : 0;
}
