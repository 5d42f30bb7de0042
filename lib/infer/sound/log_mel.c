/** Log-mel spectrograms in integers. infer/kernels/sound.h computes them. */
#include "qat/sound.h"

#include "infer/kernels/sound.h"

void qi_sound_init(qi_sound *s)
{
    for (int i = 0; i < QI_SOUND_FRAME; i++)
        s->work[0][i] = s->work[1][i] = 0;
}

void qi_sound_frame(qi_sound *s, const int16_t *samples, uint8_t *codes)
{
    qk_sound_frame(s->work[0], samples, samples + QK_SOUND_HOP, codes);
}

size_t qi_sound_frames(size_t n)
{
    return n < QI_SOUND_FRAME ? 0 : (n - QI_SOUND_FRAME) / QI_SOUND_HOP + 1;
}
