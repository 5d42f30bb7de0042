/** In the place of wave_read.c in a build without libsndfile: WAV files are refused. */
#include "datasets/sounds/wave.h"

bool qat_wave_can_read(void)
{
    return false;
}

qat_status qat_wave_read(qat_wave *wave, const char *path, size_t most, qat_error *err)
{
    (void)most;
    *wave = (qat_wave){0};
    return qat_fail(err, QAT_ERR_UNSUPPORTED,
                    "%s: a sound, and this build of qat cannot read WAV files: there was no "
                    "libsndfile when it was made",
                    path);
}
