/** Instructions of a network's preprocessing on an emulated processor (counter.h). */
#include "net.c"

#include "counter.h"
#include "device.h"

#ifdef NET_RGB
enum { HEIGHT = 240, WIDTH = 320 };
static uint8_t row[3 * WIDTH], in[NET_IN_COUNT];

static void print_picture(int32_t format)
{
    uint32_t const before = instructions();
    (void)net_picture_start(HEIGHT, WIDTH, format);
    for (int y = 0; y < HEIGHT; y++)
        if (net_picture_row(row, in))
            break;
    device_print(" ");
    device_print_number(instructions() - before);
}

static void print_counts(void)
{
    for (uint32_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * i);
    print_picture(NET_RGB);
    print_picture(NET_RGB565);
}
#else
static int16_t samples[NET_SOUND_HOP];
static uint8_t in[NET_IN_COUNT];

/** Of a frame in the middle of a sound. */
static void print_counts(void)
{
    for (uint32_t i = 0; i < NET_SOUND_HOP; i++)
        samples[i] = (int16_t)(i * i);
    (void)net_sound(samples, in);
    uint32_t const before = instructions();
    (void)net_sound(samples, in);
    device_print(" ");
    device_print_number(instructions() - before);
}
#endif

int main(void)
{
    start_counting();
    device_print("instructions");
    print_counts();
    device_print("\n");
    return 0;
}
