#include "tools/export_format.h"

#include "base/files/file.h"
#include "base/words.h"
#include "tools/common/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The first is that of names without an ending. */
static const export_format formats[] = {
    {.name = "qm", .ending = ".qm", .is_qm = true},
    {"onnx", ".onnx", qat_onnx_write, qat_onnx_write_float, .rounds_as_onnx = true},
    {"tflite", ".tflite", qat_tflite_write, qat_tflite_write_float, .rounds_as_tflite = true},
    {.name = "npz", .ending = ".npz", .write_float = qat_npz_write_float},
    {.name = "c", .ending = ".c", .is_source = true},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static bool ends_in(const char *path, const char *ending)
{
    size_t const n = strlen(path), end = strlen(ending);
    return n > end && !strcmp(path + n - end, ending);
}

/** ".tflit" of "net.tflit"; NULL: the name has none, or what follows its last point is a number. */
static const char *ending_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *point = strrchr(name, '.');
    return point && point > name && (point[1] < '0' || point[1] > '9') ? point : NULL;
}

const export_format *export_format_of(const tool *me, const char *name, const char *path)
{
    char known[64] = "";
    for (int i = 0; i < FORMATS; i++)
        if (name ? !strcmp(name, formats[i].name) : ends_in(path, formats[i].ending))
            return &formats[i];
    for (int i = 0; i < FORMATS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 formats[i].name);
    if (name)
        tool_usage(me, "--format %s: only %s can be written", name, known);
    if (ending_of(path))
        tool_usage(me, "%s: the ending %s names no format: give --format, one of %s",
                   tool_shown(path), ending_of(path), known);
    return &formats[0];
}

/* ------------------------------------------------------------------ the form of a .qm */

static const char *const parts[QAT_QM_PARTS] = {"names", "description", "labels", "test", "scales"};

void export_parts(const qat_qm_form *form, char text[96])
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < QAT_QM_PARTS; i++)
        if (form->without & 1 << i)
            at += (size_t)snprintf(text + at, 96 - at, "%s%s", at ? ", " : "", parts[i]);
}

/** The part whose name has these n characters. */
static int part_named(const tool *me, const char *name, size_t n)
{
    for (int i = 0; i < QAT_QM_PARTS; i++)
        if (strlen(parts[i]) == n && strncmp(parts[i], name, n) == 0)
            return 1 << i;
    tool_usage(me, "--strip: %.*s: expected names, description, labels, test or scales", (int)n,
               name);
}

/** Does an option that takes yes or no say no? */
static bool is_no(const tool *me, const char *option, const char *value)
{
    if (value && strcmp(value, "yes") && strcmp(value, "no"))
        tool_usage(me, "%s %s: expected yes or no", option, value);
    return value && !strcmp(value, "no");
}

void export_set_form(const tool *me, const char *pack, const char *compact, const char *strip,
                     export_made *made)
{
    if ((pack || compact || strip) && strcmp(made->format->name, "qm"))
        tool_usage(me, "--pack, --compact and --strip are of the format qm");
    made->form.unpacked = is_no(me, "--pack", pack);
    made->form.fixed = is_no(me, "--compact", compact);
    if (strip && !*strip)
        made->form.without = QAT_QM_ALL_PARTS;
    while (strip && *strip) {
        size_t const n = strcspn(strip, ",");
        made->form.without |= part_named(me, strip, n);
        strip += n + (strip[n] == ',');
    }
    made->again = made->form.unpacked || made->form.fixed || made->form.without;
}

/* ------------------------------------------------------------------ RAM */

void export_set_ram(const tool *me, const char *ram, export_made *made)
{
    char *end = NULL;
    if (!ram)
        return;
    if (!made->format->is_qm && !made->format->is_source)
        tool_usage(me, "--ram is of the formats qm and c");
    unsigned long long const n = *ram >= '1' && *ram <= '9' ? strtoull(ram, &end, 10) : 0;
    int const shift = !end ? 0 : *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    if (!n || n > SIZE_MAX >> 20 || end[shift > 0])
        tool_usage(me, "--ram %s: expected a number of bytes, such as 65536 or 64K", ram);
    made->ram.limit = (size_t)n << shift;
    made->again = true;
}

static double more_percent(const qat_ram_plan *p)
{
    return p->macs_before ? 100.0 * (double)(p->macs - p->macs_before) / (double)p->macs_before : 0;
}

/** Bands, and packing, are ops of their own: how many bytes they add to the .qm. */
static long long more_bytes(const qat_ram_plan *p)
{
    return (long long)p->bytes - (long long)p->bytes_before;
}

