#!/usr/bin/env bash
# Preprocessing as C source: of pictures of many sizes and formats, NAME_picture and NAME_picture_row make the bytes that
# qat-run makes of the same pictures in files, and NAME_sound those of sounds, on this computer and on emulated devices.
# The network then gives the same answer. Compilers, floating point and undefined symbols as in c_source.sh. What net.h says
# of its flash and RAM is what the linker's map has.
#
#     preprocessing.sh PICTURES SOUNDS [bytes]      PICTURES: tests/c_source/pictures.c, built; SOUNDS: sounds.c; bytes: print
#                                                   what lib/export/c/preprocessing.c has
set -u
pictures=$(realpath "${1:?}") sounds=$(realpath "${2:?}") bytes=${3:-no}
tools=${QAT_BUILD_ROOT:?}/tools examples=${QAT_SOURCE_ROOT:?}/examples
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/compilers.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/map.sh"
case $(arm-none-eabi-gcc -dumpversion 2>/dev/null) in 12.*) measured=yes ;; *) measured=no ;; esac
sanitizers=''
[ "${QAT_SANITIZE:-none}" = none ] || sanitizers="-g -fsanitize=$QAT_SANITIZE -fno-sanitize-recover=all"

# ---------------------------------------------------------------- networks that take pictures in different ways
for class in day night; do
    for part in train val; do
        mkdir -p "set/$part/$class"
        for i in 1 2 3 4; do
            { printf 'P6\n%d %d\n255\n' $((30 + i)) 40; tail -c +$((i * 5000)) "$tools/qat-run" | head -c $((120 * (30 + i))); } >"set/$part/$class/$i.ppm"
        done
    done
done
make_model() { # make_model NAME <settings of data>
    model=$1
    shift
    printf '[data]\nkind = folder\npath = set\nheight = 24\nwidth = 20\n' >"$model.ini"
    printf '%s\n' "$@" '[model]' 'arch = convnet' 'filters = 4, 4' 'strides = 2, 2' '[train]' 'epochs = 1' 'batch = 4' '[quant]' \
        'enabled = yes' 'quant_delay = 0' 'bn_freeze_delay = never' >>"$model.ini"
    "$tools/qat-train" "$model.ini" --out "run-$model" >made.txt 2>&1 && "$tools/qat-export" "run-$model/last.ckpt" "$model.qm" --samples 4 >made.txt 2>&1 ||
        not_ok "$model is not made: $(tail -n 2 made.txt)"
}
make_model squeezed
make_model short 'resize_short = 26'
{ # large: the same with resize_short = 40000, which no recipe has; gzip knows the CRC of a file
    head -c 12 short.qm >head.bin
    { tail -c +17 short.qm | head -c 128 && printf '\x40\x9c\0\0' && tail -c +149 short.qm; } >tail.bin
    cat head.bin tail.bin | gzip -c | tail -c 8 | head -c 4 | cat head.bin - tail.bin >large.qm
}
make_model cropped 'central_crop = 0.875'
make_model grey 'channels = 1'
make_model grey_cropped 'channels = 1' 'central_crop = 0.7'
make_listener() { # make_listener NAME <recipe> <arguments of qat-train>
    model=$1 recipe=$QAT_SOURCE_ROOT/recipes/$2
    shift 2
    "$tools/qat-train" "$recipe" "$@" $(printf ' --set %s' data.kind=keywords train.steps=2 train.batch=4 data.train_count=16 data.test_count=8 \
        quant.quant_delay=0 quant.bn_freeze_delay=never) --out "run-$model" >made.txt 2>&1 && "$tools/qat-export" "run-$model/last.ckpt" "$model.qm" --samples 4 >made.txt 2>&1 ||
        not_ok "$model is not made: $(tail -n 2 made.txt)"
}
make_listener keywords keywords.ini
make_listener steps keyword_gru.ini --set model.steps=7 # of 7 frames, with a state
generator() { # generator: prints a program that checks the inputs of the model
    case $model in keywords | steps) "$sounds" "$model.qm" net ;; *) "$pictures" "$model.qm" net ;; esac
}

# ---------------------------------------------------------------- on this computer
echo 'int check_input(void);
int main(void) { return check_input(); }' >main.c
cat >answer.c <<'END'
#include <stdio.h>
#include "net.h"
static uint8_t pixels[30000], in[NET_IN_COUNT], scores[NET_OUT_COUNT];
int main(void)
{
    int height, width, depth;
    if (scanf("P%*d %d %d %d", &width, &height, &depth) != 3 || getchar() != '\n')
        return 1;
    (void)!fread(pixels, 1, sizeof pixels, stdin);
    if (net_picture(pixels, height, width, NET_RGB, in))
        return 1;
    net_run(in, scores);
    return fwrite(scores, 1, sizeof scores, stdout) != sizeof scores;
}
END
cat >listen.c <<'END'
#include <stdio.h>
#include "net.h"
static int16_t samples[NET_SOUND_HOP];
static uint8_t in[NET_IN_COUNT];
static NET_OUT_TYPE scores[NET_OUT_COUNT];
int main(void)
{
#ifdef WITH_STATES
    net_reset();
#endif
    for (int runs = 0; runs < RUNS;) {
        if (!fread(samples, 2, NET_SOUND_HOP, stdin))
            return 1;
        if (net_sound(samples, in)) {
            net_run(in, scores);
            runs++;
            fwrite(scores, sizeof *scores, NET_OUT_COUNT, stdout);
        }
    }
    return 0;
}
END
{ # a sound of 1.2 seconds
    printf 'RIFF\x24\x96\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data\x00\x96\x00\x00'
    head -c 38400 "$tools/qat-run"
} >sound.wav
hears=yes
if "$tools/qat-run" keywords.qm sound.wav 2>&1 | grep -q libsndfile; then
    hears=no
    echo "SKIP preprocessing of a sound file: this build has no libsndfile"
