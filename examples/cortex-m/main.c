/**
 * Tests a network on a device: net_self_test runs its known answer, and compares the constants and
 * the outputs of each layer. The program prints what came of it, and ends with 0 or 1.
 */
#include "device.h"
#include "net.h"

static void print_number(int n)
{
    char digits[12];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    device_print(at);
}

int main(void)
{
    int const wrong = net_self_test();
    if (wrong) {
        device_print("self-test: wrong from layer ");
        print_number(wrong);
        device_print(" on, of ");
    } else {
        device_print("self-test passed: layers ");
    }
    print_number(NET_LAYERS);
    device_print("\n");
    return wrong != 0;
}
