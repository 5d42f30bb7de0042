/**
 * What start-up code has in common: cleared memory, a measure of the stack, and the two functions
 * that a network needs, memcpy and memset.
 */
#include "device.h"

#include <stddef.h>
#include <stdint.h>

/* of the linker script; the stack grows from stack_end down, at most to bss_end */
extern uint32_t bss_start[], bss_end[], stack_end[];

/** Keeps a compiler from making a call of memcpy or memset of the loop that it is in. */
#define KEEP_LOOP() __asm__ volatile("" ::: "memory")

/* ------------------------------------------------------------------ memory */

enum { UNUSED = 0x5a5aa5a5 };

void device_clear(void)
{
    const uint32_t *const here = __builtin_frame_address(0);
    uint32_t *to = bss_start;
    for (; to < bss_end; to++) {
        *to = 0;
        KEEP_LOOP();
    }
    for (; to + 16 < here; to++) /* 16: this function's own */
        *to = UNUSED;
}

unsigned long device_stack_bytes(void)
{
    const uint32_t *at = bss_end;
    while (at < stack_end && *at == UNUSED)
        at++;
    return (unsigned long)((const char *)stack_end - (const char *)at);
}

/* ------------------------------------------------------------------ text, time */

/** Up to 4,294,967,295; without a division, for which some processors have no instruction. */
void device_print_number(unsigned long n)
{
    static const uint32_t powers[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                      10000,      1000,      100,      10,      1};
    char digits[12];
    char *at = digits;
    for (int i = 0; i < 10; i++) {
        char digit = '0';
        for (; n >= powers[i]; n -= powers[i])
            digit++;
        if (digit > '0' || at > digits || i == 9)
            *at++ = digit;
    }
    *at = 0;
    device_print(digits);
}

/** Some tenths of a second on a processor of 100 MHz. */
void device_wait(void)
{
    for (uint32_t i = 0; i < 10000000; i++)
        KEEP_LOOP();
}

/* ------------------------------------------------------------------ what a network needs */

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    while (count--) {
        *t++ = *f++;
        KEEP_LOOP();
    }
    return to;
}

void *memset(void *to, int byte, size_t count)
{
    uint8_t *t = to;
    while (count--) {
        *t++ = (uint8_t)byte;
        KEEP_LOOP();
    }
    return to;
}
