/**
 * Counts instructions on an emulated processor, whose virtual time advances by a nanosecond for
 * each instruction (qemu -icount shift=0); a timer's tick is 40 or less.
 */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdint.h>

#ifdef __riscv
static uint32_t instructions(void)
{
    uint32_t n;
    __asm__ volatile("csrr %0, minstret" : "=r"(n));
    return n;
}
static void start_counting(void)
{
}
#else
/* SysTick counts down from 2^24, at the board's clock */
enum { MOST = 0xffffff };
#define SYSTICK ((volatile uint32_t *)0xe000e010)
static uint32_t instructions(void)
{
    static uint32_t rounds;
    rounds += SYSTICK[0] >> 16 & 1;
    uint32_t const ticks = rounds * (MOST + 1u) + (MOST - SYSTICK[2]);
    return (uint32_t)((uint64_t)ticks * QUARTERS_PER_TICK / 4);
}
static void start_counting(void)
{
    SYSTICK[1] = MOST;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5;
    while (!SYSTICK[2]) {
    }
    (void)SYSTICK[0]; /* forget that it began with 0 */
}
#endif

#endif
