/** Instructions of a network's preprocessing on an emulated processor (counter.h). */
#include "net.c"

#include "counter.h"
#include "device.h"

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

int main(void)
{
    for (uint32_t i = 0; i < sizeof row; i++)
        row[i] = (uint8_t)(i * i);
    start_counting();
    device_print("instructions");
    print_picture(NET_RGB);
    print_picture(NET_RGB565);
    device_print("\n");
    return 0;
}
