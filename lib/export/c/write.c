/** Writes a model as a C file and its header. */
#include "export/c/preprocessing.h"

#include "infer/model/model.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ the model of a device */

/** Read the file again as a device would: packed constants stay so, the core's kernels run. */
static qat_status open_model(co *o, const qi_host *host)
{
    const uint8_t *qm = qi_host_model(host)->qm;
    size_t const bytes = qm_u32(qm + QM_AT_FILE_BYTES);
    size_t need = 0;
    qi_model *model = NULL;
    qi_error err;
    qi_status st = qi_model_bytes(qm, bytes, &need, &err);
    o->memory = st ? NULL : qat_aligned_alloc(need);
    if (!st && !o->memory)
        return qat_out_of_memory(o->err, NULL);
    if (!st)
        st = qi_model_init(&model, qm, bytes, NULL, o->memory, need, &err);
    o->model = model;
    o->opened = qi_host_model(host);
    return st ? qi_error_tell(&err, "the model", o->err) : QAT_OK;
}

/** The arena without its start, where the engine keeps pointers. */
static void plan_arena(co *o)
{
    o->arena_bytes = qi_model_ram(o->model);
    o->arena_start = qi_arena_bytes(o->model) - o->arena_bytes;
}

/* ------------------------------------------------------------------ features */

static bool has_fraction(const qi_model *m, const qi_node *node)
{
    (void)m;
    return node->fraction;
}

/** One to three output channels, as long as weights are not in groups. */
static bool has_few_channels(const qi_model *m, const qi_node *node)
{
    enum { FEW = 3 };
    bool const is_product =
        node->kernel == &qi_kernel_conv2d || node->kernel == &qi_kernel_fully_connected;
    return is_product && qi_tensor_at(m, node->inputs[1])->dims[0] <= FEW;
}

static bool is_wide(const qi_tensor *t)
{
    return t->type == QI_S16;
}

static bool is_packed(const qi_tensor *t)
{
    return t->is_packed && t->type != QI_S32;
}

/** What a network may need of the kernels: macros of infer/kernels/parts/features.h. */
bool co_needs_feature(const co *o, const char *feature)
{
    enum { OTHER = -1 };
    static const struct {
        const char *name;
        int rounding; /* of a node, or OTHER */
        bool (*of_node)(const qi_model *m, const qi_node *node);
        bool (*of_tensor)(const qi_tensor *t);
    } needs[] = {{"QK_FRACTION", OTHER, has_fraction, NULL},
                 {"QK_FEW_CHANNELS", OTHER, has_few_channels, NULL},
                 {"QK_DOUBLE", QI_ROUND_DOUBLE, NULL, NULL},
                 {"QK_EVEN", QI_ROUND_EVEN, NULL, NULL},
                 {"QK_ONCE", QI_ROUND_ONCE, NULL, NULL},
                 {"QK_WIDE", OTHER, NULL, is_wide},
                 {"QK_PACKED", OTHER, NULL, is_packed},
                 {"QK_NARROW_SHIFT", OTHER, NULL, co_is_narrow}};
    size_t const count = sizeof needs / sizeof needs[0];
    size_t i = 0;
    if (!strcmp(feature, "QK_LARGE"))
        return co_has_large_pictures(o);
    while (i < count && strcmp(feature, needs[i].name) != 0)
        i++;
    bool is_needed = i == count; /* a macro that is no feature */
    for (int32_t n = 0; !is_needed && n < qi_node_count(o->model); n++) {
        const qi_node *node = qi_node_at(o->model, n);
        is_needed = node->rounding == needs[i].rounding ||
                    (needs[i].of_node && needs[i].of_node(o->model, node));
    }
    for (int32_t t = 0; !is_needed && needs[i].of_tensor && t < qi_tensor_count(o->model); t++)
        is_needed = needs[i].of_tensor(qi_tensor_at(o->model, t));
    return is_needed;
}

