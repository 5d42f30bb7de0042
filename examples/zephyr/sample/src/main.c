/** Runs the self-test of a network under Zephyr, then the network, and prints how long that takes.
 */
#include "net.h"

#include <zephyr/kernel.h>

int main(void)
{
    static NET_IN_TYPE input[NET_IN_COUNT];
    static NET_OUT_TYPE scores[NET_OUT_COUNT];
    int const wrong = net_self_test();
    if (wrong) {
        printk("self-test: wrong from layer %d on, of %d\n", wrong, NET_LAYERS);
        return 0;
    }
    printk("self-test passed: layers %d\n", NET_LAYERS);
    uint32_t const begin = k_cycle_get_32();
    (void)net_run(input, scores);
    printk("cycles of a run: %u\n", (unsigned)(k_cycle_get_32() - begin));
    return 0;
}
