/** What the programs of this folder ask of a device. */
#ifndef DEVICE_H
#define DEVICE_H

int main(void);
void device_print(const char *text);
void device_exit(int status);

#endif