/** Is the piece the default of a feature, "#ifndef QK_WIDE", then "#define QK_WIDE 1"? */
static bool is_feature(const co_piece *piece, char feature[CO_NAME_MAX])
{
    co_span code = piece->code;
    bool const is_default = *co_token(&code).at == '#' && co_span_is(co_token(&code), "ifndef");
    co_span const name = co_token(&code);
    co_token(&code);
    if (!is_default || !co_span_is(co_token(&code), "define") || name.n < 3 ||
        name.n >= CO_NAME_MAX || memcmp(name.at, "QK_", 3) != 0)
        return false;
    snprintf(feature, CO_NAME_MAX, "%.*s", (int)name.n, name.at);
    return true;
}

/** "#define QK_WIDE 0", and the comment behind the default. */
static void write_feature(co *o, const co_piece *piece, const char *feature)
{
    const char *comment = strstr(piece->code.at, "/*");
    const char *end = piece->code.at + piece->code.n;
    qat_write_text(&o->c, "#define %s %d", feature, co_needs_feature(o, feature));
    if (comment && comment < end)
        qat_write_text(&o->c, " %.*s", (int)(strstr(comment, "*/") + 2 - comment), comment);
}

/* ------------------------------------------------------------------ the C file */

static void write_start(co *o)
{
    qat_write_text(&o->c,
                   "/*\n * %s.h says what this network is. In order: what its kernels compute, its "
                   "layers with "
                   "their\n * constants, and its functions.\n */\n#include \"%s.h\"\n\n#include "
                   "<stddef.h>\n\n",
                   o->file, o->file);
    qat_write_text(&o->c, o->options.strict
                              ? "#include <string.h>\n\n"
                              : "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                                "void *memcpy(void *to, const void *from, size_t count);\n"
                                "void *memset(void *to, int byte, size_t count);\n"
                                "#ifdef __cplusplus\n}\n#endif\n\n");
    qat_write_text(&o->c,
                   "#if defined __BYTE_ORDER__ && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
                   "#error \"this file is for little-endian processors\"\n#endif\n"
                   "#if (-3 >> 1) != -2\n"
                   "#error \"right shifts of negative integers must be arithmetic\"\n#endif\n\n");
    qat_write_text(&o->c, "/* Where the constants are. */\n#ifndef %s_SECTION\n#define %s_SECTION",
                   o->upper, o->upper);
    if (o->options.section)
        qat_write_text(&o->c, " __attribute__((section(\"%s\")))", o->options.section);
    qat_write_text(&o->c, "\n#endif\n");
    if (o->options.separate_weights)
        qat_write_text(
            &o->c,
            "#ifdef %s_WEIGHTS_AT\n#define %s_AT(type, at) \\\n"
            "    ((const type *)(const void *)((const uint8_t *)(%s_WEIGHTS_AT) + (at)))\n"
            "#else\n#define %s_AT(type, at) ((const type *)(const void *)(%s_weights + "
            "(at)))\n#endif\n",
            o->upper, o->upper, o->upper, o->upper, o->name);
    qat_write_text(&o->c, "\n/* ---- kernels */\n");
}

static void write_pieces(co *o)
{
    for (int i = 0; i < o->pieces.n_pieces; i++) {
        const co_piece *piece = &o->pieces.pieces[i];
        char feature[CO_NAME_MAX];
        if (!piece->is_needed || strstr(piece->header, "parts/memory.h"))
            continue;
        qat_write_text(&o->c, "\n");
        if (is_feature(piece, feature))
            write_feature(o, piece, feature);
        else if (o->options.strict)
            co_write_strict(&o->c, piece);
        else
            qat_write_text(&o->c, "%.*s", (int)piece->text.n, piece->text.at);
        qat_write_text(&o->c, "\n");
    }
}

static qat_status write_source(co *o)
{
    write_start(o);
    write_pieces(o);
    qat_write_text(&o->c, "\n/* ---- layers */\n\n");
    co_write_layers(o);
    qat_write_text(&o->c, "/* ---- functions */\n\n");
    co_write_functions(o);
    co_write_test(o);
    return co_write_preprocessing(o);
}

