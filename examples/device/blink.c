/**
 * A network that answers: it runs on the input in input.h, and the board's light blinks the number
 * of the largest output. (python3, xxd -i or your camera make input.h: a list of the codes.)
 */
#include "device.h"
#include "net.h"

static const NET_IN_TYPE input[NET_IN_COUNT] = {
#include "input.h"
};
static NET_OUT_TYPE scores[NET_OUT_COUNT];

#ifdef NET_LABELS
static const char *const names[] = NET_LABELS;
#endif

int main(void)
{
    unsigned long best = 0;
    int const wrong = net_self_test();
    if (wrong) {
        device_print("the self-test fails\n");
        return 1;
    }
    net_run(input, scores);
    for (unsigned long i = 1; i < NET_OUT_COUNT; i++)
        if (scores[i] > scores[best])
            best = i;
    device_print("answer ");
    device_print_number(best);
#ifdef NET_LABELS
    device_print(": ");
    device_print(names[best]);
#endif
    device_print("\n");
    for (unsigned long i = 0; i < best; i++) {
        device_light(1);
        device_wait();
        device_light(0);
        device_wait();
    }
    return 0;
}
