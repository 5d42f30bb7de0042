/**
 * Start-up code for a Cortex-M without a library: the vector table, the memory, and semihosting,
 * with which a program under a debugger or in QEMU prints text and ends. It is for any Cortex-M;
 * cortex_m.ld says where flash and RAM are.
 */
#include "device.h"

#include <stdint.h>

extern uint32_t stack_end[], data_start[], data_end[], data_in_flash[];
void reset(void);
static void fault(void);

/** The first words of flash: the stack, the reset, and the faults. */
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_end, reset, fault, fault, fault, fault, fault};

/* ------------------------------------------------------------------ semihosting */

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void ask_host(uint32_t what, const void *with)
{
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void device_print(const char *text)
{
    ask_host(SYS_WRITE0, text);
}

void device_exit(int status)
{
    const uint32_t block[2] = {APPLICATION_EXIT, (uint32_t)status};
    ask_host(SYS_EXIT_EXTENDED, block);
    for (;;) {
    }
}

void device_light(int is_on)
{
#ifdef LIGHT
    *(volatile uint32_t *)LIGHT = is_on != 0;
#else
    (void)is_on;
#endif
}

/* ------------------------------------------------------------------ start */

static void fault(void)
{
    device_print("fault\n");
    device_exit(3);
}

void reset(void)
{
#ifndef __ARM_FEATURE_UNALIGNED
    *(volatile uint32_t *)0xe000ed14u |= 1u << 3; /* CCR: no unaligned words, as on a Cortex-M0+ */
#endif
#if defined __ARM_FP || defined __ARM_FEATURE_MVE
    *(volatile uint32_t *)0xe000ed88u |= 0xfu << 20; /* CPACR: floating point and Helium */
    __asm__ volatile("dsb\n isb");
#endif
    for (uint32_t *to = data_start, *from = data_in_flash; to < data_end;)
        *to++ = *from++;
    device_clear();
    device_exit(main());
}