/* ------------------------------------------------------------------ all */

static qat_status check_name(co *o)
{
    const char *name = o->options.name ? o->options.name : "network";
    size_t const n = strlen(name);
    bool is_good = n > 0 && n < CO_NAME_MAX - 24 && !isdigit((unsigned char)name[0]);
    for (size_t i = 0; i < n && is_good; i++) {
        is_good = name[i] == '_' || isalnum((unsigned char)name[i]);
        o->upper[i] = (char)toupper((unsigned char)name[i]);
    }
    o->name = name;
    o->file = o->options.file ? o->options.file : name;
    if (!is_good)
        return qat_fail(o->err, QAT_ERR_ARGUMENT,
                        "name %.64s: expected letters, digits and _, at most %d, no digit first",
                        name, CO_NAME_MAX - 25);
    if (!*o->file || strpbrk(o->file, "\"\\\n*/"))
        return qat_fail(o->err, QAT_ERR_ARGUMENT, "file %.64s: not a name for an #include",
                        o->file);
    const char *section = o->options.section;
    if (section && (!*section || strpbrk(section, "\"\\\n")))
        return qat_fail(o->err, QAT_ERR_ARGUMENT, "section %.64s: not the name of a section",
                        section);
    return QAT_OK;
}

static qat_status write_all(co *o, const qi_host *host)
{
    qat_status st = check_name(o);
    if (!st)
        st = co_cut(&o->pieces, &o->arena, o->err);
    if (!st)
        st = open_model(o, host);
    if (!st)
        plan_arena(o);
    if (!st)
        st = co_prepare_layers(o);
    if (!st)
        st = co_compute_digests(o);
    if (st)
        return st;
    co_need_preprocessing(o);
    co_follow(&o->pieces);
    st = write_source(o);
    co_measure(o);
    co_write_header(o);
    if (!st && (o->c.failed || o->h.failed || o->weights.failed))
        st = qat_out_of_memory(o->err, NULL);
    return st;
}

/** Write everything into o. */
static qat_status begin(co *o, const qi_host *model, const qat_c_options *options, qat_error *err)
{
    if (options && options->struct_size > sizeof *options)
        return qat_fail(err, QAT_ERR_UNSUPPORTED,
                        "qat_c_options: of a later version of the library");
    if (options)
        o->options = *options;
    qat_status const st = write_all(o, model);
    co_free_layers(o);
    qat_aligned_free(o->memory);
    qat_arena_free(&o->arena);
    return st ? qat_fail(err, st, "cannot be written as C: %s", o->err->message) : QAT_OK;
}

static qat_c_files files_of(const co *o)
{
    return (qat_c_files){.source = (char *)o->c.bytes,
                         .source_bytes = o->c.count,
                         .header = (char *)o->h.bytes,
                         .header_bytes = o->h.count,
                         .weights = o->weights.bytes,
                         .weights_bytes = o->weights.count};
}

qat_status qat_c_write(const qi_host *model, const qat_c_options *options, qat_c_files *files,
                       qat_error *err)
{
    qat_error inner = {0};
    co o = {.err = &inner};
    qat_status const st = begin(&o, model, options, err);
    *files = files_of(&o);
    if (st)
        qat_c_files_free(files);
    return st;
}

qat_status qat_c_measure(const qi_host *model, const qat_c_options *options, qat_c_sizes *sizes,
                         qat_error *err)
{
    qat_error inner = {0};
    co o = {.only_sizes = true, .err = &inner};
    qat_status const st = begin(&o, model, options, err);
    qat_c_files files = files_of(&o);
    qat_c_files_free(&files);
    *sizes = st ? (qat_c_sizes){0} : o.sizes;
    return st;
}

void qat_c_files_free(qat_c_files *files)
{
    qat_writer writers[] = {{.bytes = (uint8_t *)files->source},
                            {.bytes = (uint8_t *)files->header},
                            {.bytes = files->weights}};
    for (int i = 0; i < 3; i++)
        qat_writer_free(&writers[i]);
    *files = (qat_c_files){0};
}
