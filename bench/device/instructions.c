/**
 * Instructions of each layer of a network on an emulated processor (counter.h). A line for each
 * layer: its number and the instructions.
 */
#include "net.c"

#include "counter.h"
#include "device.h"

int main(void)
{
    start_counting();
    for (int layer = 1; layer <= NET_LAYERS; layer++) {
        uint32_t const before = instructions();
        run_layer(arena.bytes, layer);
        uint32_t const count = instructions() - before;
        device_print("layer ");
        device_print_number((unsigned long)layer);
        device_print(" ");
        device_print_number(count);
        device_print("\n");
    }
    return 0;
}
