/**
 * A network that sees: picture.h has the pixels of a picture, HEIGHT rows of WIDTH of them, in the
 * format FORMAT. They come row by row, as from a camera, and become the network's input as in
 * training. In a program of your own the rows come from a driver, and only one is in memory.
 */
#include "device.h"
#include "net.h"

static const uint8_t pixels[] = {
#include "picture.h"
};
static uint8_t input[NET_IN_COUNT];
static NET_OUT_TYPE scores[NET_OUT_COUNT];

int main(void)
{
    unsigned long const row = sizeof pixels / HEIGHT;
    unsigned long best = 0;
    if (net_picture_start(HEIGHT, WIDTH, FORMAT)) {
        device_print("the network does not take such a picture\n");
        return 1;
    }
    for (unsigned long y = 0; y < HEIGHT; y++)
        if (net_picture_row(pixels + y * row, input))
            break;
    net_run(input, scores);
    for (unsigned long i = 1; i < NET_OUT_COUNT; i++)
        if (scores[i] > scores[best])
            best = i;
    int const score = scores[best];
    device_print("class ");
    device_print_number(best);
    device_print(", score ");
    if (score < 0)
        device_print("-");
    device_print_number((unsigned long)(score < 0 ? -score : score));
    device_print("\n");
    return 0;
}
