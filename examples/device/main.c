/**
 * Tests a network on a device: net_self_test runs its known answer, and compares the constants and
 * the outputs of each layer. The program prints what came of it, and ends with 0 or 1.
 */
#include "device.h"
#include "net.h"

int main(void)
{
    int const wrong = net_self_test();
    if (wrong) {
        device_print("self-test: wrong from layer ");
        device_print_number((unsigned long)wrong);
        device_print(" on, of ");
    } else {
        device_print("self-test passed: layers ");
    }
    device_print_number(NET_LAYERS);
    device_print(", bytes of stack ");
    device_print_number(device_stack_bytes());
    device_print("\n");
    return wrong != 0;
}