fi
listen() { # listen <runs> <flags> <options of qat-run>: the network's scores, and those of qat-run
    [ $hears = yes ] || return
    runs=$1 flags=$2
    shift 2
    gcc $sanitizers -DRUNS="$runs" $flags listen.c net.o -o listen && tail -c 38400 sound.wav | ./listen >scores.bin
    "$tools/qat-run" "$model.qm" sound.wav "$@" --output scores.npy >/dev/null
    tail -c "$(stat -c %s scores.bin)" scores.npy | cmp - scores.bin
    [ "$(stat -c %s scores.bin)" -gt 0 ] || echo "no scores"
}
answer() { # answer: the network's scores, and those of qat-run
    case $model in
    keywords) listen 1 "" ;;
    steps) listen 8 -DWITH_STATES --steps ;;
    *) see ;;
    esac
}
see() {
    gcc $sanitizers answer.c net.o -o answer && ./answer <picture_5 >scores.bin
    "$tools/qat-run" "$model.qm" picture_5 --output scores.npy >/dev/null
    tail -c "$(stat -c %s scores.bin)" scores.npy | cmp - scores.bin
}
run() { # run <flags>: the pictures of check.c; prints what is wrong
    gcc $sanitizers "$@" main.c check.c net.o -o run && ./run || echo "$model: input $?"
}
try() { # prints what is wrong
    "$tools/qat-export" "$model.qm" net.c >/dev/null
    generator >check.c
    by_gcc
    [ -n "$sanitizers" ] || by_others
    run
    run -DWHOLE
    answer
    "$tools/qat-export" "$model.qm" net.c --strict --caller-arena >/dev/null
    by_gcc
    run -DWHOLE '-DMEMORY_AND=memory,' -DMEMORY=memory -include memory.h
    [ -n "$sanitizers" ] || ! nm net.o | grep ' [bB] ' || echo "memory of its own in spite of --caller-arena"
    "$tools/qat-export" "$model.qm" net.c --no-preprocessing >/dev/null
    ! grep -E "net_(picture|sound)|NET_(RGB|SOUND)" net.[ch] || echo "preprocessing in spite of --no-preprocessing"
}
printf '#include "net.h"\nstatic int64_t memory[NET_PREPROCESSING_BYTES / 8 + 1];\n' >memory.h
for model in squeezed short large cropped grey grey_cropped keywords steps; do
    wrong=$(try 2>&1)
    if [ -z "$wrong" ]; then ok "$model: the bytes of qat-run"; else not_ok "$model: $(head -n 20 <<<"$wrong")"; fi
    [ "$model" != squeezed ] || cp check.c first.c
done
"$tools/qat-export" squeezed.qm net.c >/dev/null
sed 's/s->first) + 1) /s->first) + 2) /' net.c >other.c && ! cmp -s net.c other.c && mv other.c net.c
gcc $sanitizers -c net.c -o net.o
if gcc $sanitizers main.c first.c net.o -o run && ./run; then not_ok "another place of a pixel goes unnoticed"; else ok "another place of a pixel is noticed"; fi

# ---------------------------------------------------------------- on devices
[ -z "$sanitizers" ] || exit $failed
cat >device_main.c <<'END'
#include "check.c"
#include "device.h"
int main(void)
{
    return check_input();
}
END
on_device() { # on_device <core>: prints what is wrong
    "$tools/qat-export" "$model.qm" net.c >/dev/null
    generator >check.c
    rm -f run.elf
    make -s -f "$examples/$1/Makefile" run MAIN=device_main.c OUT=run.elf CFLAGS='-Os -I.' </dev/null >out.txt 2>&1 || echo "$model: $(tail -n 2 out.txt)"
    flash=$(flash_of run.map run.net.o) ram=$(ram_of run.map run.net.o)
    [ "$bytes" = no ] || echo "$model $1 $flash $ram" >&3
    [ "$bytes$measured" = noyes ] || return
    # the working memory of sounds may be in the arena
    [ "$model" != keywords ] || ram=$((ram - $(sed -n 's/^#define NET_ARENA_BYTES \([0-9]*\).*/\1/p' net.h)))
    said=$(sed -n '/---- preprocessing/,/[*][/]/p' net.h | tr '\n,' '  ' | grep -oE " $1 [0-9]+" | grep -oE '[0-9]+$')
    [ "${said:-0}" -ge $((flash - 40)) ] && [ "${said:-0}" -le $((flash + 40)) ] || echo "$model: net.h says ${said:-nothing} of $flash bytes of flash"
    grep -q "calls it: RAM $ram;" net.h || echo "$model: net.h does not say $ram bytes of RAM"
}
device() { # device <core> <emulator> <compiler>
    for program in "$2" "$3"; do
        if ! command -v "$program" >/dev/null; then
            echo "SKIP preprocessing on $1: $program is not installed"
            return
        fi
    done
    wrong=$(for model in squeezed short cropped grey keywords steps; do on_device "$1"; done)
    if [ -z "$wrong" ]; then ok "$1: the same bytes"; else not_ok "$1: $wrong"; fi
}
cores='cortex-m0plus cortex-m4 cortex-m55'
[ "$bytes" = no ] || cores='cortex-m0plus cortex-m3 cortex-m4 cortex-m7 cortex-m55'
exec 3>&1
for core in $cores; do device $core qemu-system-arm arm-none-eabi-gcc; done
device riscv32 qemu-system-riscv32 riscv64-unknown-elf-gcc
exit $failed
