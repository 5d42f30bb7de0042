#include "datasets/readers/files.h"

#include "base/files/file.h"
#include "datasets/pictures/picture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_SIDE = 32, DEFAULT_CHANNELS = 3, NAME_BYTES = 256, LEAST_BYTES = 4096 };
enum { MOST_CLASSES = 65536 };

bool qat_files_is_folder(const char *path)
{
    struct stat there;
    return stat(path, &there) == 0 && S_ISDIR(there.st_mode);
}

bool qat_files_stays_below(const char *name)
{
    if (*name == '/')
        return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && part[1] == '.' && (!part[2] || part[2] == '/'))
            return false;
    }
    return true;
}

char *qat_files_folder_of(qat_arena *arena, const char *file)
{
    char *folder = qat_arena_string(arena, file);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    if (!slash)
        return folder ? strcpy(folder, *folder ? "." : "") : NULL;
    slash[slash == folder] = 0;
    return folder;
}

int qat_files_count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n + 1;
}

qat_status qat_files_hold_lines(qat_dataset *dataset, const char *source, const char *text,
                                const char *folder, qat_error *err)
{
    enum { SLACK = 64 }; /* of a string in the arena, about */
    uint64_t const each = sizeof(char *) + sizeof(int32_t) + strlen(folder) + SLACK;
    uint64_t const bytes = (uint64_t)qat_files_count_lines(text) * each + strlen(text);
    return qat_dataset_hold(dataset, source, bytes, err);
}

qat_status qat_files_check_text(const char *path, const uint8_t *text, size_t bytes, qat_error *err)
{
    const uint8_t *zero = bytes ? memchr(text, 0, bytes) : NULL;
    if (!zero)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_FORMAT, "%s: not a text file (byte %zu is 0)", path,
                    (size_t)(zero - text));
}

/** Cut text into its lines, without empty ones. Returns their number, at most max. */
static int split_lines(char *text, const char **lines, int max)
{
    int count = 0;
    for (char *at = text; *at && count < max;) {
        size_t const length = strcspn(at, "\r\n");
        bool const last = at[length] == '\0';
        at[length] = '\0';
        if (length)
            lines[count++] = at;
        at += length + !last;
    }
    return count;
}

qat_status qat_files_count_classes(const char *folder, const char *name, int *count, qat_error *err)
{
    qat_arena arena = {0};
    const char *path = qat_dataset_join(&arena, folder, name);
    uint8_t *bytes = NULL;
    size_t n = 0;
    *count = 0;
    qat_status st = path ? QAT_OK : qat_out_of_memory(err, "class names");
    if (!st && access(path, F_OK) == 0)
        st = qat_file_read(path, LEAST_BYTES + (size_t)MOST_CLASSES * NAME_BYTES, &bytes, &n, err);
    for (size_t i = 0; !st && i < n; i++) /* the first byte of each line that is not empty */
        *count += !strchr("\r\n", bytes[i]) && (i == 0 || strchr("\r\n", bytes[i - 1]));
    free(bytes);
    qat_arena_free(&arena);
    return st;
}

qat_status qat_files_class_names(qat_dataset *dataset, const char *folder, const char *name,
                                 qat_error *err)
{
    int const classes = dataset->info.classes;
    const char **labels = qat_arena_array(&dataset->arena, (size_t)classes + 1, sizeof *labels);
    char *path = qat_dataset_join(&dataset->arena, folder, name);
    if (!labels || !path)
        return qat_out_of_memory(err, "class names");
    if (access(path, F_OK) != 0)
        return QAT_OK;
    uint8_t *bytes;
    size_t length;
    size_t const most = LEAST_BYTES + (size_t)classes * NAME_BYTES;
    qat_status st = qat_file_read(path, most, &bytes, &length, err);
    if (!st)
        st = qat_files_check_text(path, bytes, length, err);
    char *text = st ? NULL : qat_arena_string(&dataset->arena, (const char *)bytes);
    free(bytes);
    if (st)
        return st;
    if (!text)
        return qat_out_of_memory(err, "class names");
    int const found = split_lines(text, labels, classes + 1);
    if (found != classes)
        return qat_fail(err, QAT_ERR_FORMAT, "%s: %s %d lines, expected %d class names", path,
                        found > classes ? "more than" : "only", found > classes ? classes : found,
                        classes);
    dataset->info.labels = labels;
    return QAT_OK;
}

qat_files *qat_files_create(qat_dataset *dataset, const qat_dataset_options *options)
{
    qat_files *files = dataset->own = qat_arena_take(&dataset->arena, sizeof *files);
    if (files)
        *files = (qat_files){.resize_short = options->resize_short,
                             .central_crop = options->central_crop,
                             .max_pixels = options->max_pixels,
                             .jpeg_scale = options->jpeg_scale};
    return files;
}

qat_status qat_files_set_shape(qat_dataset *dataset, const qat_dataset_options *o, qat_error *err)
{
    int const channels = o->channels ? o->channels : DEFAULT_CHANNELS;
    int64_t const hwc[3] = {o->height ? o->height : DEFAULT_SIDE,
                            qat_dataset_width(o, DEFAULT_SIDE), channels};
    if (channels != 1 && channels != 3)
        return qat_fail(err, QAT_ERR_ARGUMENT, "data: channels %d, must be 1 or 3", channels);
    if (o->resize_short && (o->resize_short < hwc[0] || o->resize_short < hwc[1]))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "data: resize_short %d is less than the size %lld x %lld", o->resize_short,
                        (long long)hwc[0], (long long)hwc[1]);
    return qat_dataset_set_shape(dataset, o->path, dataset->info.count, hwc, QAT_SAMPLE_U8, err);
}

static qat_image_size size_of(const qat_dataset *dataset)
{
    const qat_files *files = dataset->own;
    const qat_dataset_info *info = &dataset->info;
    return (qat_image_size){.height = info->height,
                            .width = info->width,
                            .channels = info->channels,
                            .central_crop = files->central_crop,
                            .resize_short = files->resize_short,
                            .max_pixels = files->max_pixels,
                            .jpeg_scale = files->jpeg_scale};
}

qat_status qat_files_get(const qat_dataset *dataset, int index, void *values, int *label,
                         qat_error *err)
{
    const qat_files *files = dataset->own;
    qat_image_size const size = size_of(dataset);
    *label = dataset->labels[index];
    return qat_image_read(files->paths[index], &size, values, err);
}

/** Names below the root are seen from there, so that data may lie elsewhere. */
qat_file_name qat_files_file(const qat_dataset *dataset, int index)
{
    const qat_files *files = dataset->own;
    const char *path = files->paths[index], *root = files->root;
    size_t const n = root ? strlen(root) : 0;
    if (n && strncmp(path, root, n) == 0 && path[n] == '/')
        return (qat_file_name){.folder = root, .name = path + n + 1};
    return (qat_file_name){.folder = "", .name = path};
}

void qat_files_keep(qat_dataset *dataset, const int *kept, int n)
{
    qat_files *files = dataset->own;
    qat_keep_items(files->paths, sizeof *files->paths, kept, n);
}

qat_status qat_files_picture(const qat_dataset *dataset, int index, qat_picture *picture,
                             qat_error *err)
{
    const qat_files *files = dataset->own;
    qat_image_size const size = size_of(dataset);
    int height, width;
    qat_image_least(&size, true, &height, &width);
    return qat_picture_read_scaled(picture, files->paths[index], size.channels, size.max_pixels,
                                   height, width, err);
}
