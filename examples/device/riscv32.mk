# A network on a RISC-V processor of 32 bits (RV32IMC), and its self-test in QEMU. Debian has what it needs:
# gcc-riscv64-unknown-elf, qemu-system-misc.
DEVICE := $(dir $(lastword $(MAKEFILE_LIST)))
NET ?= net.c
MAIN ?= $(DEVICE)main.c
OUT ?= riscv32.elf
CROSS ?= riscv64-unknown-elf-
CFLAGS ?= -Os -Wall -Wextra
FLAGS = -march=rv32imc -mabi=ilp32 -std=c99 -ffreestanding -ffunction-sections -fdata-sections
LINK = -nostdlib -T $(DEVICE)riscv32.ld -Wl,--gc-sections,-Map=$(OUT:.elf=.map) -lgcc
SETTINGS = $(OUT).settings
MADE_WITH = $(CROSS)gcc $(FLAGS) $(CFLAGS) $(MAIN) $(NET) $(LINK)

$(OUT): $(SETTINGS) $(DEVICE)riscv32.c $(DEVICE)common.c $(MAIN) $(NET) $(DEVICE)riscv32.ld $(DEVICE)device.h $(wildcard $(dir $(NET))*.h)
	$(CROSS)gcc $(FLAGS) $(CFLAGS) -c $(NET) -o $(OUT:.elf=.net.o)
	$(CROSS)gcc $(FLAGS) $(CFLAGS) -I$(DEVICE) -I$(dir $(NET)) $(DEVICE)riscv32.c $(DEVICE)common.c $(MAIN) $(OUT:.elf=.net.o) $(LINK) -o $@
	$(CROSS)size $@

# What the program is made with: it is made again if that changes.
$(SETTINGS): FORCE
	@echo '$(subst ','\'',$(MADE_WITH))' | cmp -s - $@ || echo '$(subst ','\'',$(MADE_WITH))' >$@

$(NET):
	$(error there is no $(NET); write it with: qat-export model.qm $(NET))

.PHONY: run clean FORCE
run: $(OUT)
	qemu-system-riscv32 -M virt -bios none -nographic -monitor none -kernel $(OUT) $(QEMU_FLAGS)
clean:
	rm -f $(OUT) $(OUT:.elf=.map) $(OUT:.elf=.net.o) $(SETTINGS)
