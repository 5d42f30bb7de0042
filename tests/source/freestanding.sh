#!/bin/sh
# The core of lib/infer stands alone: it includes nothing of the rest of the tree and no header beyond
# the compiler's own, compiles with -ffreestanding, links with -nostdlib when given memcpy and memset
# (and nothing else but, on processors without them, the compiler's own integer divisions), holds no
# floating-point helper, and keeps no mutable global data.
#
#   tests/source/freestanding.sh BUILD_DIR      works in BUILD_DIR/freestanding
#
# CC (with the processor's flags), NM and OBJDUMP choose the tools: a cross build's own.
set -eu

build=${1:?usage: freestanding.sh BUILD_DIR}
root=$(cd "$(dirname "$0")/../.." && pwd)
compiler=${CC:-cc}
nm=${NM:-nm}
objdump=${OBJDUMP:-objdump}
work=$build/freestanding
rm -rf "$work"
mkdir -p "$work"

fail() {
    echo "not ok - freestanding: $*"
    exit 1
}

# shellcheck source=tests/source/floating.sh
. "$root/tests/source/floating.sh" # integer_only.sh shows that it notices
# the compiler's library for integers: divisions and the like, in both of their names
integers='__aeabi_(u?[il]div(mod)?|l(mul|lsl|lsr|asr)|u?lcmp|[il]div0)|__u?(div|mod|divmod|mul|ashl|ashr|lshr|cmp)[dt]i[234]'

# ---- what is included
# every #include of the files given, without its file, that does not match an allowed pattern
foreign_includes() {
    allowed=$1
    shift
    grep -hE '^[[:space:]]*#[[:space:]]*include' "$@" | grep -vE "include ($allowed)" || true
}

