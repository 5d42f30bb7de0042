#!/bin/sh
# No object of lib/infer, host included, holds a floating-point arithmetic, comparison or conversion
# instruction. Moves and bitwise operations on vector registers are fine: compilers copy structs with
# them. Before it looks, the test shows on small C files that it would notice.
#
#   tests/e2e/integer_only.sh BUILD_DIR      a build of this tree; OBJDUMP and CC choose the tools
set -eu

build=${1:?usage: integer_only.sh BUILD_DIR}
objdump=${OBJDUMP:-objdump}
compiler=${CC:-cc}
work=$build/integer_only
rm -rf "$work"
mkdir -p "$work"

fail() {
    echo "not ok - integer_only: $*"
    exit 1
}

# x86: all of x87; scalar and packed SSE/AVX arithmetic on ss sd ps pd sh ph; fused multiply-add;
# comparisons; conversions. AArch64: all f... but fmov; conversions. 32-bit ARM: v....f32 and the like.
suffix='(ss|sd|ps|pd|sh|ph)'
arithmetic='add|sub|mul|div|sqrt|min|max|rcp|rcp14|rcp28|rsqrt|rsqrt14|rsqrt28|round|rndscale|hadd|hsub|addsub|dp|scalef|getexp|getmant|reduce|range|fixupimm|fpclass|exp2|cmp[a-z_]*|u?comi'
x86="f[a-z0-9]+|v?($arithmetic)$suffix|vf(n?m(add|sub|addsub|subadd)|c?maddc|c?mulc)[0-9]*$suffix|v?cvt[a-z0-9]+"
aarch64='f[a-lo-z][a-z0-9]*|f(max|min|mad|msub|mla|mls|mul)[a-z0-9]*|fn[a-z0-9]*|[su]cvtf|bf[mcd][a-z0-9]*'
arm='v[a-z]+\.(f(16|32|64)|[su](16|32)\.f(16|32|64))[.a-z0-9]*'

# "file: instruction" of every floating-point instruction in the objects given
floating() {
    for object in "$@"; do
        case $("$objdump" -f "$object" | sed -n 's/^architecture: \([^,]*\),.*/\1/p') in
        i386*) pattern=$x86 ;;
        aarch64*) pattern=$aarch64 ;;
        arm*) pattern=$arm ;;
        *) fail "unknown architecture of $object" ;;
        esac
        # a data directive or prefix is no instruction; the mnemonic follows the last tab-separated field
        "$objdump" -d --no-show-raw-insn "$object" |
            sed -nE 's/^ *[0-9a-f]+:\t((rep|repz|repnz|lock|data16|notrack|bnd|cs|ds|es|fs|gs) )*//p' |
            grep -E "^($pattern)([[:space:]]|$)" | sed "s|^|$(basename "$object"): |" || true
    done
}

# ---- it notices
checked=0
check_noticed() {
    name=$1
    code=$2
    flags=${3:-}
    printf '%s\n' "$code" > "$work/$name.c"
    # shellcheck disable=SC2086
    "$compiler" -std=c11 -O2 -fno-math-errno $flags -c "$work/$name.c" -o "$work/$name.o" ||
        fail "$name.c does not compile"
    [ -n "$(floating "$work/$name.o")" ] || fail "$name goes unnoticed: $code"
    checked=$((checked + 1))
}
check_noticed float_add 'float f(float a, float b) { return a + b; }'
check_noticed float_sub 'float f(float a, float b) { return a - b; }'
check_noticed float_mul 'float f(float a, float b) { return a * b; }'
check_noticed float_div 'float f(float a, float b) { return a / b; }'
check_noticed double_mul 'double f(double a, double b) { return a * b; }'
check_noticed double_sqrt 'double sqrt(double); double f(double a) { return sqrt(a); }'
check_noticed float_less 'int f(float a, float b) { return a < b; }'
check_noticed float_min 'float f(float a, float b) { return a < b ? a : b; }'
check_noticed to_int 'int f(float a) { return (int)a; }'
check_noticed from_int 'double f(int a) { return a; }'
check_noticed widen 'double f(float a) { return a; }'
check_noticed long_double 'long double f(long double a) { return a * a; }'
check_noticed packed 'void f(float *restrict a, const float *restrict b) { for (int i = 0; i < 64; i++) a[i] += b[i]; }' -O3
case $("$compiler" -dumpmachine) in
x86_64* | i?86*)
    check_noticed avx 'void f(float *restrict a, const float *restrict b) { for (int i = 0; i < 64; i++) a[i] *= b[i]; }' '-O3 -mavx2'
    check_noticed fma 'double f(double a, double b, double c) { return a * b + c; }' '-mfma -ffp-contract=fast'
    ;;
esac
cat > "$work/integers.c" <<'END'
struct big { long a[8]; float kept; };
void copy(struct big *to, const struct big *from) { *to = *from; }
long f(int a, int b) { return (long)a * b >> 3; }
int g(const signed char *p, const short *q) { int s = 0; for (int i = 0; i < 64; i++) s += p[i] * q[i]; return s; }
unsigned m(unsigned a, unsigned b) { return a > b ? a % b : b; }
END
"$compiler" -std=c11 -O3 -c "$work/integers.c" -o "$work/integers.o"
found=$(floating "$work/integers.o")
[ -z "$found" ] || fail "integers and moves are taken for floating point: $found"
echo "noticed: $checked kinds of floating-point code, each compiled on its own; integers and moves are not"

# ---- there is none
objects=$(find "$build/lib/infer" -name '*.o' | sort)
[ -n "$objects" ] || fail "no objects in $build/lib/infer: build first"
for source in "$(dirname "$0")"/../../lib/infer/*.c "$(dirname "$0")"/../../lib/infer/host/*.c; do
    echo "$objects" | grep -q "$(basename "$source")" || fail "no object of $source"
done
# shellcheck disable=SC2086
found=$(floating $objects)
[ -z "$found" ] || fail "floating point in lib/infer:
$found"
instructions=0
for object in $objects; do
    n=$("$objdump" -d --no-show-raw-insn "$object" | grep -cE '^ *[0-9a-f]+:	' || true)
    [ "$n" -gt 0 ] || fail "no instruction in $object"
    instructions=$((instructions + n))
done
echo "read: $(echo "$objects" | wc -l) objects of lib/infer, $instructions instructions, none of them floating point"
echo "ok - integer_only"
