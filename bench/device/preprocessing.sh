#!/usr/bin/env bash
# What preprocessing costs on microcontrollers: instructions for a picture of 320 x 240 pixels, RGB and RGB565, that becomes
# the input of a network for 96 x 96 pixels, and for a frame of sound (20 ms); counted by QEMU, compiled with -O2.
# Instructions are not cycles.
#
#     QAT_BUILD_ROOT=build QAT_SOURCE_ROOT=. bench/device/preprocessing.sh
set -eu
QAT_BUILD_ROOT=$(realpath "${QAT_BUILD_ROOT:?}") QAT_SOURCE_ROOT=$(realpath "${QAT_SOURCE_ROOT:?}")
tools=$QAT_BUILD_ROOT/tools here=$QAT_SOURCE_ROOT/bench/device
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo 'typedef int nothing;' >none.c
for class in day night; do
    for part in train val; do
        mkdir -p "set/$part/$class"
        for i in 1 2; do { printf 'P6\n40 30\n255\n'; head -c 3600 "$tools/qat-run"; } >"set/$part/$class/$i.ppm"; done
    done
done
finish() { # finish <arguments of qat-train>: net.c
    { "$tools/qat-train" "$@" --overwrite --out run && "$tools/qat-export" run/last.ckpt net.qm --samples 2; } >made.txt 2>&1 || { tail -n 3 made.txt; exit 1; }
    "$tools/qat-export" net.qm net.c >/dev/null
}
make_network() { # make_network <settings of data>
    printf '%s\n' '[data]' 'kind = folder' 'path = set' 'height = 96' 'width = 96' "$@" '[model]' 'arch = convnet' 'filters = 4, 4' \
        'strides = 2, 2' '[train]' 'epochs = 1' 'batch = 2' '[quant]' 'enabled = yes' 'quant_delay = 0' 'bn_freeze_delay = never' >net.ini
    finish net.ini
}
count() { # count <what>: a line for each core
    for core in cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m55; do
        # a tick of SysTick is 40 instructions at 25 MHz, 31.25 at 32 MHz
        quarters=$([ $core = cortex-m55 ] && echo 125 || echo 160)
        rm -f run.elf
        make -s -f "$QAT_SOURCE_ROOT/examples/$core/Makefile" run NET=none.c MAIN="$here/preprocessing.c" OUT=run.elf \
            CFLAGS="-O2 -I. -I$here -DQUARTERS_PER_TICK=$quarters" QEMU_FLAGS="-icount shift=0" </dev/null >said.txt 2>&1 || { tail -n 5 said.txt; exit 1; }
        printf '%-14s %-14s %10d %10s\n' "$1" $core $(sed -n 's/^instructions //p' said.txt)
    done
}
printf '%-14s %-14s %10s %10s\n' network core RGB RGB565
make_network
count colour
make_network 'channels = 1'
count grey
make_network 'central_crop = 0.875'
count central_crop
printf '%-14s %-14s %10s\n' network core frame
finish "$QAT_SOURCE_ROOT/recipes/keywords.ini" $(printf ' --set %s' train.steps=2 train.batch=4 data.train_count=16 data.test_count=8 quant.quant_delay=0)
count sound