sources=$(echo "$root"/lib/infer/model/*.c "$root"/lib/infer/ops/*.c "$root"/lib/infer/sound/*.c)
core='"infer/(arithmetic|kernels|kernels/loops|kernels/parts|model|ops)/[a-z0-9_]+\.h"|"qat/(infer|rounding|sound)\.h"|<stddef\.h>|<stdint\.h>|<arm_(acle|mve)\.h>'
found=$(foreign_includes "$core" $sources "$root"/lib/infer/arithmetic/*.h "$root"/lib/infer/kernels/*.h "$root"/lib/infer/kernels/*/*.h "$root"/lib/infer/model/*.h)
[ -z "$found" ] || fail "the core includes: $found"
found=$(foreign_includes '"qat/(rounding|status|version)\.h"|<stddef\.h>|<stdint\.h>' "$root/include/qat/infer.h" "$root/include/qat/sound.h" \
    "$root/include/qat/rounding.h" "$root/include/qat/status.h" "$root/include/qat/version.h")
[ -z "$found" ] || fail "qat/infer.h or qat/rounding.h includes: $found"
found=$(foreign_includes '"infer/[a-z0-9_/]+\.h"|"qat/infer\.h"|<.*>' \
    $(find "$root/lib/infer/host" -name '*.[ch]'))
[ -z "$found" ] || fail "lib/infer/host includes: $found"
printf '#include "base/arena.h"\n' > "$work/foreign.c"
[ -n "$(foreign_includes "$core" "$work/foreign.c")" ] || fail "a foreign include goes unnoticed"
echo "includes: lib/infer names only itself, qat/infer.h, qat/rounding.h, qat/status.h, qat/version.h, <stddef.h> and <stdint.h> (host: system headers too)"

# ---- compiled with the compiler's own headers alone
count=0
for source in $sources; do
    $compiler -std=c11 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -ffreestanding -nostdlib \
        -nostdinc -isystem "$($compiler -print-file-name=include)" \
        -fno-pic -fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables \
        -I "$root/include" -I "$root/lib" -c "$source" -o "$work/core_$(basename "$source" .c).o" ||
        fail "$source does not compile"
    count=$((count + 1))
done
echo "compiled: $count files with -ffreestanding -nostdlib -nostdinc"

# ---- linked with memcpy and memset alone
# shellcheck disable=SC2086
$compiler -r -nostdlib -o "$work/core.rel" "$work"/core_*.o
undefined=$("$nm" -u "$work/core.rel" | awk '{print $2}' | sort -u | tr '\n' ' ')
for symbol in $undefined; do
    case $symbol in
    memcpy | memset) ;;
    *) echo "$symbol" | grep -qxE "$integers" || fail "the core needs $symbol" ;;
    esac
done
echo "undefined symbols of the core: ${undefined:-none}"

mutable=$("$nm" "$work/core.rel" | awk '$2 ~ /^[BbCDdGgSs]$/ {print $3}' | tr '\n' ' ')
[ -z "$mutable" ] || fail "mutable global data: $mutable"
echo "mutable global data: none"

cat > "$work/start.c" <<'END'
/* A program of nothing: what a device's firmware would give the core, and calls of all it offers. */
#include "qat/infer.h"

void *memcpy(void *restrict to, const void *restrict from, size_t count);
void *memset(void *to, int byte, size_t count);
void _start(void);

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

#if defined __arm__ && defined __linux__
int raise(int signal); /* libgcc's 64-bit division there calls it when the divisor is zero */
int raise(int signal)
{
    return signal;
}
#endif

static _Alignas(16) unsigned char qm[16], memory[16], arena[16];
static qi_model *model;
static const qi_kernel_list no_kernels;

void _start(void)
{
    size_t need;
    const void *in[1] = {qm};
    void *out[1] = {arena};
    if (qi_model_bytes(qm, sizeof qm, &need, NULL) == QI_OK &&
        qi_model_init(&model, qm, sizeof qm, &no_kernels, memory, sizeof memory, NULL) == QI_OK &&
        qi_arena_bytes(model) <= sizeof arena && qi_self_test(model, arena, NULL) == QI_OK)
        qi_run(model, arena, in, out);
    for (;;) {
    }
}
END
# shellcheck disable=SC2086
$compiler -std=c11 -O2 -ffreestanding -fno-builtin -fno-pic -fno-pie -fno-stack-protector \
    -I "$root/include" -c "$work/start.c" -o "$work/start.o"
# shellcheck disable=SC2086
$compiler -nostdlib -static -no-pie -o "$work/core" "$work"/start.o "$work"/core_*.o -lgcc \
    2> "$work/link.log" || fail "does not link alone: $(cat "$work/link.log")"
left=$("$nm" -u "$work/core" | tr '\n' ' ')
[ -z "$left" ] || fail "undefined after linking: $left"
echo "linked: an executable with -nostdlib, given memcpy and memset; nm -u shows nothing"

# ---- how large a program is: with every kernel, and with those that a network needs
cat > "$work/few.c" <<'END'
/* The kernels of a classifier: convolutions, depthwise ones, a pool, a fully connected layer. */
static const qi_kernel *const kernels[] = {&qi_kernel_table, &qi_kernel_conv2d,
                                           &qi_kernel_depthwise_conv2d, &qi_kernel_average_pool2d,
                                           &qi_kernel_fully_connected};
static const qi_kernel_list few = {kernels, sizeof kernels / sizeof kernels[0]};
END
sed -e '/^static const qi_kernel_list no_kernels;/{r '"$work/few.c"'
d;}' -e 's/qi_model_init(/qi_model_init_with(/; s/&no_kernels/\&few/' "$work/start.c" >"$work/start_few.c"
mkdir "$work/small"
for source in $sources "$work/start.c" "$work/start_few.c"; do
    $compiler -std=c11 -Os -ffreestanding -fno-builtin -ffunction-sections -fdata-sections \
        -fno-pic -fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables \
        -I "$root/include" -I "$root/lib" -c "$source" -o "$work/small/$(basename "$source" .c).o"
done
# an archive: the linker takes what is asked for
ar=$(command -v "$($compiler -print-prog-name=ar)")
(cd "$work/small" && mv start.o start_few.o .. && "$ar" rcs libcore.a ./*.o)
size_of() { # size_of <object of the program> : bytes of code and constants
    # shellcheck disable=SC2086
    $compiler -nostdlib -static -no-pie -Wl,--gc-sections -o "$1.elf" "$1" "$work/small/libcore.a" -lgcc \
        2> "$work/link.log" || fail "does not link alone: $(cat "$work/link.log")"
    "$objdump" -h "$1.elf" | awk '$2 ~ /^\.(text|rodata|ARM\.ex|data\.rel\.ro)/ {print "0x" $3}' |
        { sum=0; while read -r bytes; do sum=$((sum + bytes)); done; echo "$sum"; }
}
all=$(size_of "$work/start.o")
few=$(size_of "$work/start_few.o")
archive=$(for object in "$work"/small/*.o; do
    "$objdump" -h "$object" | awk '$2 ~ /^\.(text|rodata)/ {print "0x" $3}'
done | { sum=0; while read -r bytes; do sum=$((sum + bytes)); done; echo "$sum"; })
echo "bytes of code and constants at -Os: archive $archive, program with every kernel $all, with the five of a classifier $few"
[ "$few" -lt $((all * 2 / 3)) ] || fail "a program with five kernels has $few bytes, with all of them $all"

floating=$(floating_helpers "$work/core")$(floating_instructions "$work"/core_*.o)
[ -z "$floating" ] || fail "floating point in the program: $floating"
echo "floating-point helpers and instructions in it: none"
echo "ok - freestanding"
