/**
 * From what a camera gives to the network's input: functions around the kernels that training and
 * qat-run share, with the settings of the model.
 */
#include "export/c/out.h"

#include "infer/kernels/picture_filter.h"

enum { SMALL_SIDE = 32767 }; /* QK_MOST_SIDE without QK_LARGE */

/* ------------------------------------------------------------------ what there is */

/** Pictures that are resized; those whose centre is then cut out; those that have a central crop.
 */
enum kind { NOTHING, RESIZED, CUT_OUT, CROPPED };

static enum kind kind_of(const qi_preprocessing *p)
{
    if (p->kind != 1 || (p->channels != 1 && p->channels != 3))
        return NOTHING;
    return p->central_crop ? CROPPED : p->resize_short ? CUT_OUT : RESIZED;
}

/** Of the C file. */
static enum kind kind_in(const co *o)
{
    return o->options.no_preprocessing ? NOTHING : kind_of(qi_model_preprocessing(o->model));
}

static const char *row_function(const co *o)
{
    return kind_in(o) == CROPPED ? "qk_picture_filter_row" : "qk_picture_row";
}

/** Sums of squeezed rows. */
static size_t sums_of(const qi_preprocessing *p)
{
    return (size_t)(p->central_crop ? 3 : 2) * (size_t)p->width * (size_t)p->channels;
}

void co_need_preprocessing(co *o)
{
    if (!kind_in(o))
        return;
    (void)co_need(&o->pieces, "qk_picture_start");
    (void)co_need(&o->pieces, "qk_picture_bytes");
    (void)co_need(&o->pieces, row_function(o));
}

qat_c_preprocessing qat_c_preprocessing_of(const qi_preprocessing *p)
{
    /* bytes of code and settings, as tests/c_source/preprocessing.sh measures them */
    static const uint16_t code[][QAT_C_CORES] = {[RESIZED] = {1076, 594, 594, 596, 596, 846},
                                                 [CUT_OUT] = {1186, 670, 666, 672, 670, 960},
                                                 [CROPPED] = {2502, 2160, 2162, 2164, 2216, 3294}};
    enum { STATE_BYTES = 48 }; /* of qk_picture_state, where pointers have 32 bits */
    qat_c_preprocessing sizes = {0};
    enum kind const kind = kind_of(p);
    if (kind)
        sizes.ram = STATE_BYTES + sizeof(uint32_t) * sums_of(p);
    for (int core = 0; core < QAT_C_CORES; core++)
        sizes.code[core] = code[kind][core];
    return sizes;
}

/* ------------------------------------------------------------------ the header */

static void write_memory_parameter(co *o, qat_writer *w)
{
    if (o->options.caller_arena)
        qat_write_text(w, "void *memory, ");
}

static void write_start_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_picture_start(", o->name);
    write_memory_parameter(o, w);
    qat_write_text(w, "int32_t height, int32_t width, int32_t format)");
}

static void write_row_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_picture_row(", o->name);
    write_memory_parameter(o, w);
    qat_write_text(w, "const uint8_t *row, uint8_t *in)");
}

static void write_picture_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_picture(", o->name);
    write_memory_parameter(o, w);
    qat_write_text(w, "const uint8_t *pixels, int32_t height, int32_t width, int32_t format, "
                      "uint8_t *in)");
}

/** What it takes, as a comment. */
static void write_sizes(co *o)
{
    qat_c_preprocessing const sizes = qat_c_preprocessing_of(qi_model_preprocessing(o->model));
    qat_write_text(&o->h,
                   "\n/* ---- preprocessing. Bytes, in a program that calls it: RAM %zu; flash on",
                   sizes.ram);
    for (int i = 0; i < QAT_C_CORES; i++)
        qat_write_text(&o->h,
                       i % 3 ? ", %s %zu"
                       : i   ? ",\n   %s %zu"
                             : "\n   %s %zu",
                       qat_c_core_names[i], sizes.code[i]);
    qat_write_text(&o->h, " */\n");
}

