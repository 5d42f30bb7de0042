/** What the programs of this folder ask of a device, and what its start-up code has in common. */
#ifndef DEVICE_H
#define DEVICE_H

/** The program. What it returns is its exit status, where a device has such a thing. */
int main(void);

/* ------------------------------------------------------------------ of each processor */

void device_print(const char *text);
void device_exit(int status);
/** Switch the board's light on or off; nothing where it has none. */
void device_light(int is_on);

/* ------------------------------------------------------------------ of all: common.c */

void device_print_number(unsigned long n);
void device_wait(void);

/** Before main: clear .bss, and fill the memory that the stack may use. */
void device_clear(void);

/** The most bytes of stack that were in use since device_clear. */
unsigned long device_stack_bytes(void);

#endif
