/**
 * From what a camera or a microphone gives to the network's input: which kind of preprocessing
 * there is, and what it takes.
 */
#include "export/c/preprocessing.h"

/** Pictures that are resized; those whose centre is then cut out; those that have a central crop;
 * sounds. */
enum kind { NOTHING, RESIZED, CUT_OUT, CROPPED, SOUND };

static enum kind kind_of(const qi_preprocessing *p)
{
    if (p->kind == 3)
        return SOUND;
    if (p->kind != 1 || (p->channels != 1 && p->channels != 3))
        return NOTHING;
    return p->central_crop ? CROPPED : p->resize_short ? CUT_OUT : RESIZED;
}

/** Of the C file. */
static enum kind kind_in(const co *o)
{
    return o->options.no_preprocessing ? NOTHING : kind_of(qi_model_preprocessing(o->model));
}

/* ------------------------------------------------------------------ sizes */

qat_c_preprocessing qat_c_preprocessing_of(const qi_preprocessing *p)
{
    /* bytes of code, settings and tables, as tests/c_source/preprocessing.sh measures them */
    static const uint16_t code[][QAT_C_CORES] = {[RESIZED] = {1076, 594, 594, 596, 596, 846},
                                                 [CUT_OUT] = {1186, 670, 666, 672, 670, 960},
                                                 [CROPPED] = {2502, 2160, 2162, 2164, 2216, 3294},
                                                 [SOUND] = {2130, 1160, 1162, 1166, 1188, 1338}};
    enum { STATE_BYTES = 48 }; /* of qk_picture_state, where pointers have 32 bits */
    qat_c_preprocessing sizes = {0};
    enum kind const kind = kind_of(p);
    if (kind)
        sizes.ram = kind == SOUND ? CO_SOUND_BYTES + CO_SOUND_WORK_BYTES
                                  : STATE_BYTES + sizeof(uint32_t) * co_picture_sums(p);
    for (int core = 0; core < QAT_C_CORES; core++)
        sizes.code[core] = code[kind][core];
    return sizes;
}

/** What it takes, as a comment. */
static void write_sizes(co *o)
{
    qat_c_preprocessing const sizes = qat_c_preprocessing_of(qi_model_preprocessing(o->model));
    bool const is_shared = kind_in(o) == SOUND && co_sounds_use_arena(o);
    qat_write_text(&o->h,
                   "\n/* ---- preprocessing. Bytes, in a program that calls it: RAM %zu; flash on",
                   sizes.ram - (is_shared ? CO_SOUND_WORK_BYTES : 0));
    for (int i = 0; i < QAT_C_CORES; i++)
        qat_write_text(&o->h,
                       i % 3 ? ", %s %zu"
                       : i   ? ",\n   %s %zu"
                             : "\n   %s %zu",
                       qat_c_core_names[i], sizes.code[i]);
    qat_write_text(&o->h, " */\n");
}

/* ------------------------------------------------------------------ of each kind */

const char *co_memory_parameter(const co *o)
{
    return o->options.caller_arena ? "void *memory, " : "";
}

void co_write_memory_bytes(co *o, size_t bytes)
{
    if (o->options.caller_arena)
        qat_write_text(&o->h,
                       "/* Memory for these functions, aligned to 8; another one than the arena. "
                       "*/\n#define %s_PREPROCESSING_BYTES %zu\n",
                       o->upper, bytes);
}

const char *co_place_memory(co *o)
{
    if (o->options.caller_arena) {
        qat_write_text(&o->c, "\n");
        return "    preprocessing_memory *m = (preprocessing_memory *)memory;\n";
    }
    qat_write_text(&o->c, "static preprocessing_memory preprocessing;\n\n");
    return "    preprocessing_memory *m = &preprocessing;\n";
}

void co_need_preprocessing(co *o)
{
    if (kind_in(o) == SOUND)
        co_need_sounds(o);
    else if (kind_in(o))
        co_need_pictures(o);
}

void co_write_preprocessing_header(co *o)
{
    if (!kind_in(o))
        return;
    write_sizes(o);
    if (kind_in(o) == SOUND)
        co_write_sounds_header(o);
    else
        co_write_pictures_header(o);
}

qat_status co_write_preprocessing(co *o)
{
    if (kind_in(o) == SOUND)
        co_write_sounds(o);
    return kind_in(o) && kind_in(o) != SOUND ? co_write_pictures(o) : QAT_OK;
}