void co_write_preprocessing_header(co *o)
{
    if (!kind_in(o))
        return;
    write_sizes(o);
    qat_write_text(
        &o->h,
        "\n/* Formats of pictures, row by row: %s_GREY and %s_RGB have a byte for each channel; "
        "of\n"
        "   %s_RGB565 a pixel has two bytes, the lower one first, or the upper one (_BIG). */\n",
        o->upper, o->upper, o->upper);
    qat_write_text(&o->h,
                   "#define %s_GREY %d\n#define %s_RGB565 %d\n#define %s_RGB %d\n"
                   "#define %s_RGB565_BIG %d\n",
                   o->upper, QK_GREY, o->upper, QK_RGB565, o->upper, QK_RGB, o->upper,
                   QK_RGB565_BIG);
    if (o->options.caller_arena)
        qat_write_text(&o->h,
                       "/* Memory for these functions, aligned to 8; another one than the arena. "
                       "*/\n#define %s_PICTURE_BYTES %zu\n",
                       o->upper,
                       sizeof(qk_picture_state) + 4 * sums_of(qi_model_preprocessing(o->model)));
    qat_write_text(&o->h,
                   "\n/* Makes the input of a picture of any size: resizes it, and cuts out the "
                   "part, as in training.\n   Returns 0, or -1: a side is not 1 to %d, or the "
                   "format is none of these%s. */\n",
                   co_needs_feature(o, "QK_LARGE") ? QK_MOST_SIDE : SMALL_SIDE,
                   qi_model_preprocessing(o->model)->resize_short
                       ? ", or the part is larger than the resized picture"
                       : "");
    write_picture_head(o, &o->h);
    qat_write_text(&o->h,
                   ";\n\n/* The same row by row, as a camera sends them: start, with the same "
                   "result, then each row from the\n   top on. _row returns 1 as soon as the input "
                   "is there, else 0. */\n");
    write_start_head(o, &o->h);
    qat_write_text(&o->h, ";\n");
    write_row_head(o, &o->h);
    qat_write_text(&o->h, ";\n");
}

/* ------------------------------------------------------------------ the source */

static qat_status write_settings(co *o)
{
    const qi_preprocessing *p = qi_model_preprocessing(o->model);
    qk_picture const settings = {.height = p->height,
                                 .width = p->width,
                                 .channels = p->channels,
                                 .resize_short = p->resize_short,
                                 .central_crop = p->central_crop,
                                 .is_bgr = p->channel_order == 2};
    qat_write_text(&o->c, "static const qk_picture picture_settings = ");
    qat_status const st =
        co_write_struct(&o->c, &o->pieces, "qk_picture", &settings, sizeof settings, NULL, o->err);
    qat_write_text(&o->c, ";\n\n");
    return st;
}

/** The state, and the line that says where it is. */
static const char *write_picture_memory(co *o)
{
    qat_write_text(&o->c,
                   "typedef struct picture_memory {\n    qk_picture_state state;\n"
                   "    uint32_t sums[%zu];\n} picture_memory;\n",
                   sums_of(qi_model_preprocessing(o->model)));
    if (!o->options.caller_arena)
        qat_write_text(&o->c, "static picture_memory picture;\n");
    qat_write_text(&o->c, "\n");
    return o->options.caller_arena ? "    picture_memory *m = (picture_memory *)memory;\n"
                                   : "    picture_memory *m = &picture;\n";
}

qat_status co_write_preprocessing(co *o)
{
    if (!kind_in(o))
        return QAT_OK;
    qat_write_text(&o->c, "\n/* ---- preprocessing: from a picture to the network's input */\n\n");
    qat_status const st = write_settings(o);
    const char *memory = write_picture_memory(o);
    const char *argument = o->options.caller_arena ? "memory, " : "";
    write_start_head(o, &o->c);
    qat_write_text(&o->c,
                   "\n{\n%s    m->state.sums = m->sums;\n"
                   "    return qk_picture_start(&picture_settings, &m->state, height, width, "
                   "format);\n}\n\n",
                   memory);
    write_row_head(o, &o->c);
    qat_write_text(&o->c,
                   "\n{\n%s    return %s(&picture_settings, &m->state, row, in);\n"
                   "}\n\n",
                   memory, row_function(o));
    write_picture_head(o, &o->c);
    qat_write_text(&o->c,
                   "\n{\n    size_t const row = qk_picture_bytes(width, format);\n"
                   "    int32_t y = 0;\n"
                   "    if (%s_picture_start(%sheight, width, format) != 0) {\n"
                   "        return -1;\n    }\n"
                   "    while (y < height && %s_picture_row(%spixels + (size_t)y * row, in) == 0) "
                   "{\n        y++;\n    }\n    return 0;\n}\n",
                   o->name, argument, o->name, argument);
    return st;
}
