/**
 * A Cortex-M that qemu-system-arm emulates: its vectors, its memcpy and memset, and text by
 * semihosting. No variable is initialized, so there is nothing to copy into memory at the start.
 */
#include "kernels/small_cores/say.h"

#include <stddef.h>

int main(void);
void start(void);
void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memset(void *to, int byte, size_t count);

extern uint32_t stack_end[]; /* of layers.ld */

static void semihost(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void leave(uint32_t status)
{
    uint32_t const block[2] = {0x20026 /* ADP_Stopped_ApplicationExit */, status};
    for (;;)
        semihost(0x20 /* SYS_EXIT_EXTENDED */, block);
}

static void fault(void)
{
    semihost(0x04 /* SYS_WRITE0 */, "fault\n");
    leave(1);
}

void start(void)
{
#if defined __ARM_FEATURE_MVE
    *(volatile uint32_t *)0xE000ED88 |= 0xfu << 20; /* CPACR: vectors are allowed */
    __asm__ volatile("dsb\nisb");
#endif
    leave((uint32_t)main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {
    stack_end,           (const void *)start, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault};

static char *put(char *to, uint32_t value, uint32_t base, int digits)
{
    for (int i = digits - 1; i >= 0; i--, value /= base)
        to[i] = "0123456789abcdef"[value % base];
    return to + digits;
}

void say(const char *what, uint32_t index, uint32_t digest)
{
    char line[64];
    char *to = line;
    int digits = 1;
    while (*what)
        *to++ = *what++;
    *to++ = ' ';
    for (uint32_t rest = index; rest >= 10; rest /= 10)
        digits++;
    to = put(to, index, 10, digits);
    *to++ = ' ';
    to = put(to, digest, 16, 8);
    *to++ = '\n';
    *to = 0;
    semihost(0x04 /* SYS_WRITE0 */, line);
}

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    volatile char *t = to;
    const char *f = from;
    while (count--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int byte, size_t count)
{
    volatile char *t = to;
    while (count--)
        *t++ = (char)byte;
    return to;
}