void export_print_ram(const export_made *made)
{
    const qat_ram_plan *p = &made->ram.plan;
    if (!made->ram.limit)
        return;
    if (p->layers)
        printf("RAM: %zu bytes instead of %zu: %d layers up to %s in %d bands of %d row%s, %.1f "
               "%% more multiply-adds\n",
               p->ram, p->ram_before, p->layers, tool_shown(p->last), p->bands, (int)p->rows,
               qat_plural(p->rows), more_percent(p));
    else if (p->packed)
        printf(
            "RAM: %zu bytes instead of %zu: %d tensors of few bits are packed, and the layers that "
            "make or read them run in bands of %d row%s, %.1f %% more multiply-adds\n",
            p->ram, p->ram_before, p->packed, (int)p->rows, qat_plural(p->rows), more_percent(p));
    else
        printf("RAM: %zu bytes, as it is\n", p->ram);
    if (p->ram < p->ram_before)
        printf("flash: the layers of the bands add about %lld bytes to a .qm\n", more_bytes(p));
}

void export_json_ram(const export_made *made)
{
    const qat_ram_plan *p = &made->ram.plan;
    if (made->ram.limit)
        printf(", \"ram\": %zu, \"ram_before\": %zu, \"band_layers\": %d, \"bands\": %d, "
               "\"band_rows\": %d, \"packed_tensors\": %d, \"macs\": %lld, \"macs_before\": %lld, "
               "\"flash_added\": %lld",
               p->ram, p->ram_before, p->layers, p->bands, (int)p->rows, p->packed,
               (long long)p->macs, (long long)p->macs_before, more_bytes(p));
}

/* ------------------------------------------------------------------ writing */

qat_status export_put(const export_made *made, const char *path, const uint8_t *bytes,
                      qat_error *err)
{
    qat_status const st = tool_spare(path, made->format->name, err);
    return st ? st : qat_file_write_atomic(path, bytes, made->bytes, err);
}

/* ------------------------------------------------------------------ C source */

void export_set_source(const tool *me, const export_source *source, export_made *made)
{
    if (source->is_asked && !made->format->is_source)
        tool_usage(me, "--prefix, --section, --no-self-test, --no-preprocessing, --caller-arena, "
                       "--separate-weights and --strict are of the format c");
    made->source = *source;
}

void export_source_path(const char *path, const char *ending, char to[EXPORT_PATH_MAX])
{
    size_t const n = strlen(path) - (ends_in(path, ".c") ? 2 : 0);
    snprintf(to, EXPORT_PATH_MAX, "%.*s%s", (int)n, path, ending);
}

/** A prefix of names for the files: their name, where other signs are '_'. */
static void make_name(const char *file, char name[EXPORT_PATH_MAX])
{
    bool const is_digit = *file >= '0' && *file <= '9';
    snprintf(name, EXPORT_PATH_MAX, "%s%.4000s", is_digit ? "_" : "", file);
    for (char *at = name; *at; at++)
        if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
              (*at >= '0' && *at <= '9')))
            *at = '_';
}

static qat_status put_part(export_made *made, const char *path, const char *ending,
                           const void *bytes, size_t count, qat_error *err)
{
    char to[EXPORT_PATH_MAX];
    export_source_path(path, ending, to);
    made->bytes = count;
    return export_put(made, to, bytes, err);
}

/** Write the header and the constants first: who sees the source sees all. */
static qat_status write_source(export_made *made, const qi_host *model, const char *path,
                               qat_error *err)
{
    qat_c_options how = made->source.how;
    qat_c_files files = {0};
    char base[EXPORT_PATH_MAX], name[EXPORT_PATH_MAX];
    export_source_path(path, "", base);
    const char *slash = strrchr(base, '/');
    how.struct_size = sizeof how;
    how.file = slash ? slash + 1 : base;
    make_name(how.file, name);
    how.name = how.name ? how.name : name;
    qat_status st = qat_c_write(model, &how, &files, err);
    if (!st)
        st = put_part(made, path, ".h", files.header, files.header_bytes, err);
    if (!st && files.weights)
        st = put_part(made, path, ".bin", files.weights, files.weights_bytes, err);
    if (!st)
        st = put_part(made, path, ".c", files.source, files.source_bytes, err);
    made->source.header_bytes = files.header_bytes;
    made->source.weights_bytes = files.weights_bytes;
    qat_c_files_free(&files);
    return st;
}

/* ------------------------------------------------------------------ any format */

static qat_status write_model(export_made *made, const qi_host *model, const char *path,
                              qat_error *err)
{
    qat_write_options options = made->how;
    uint8_t *bytes = NULL;
    if (made->format->is_source)
        return write_source(made, model, path, err);
    options.struct_size = sizeof options;
    options.log = &tool_log;
    qat_status st = made->format->write
                        ? made->format->write(model, &options, &bytes, &made->bytes, err)
                        : qat_qm_write_again(model, &made->form, &bytes, &made->bytes, err);
    if (!st)
        st = export_put(made, path, bytes, err);
    free(bytes);
    return st;
}

qat_status export_write(void *context, const qi_host *model, const char *path, qat_error *err)
{
    export_made *made = context;
    qi_host *fitted = NULL;
    qat_status st = QAT_OK;
    if (made->ram.limit)
        st = qat_fit_ram(&fitted, model, made->ram.limit, &made->ram.plan, err);
    if (!st)
        st = write_model(made, fitted ? fitted : model, path, err);
    qi_host_close(fitted);
    return st;
}
