/** qat-run of sounds. */
#ifndef QAT_TOOLS_RUN_SOUND_H
#define QAT_TOOLS_RUN_SOUND_H

#include "tools/common/tool.h"

/** The inputs of a model's runs over a sound. */
typedef struct run_sound {
    uint8_t *codes;  /* [runs, bytes of input 0]; free() */
    int64_t runs;    /* 1; of a model with states: as many as the sound has frames for */
    int run_samples; /* between the beginnings of two runs */
} run_sound;

/**
 * Read a WAV file for a model of preprocessing kind 3. Without states its frames come from the
 * sound's beginning, and silence after its end. With states all of the sound is taken, a run's
 * frames at a time; a sound shorter than that ends with silence. free(codes) after an error, too.
 */
qat_status run_sound_read(run_sound *sound, const qi_model *model, const char *path,
                          qat_error *err);

#endif
