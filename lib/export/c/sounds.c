/** From sound to the network's input: functions around the kernels of infer/kernels/sound.h. */
#include "export/c/preprocessing.h"

#include "infer/kernels/sound.h"

void co_need_sounds(co *o)
{
    (void)co_need(&o->pieces, "qk_sound_take");
}

static bool has_states(const co *o)
{
    return qi_state_count(o->model) > 0;
}

bool co_sounds_use_arena(const co *o)
{
    return !o->options.caller_arena && !has_states(o) && co_has_places(o) &&
           o->arena_bytes >= CO_SOUND_WORK_BYTES;
}

/* ------------------------------------------------------------------ the header */

static void write_start_head(co *o, qat_writer *w)
{
    qat_write_text(w, "void %s_sound_start(%s)", o->name,
                   o->options.caller_arena ? "void *memory" : "void");
}

static void write_sound_head(co *o, qat_writer *w)
{
    qat_write_text(w, "int %s_sound(%sconst int16_t *samples, uint8_t *in)", o->name,
                   co_memory_parameter(o));
}

void co_write_sounds_header(co *o)
{
    qat_write_text(
        &o->h,
        "\n/* Sounds have one channel of 16 bits, SOUND_RATE samples a second. They come "
        "SOUND_HOP samples at a\n   time, each of which makes a frame. */\n"
        "#define %s_SOUND_RATE 16000\n#define %s_SOUND_HOP %d\n",
        o->upper, o->upper, QK_SOUND_HOP);
    co_write_memory_bytes(o, CO_SOUND_WORK_BYTES + CO_SOUND_BYTES);
    qat_write_text(&o->h, "\n/* Before a new sound. */\n");
    write_start_head(o, &o->h);
    qat_write_text(
        &o->h,
        ";\n\n/* Takes the next SOUND_HOP samples. Returns 1 if the input is complete, else "
        "0. The next input then\n   begins with %s; between two calls "
        "`in` must stay as it is.%s */\n",
        has_states(o) ? "no frame" : "the frames of this one but the first",
        co_sounds_use_arena(o)
            ? "\n   It works in the arena: do not call it while the network runs."
            : "");
    write_sound_head(o, &o->h);
    qat_write_text(&o->h, ";\n");
}

/* ------------------------------------------------------------------ the source */

void co_write_sounds(co *o)
{
    qat_write_text(&o->c, "\n/* ---- preprocessing: from sound to the network's input */\n\n");
    qat_write_text(&o->c,
                   "typedef struct preprocessing_memory {\n%s    qk_sound state;\n} "
                   "preprocessing_memory;\n",
                   co_sounds_use_arena(o) ? "" : "    int32_t work[2 * QK_SOUND_FRAME];\n");
    const char *memory = co_place_memory(o);
    write_start_head(o, &o->c);
    qat_write_text(&o->c, "\n{\n%s    m->state.heard = 0;\n}\n\n", memory);
    write_sound_head(o, &o->c);
    qat_write_text(
        &o->c, "\n{\n%s    return qk_sound_take(&m->state, %s, samples, %d, %d, in);\n}\n", memory,
        co_sounds_use_arena(o) ? "(int32_t *)(void *)place(arena.bytes, 0)" : "m->work",
        (int)qi_model_preprocessing(o->model)->height, !has_states(o));
}
