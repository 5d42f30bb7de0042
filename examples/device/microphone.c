/**
 * A network that hears: sound.h has the samples of a sound, 16 bits each, 16,000 a second. They
 * come NET_SOUND_HOP at a time, 20 ms, as from a microphone, and become frames of the network's
 * input as in training. The program prints the answer when the input is complete for the first
 * time; a program of your own goes on.
 */
#include "device.h"
#include "net.h"

static const int16_t samples[] = {
#include "sound.h"
};
static int16_t block[NET_SOUND_HOP];
static uint8_t input[NET_IN_COUNT];
static NET_OUT_TYPE scores[NET_OUT_COUNT];

#ifdef NET_LABELS
static const char *const names[] = NET_LABELS;
#endif

/** The next samples; silence after the end. */
static void listen(unsigned long at)
{
    for (unsigned long i = 0; i < NET_SOUND_HOP; i++, at++)
        block[i] = at < sizeof samples / sizeof *samples ? samples[at] : 0;
}

int main(void)
{
    unsigned long best = 0, at = 0;
    do {
        listen(at);
        at += NET_SOUND_HOP;
    } while (!net_sound(block, input));
    net_run(input, scores);
    for (unsigned long i = 1; i < NET_OUT_COUNT; i++)
        if (scores[i] > scores[best])
            best = i;
    device_print("class ");
    device_print_number(best);
#ifdef NET_LABELS
    device_print(": ");
    device_print(names[best]);
#endif
    device_print("\n");
    return 0;
}
