/** Runs the self-test of a network on an ESP32, then the network, and prints how long that takes.
 */
#include "net.h"

#include "esp_timer.h"

#include <stdio.h>

void app_main(void)
{
    static NET_IN_TYPE input[NET_IN_COUNT];
    static NET_OUT_TYPE scores[NET_OUT_COUNT];
    int const wrong = net_self_test();
    if (wrong) {
        printf("self-test: wrong from layer %d on, of %d\n", wrong, NET_LAYERS);
        return;
    }
    printf("self-test passed: layers %d\n", NET_LAYERS);
    int64_t const begin = esp_timer_get_time();
    (void)net_run(input, scores);
    printf("microseconds of a run: %ld\n", (long)(esp_timer_get_time() - begin));
}
