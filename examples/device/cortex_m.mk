# A network on a Cortex-M, and its self-test in QEMU. A Makefile that includes this file names a CPU and a BOARD. Debian
# has what it needs: gcc-arm-none-eabi, qemu-system-arm. For a chip of your own change the sizes, and the origins in
# cortex_m.ld.
DEVICE := $(dir $(lastword $(MAKEFILE_LIST)))
NET ?= net.c
MAIN ?= $(DEVICE)main.c
OUT ?= $(CPU).elf
CROSS ?= arm-none-eabi-
CFLAGS ?= -Os -Wall -Wextra

# memory of the boards that QEMU has
FLASH_microbit = 256K
RAM_microbit = 16K
FLASH_mps3-an547 = 512K
RAM_mps3-an547 = 512K
FLASH_BYTES ?= $(or $(FLASH_$(BOARD)),4M)
RAM_BYTES ?= $(or $(RAM_$(BOARD)),4M)
# a second flash, for what is in the section .more
MORE_AT ?= 0x11000000
MORE_BYTES ?= $(if $(filter mps3-an547,$(BOARD)),2M,0)

# the register of the first light
LIGHT_mps3-an547 = 0x49302000
LIGHT = $(if $(filter mps%,$(BOARD)),-DLIGHT=$(or $(LIGHT_$(BOARD)),0x40028000))

FLOAT_cortex-m55 = hard
FLAGS = -mcpu=$(CPU) -mthumb -mfloat-abi=$(or $(FLOAT_$(CPU)),soft) -std=c99 -ffreestanding -ffunction-sections -fdata-sections $(LIGHT)
SIZES = $(foreach size,FLASH_BYTES RAM_BYTES MORE_AT MORE_BYTES,,--defsym=$(size)=$($(size)))
EMPTY :=
LINK = -nostdlib -T $(DEVICE)cortex_m.ld -Wl,--gc-sections,-Map=$(OUT:.elf=.map)$(subst $(EMPTY) ,,$(SIZES)) -lgcc
SETTINGS = $(OUT).settings
MADE_WITH = $(CROSS)gcc $(FLAGS) $(CFLAGS) $(MAIN) $(NET) $(LINK)

$(OUT): $(SETTINGS) $(DEVICE)cortex_m.c $(DEVICE)common.c $(MAIN) $(NET) $(DEVICE)cortex_m.ld $(DEVICE)device.h $(wildcard $(dir $(NET))*.h)
	$(CROSS)gcc $(FLAGS) $(CFLAGS) -c $(NET) -o $(OUT:.elf=.net.o)
	$(CROSS)gcc $(FLAGS) $(CFLAGS) -I$(DEVICE) -I$(dir $(NET)) $(DEVICE)cortex_m.c $(DEVICE)common.c $(MAIN) $(OUT:.elf=.net.o) $(LINK) -o $@
	$(CROSS)size $@

# What the program is made with: it is made again if that changes.
$(SETTINGS): FORCE
	@echo '$(subst ','\'',$(MADE_WITH))' | cmp -s - $@ || echo '$(subst ','\'',$(MADE_WITH))' >$@

$(NET):
	$(error there is no $(NET); write it with: qat-export model.qm $(NET))

.PHONY: run clean FORCE
run: $(OUT)
	qemu-system-arm -M $(BOARD) -nographic -monitor none -serial none -semihosting-config enable=on,target=native -kernel $(OUT) $(QEMU_FLAGS)
clean:
	rm -f $(OUT) $(OUT:.elf=.map) $(OUT:.elf=.net.o) $(SETTINGS)
