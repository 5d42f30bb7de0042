/** From a picture to the network's input: functions around the kernels of infer/kernels/picture.h.
 */
#include "export/c/preprocessing.h"

#include "infer/kernels/picture_filter.h"

enum { SMALL_SIDE = 32767 }; /* QK_MOST_SIDE and QK_MOST_RESIZED without QK_LARGE */

/** Are there settings of a central crop? */
static bool is_cropped(const co *o)
{
    return qi_model_preprocessing(o->model)->central_crop != 0;
}

bool co_has_large_pictures(const co *o)
{
    return is_cropped(o) || qi_model_preprocessing(o->model)->resize_short > SMALL_SIDE;
}

static const char *row_function(const co *o)
{
    return is_cropped(o) ? "qk_picture_filter_row" : "qk_picture_row";
}

size_t co_picture_sums(const qi_preprocessing *p)
{
    return (size_t)(p->central_crop ? 3 : 2) * (size_t)p->width * (size_t)p->channels;
}

void co_need_pictures(co *o)
{
    (void)co_need(&o->pieces, "qk_picture_start");
    (void)co_need(&o->pieces, "qk_picture_bytes");
    (void)co_need(&o->pieces, row_function(o));
}

/* ------------------------------------------------------------------ the header */

static void write_start_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_picture_start(", o->name);
    qat_write_text(w, "%s", co_memory_parameter(o));
    qat_write_text(w, "int32_t height, int32_t width, int32_t format)");
}

static void write_row_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_picture_row(", o->name);
    qat_write_text(w, "%s", co_memory_parameter(o));
    qat_write_text(w, "const uint8_t *row, uint8_t *in)");
}

static void write_picture_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_picture(", o->name);
    qat_write_text(w, "%s", co_memory_parameter(o));
    qat_write_text(w, "const uint8_t *pixels, int32_t height, int32_t width, int32_t format, "
                      "uint8_t *in)");
}

void co_write_pictures_header(co *o)
{
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
    co_write_memory_bytes(o, sizeof(qk_picture_state) +
                                 4 * co_picture_sums(qi_model_preprocessing(o->model)));
    bool const is_large = co_has_large_pictures(o);
    qat_write_text(&o->h,
                   "\n/* Makes the input of a picture of any size: resizes it, and cuts out the "
                   "part, as in training.\n   Returns 0, or -1: a side is not 1 to %d, or the "
                   "format is none of these",
                   is_large ? QK_MOST_SIDE : SMALL_SIDE);
    if (qi_model_preprocessing(o->model)->resize_short)
        qat_write_text(&o->h,
                       ", or the\n   part is larger than the resized picture, or a side of the "
                       "resized picture is above %d",
                       is_large ? QK_MOST_RESIZED : SMALL_SIDE);
    qat_write_text(&o->h, ". */\n");
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

qat_status co_write_pictures(co *o)
{
    qat_write_text(&o->c, "\n/* ---- preprocessing: from a picture to the network's input */\n\n");
    qat_status const st = write_settings(o);
    qat_write_text(&o->c,
                   "typedef struct preprocessing_memory {\n    qk_picture_state state;\n"
                   "    uint32_t sums[%zu];\n} preprocessing_memory;\n",
                   co_picture_sums(qi_model_preprocessing(o->model)));
    const char *memory = co_place_memory(o);
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
