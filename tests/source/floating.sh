# Sourced by the tests that prove the engine integer-only: finds floating-point code in objects, and
# shows on small C files that it would. Expects $compiler, $objdump, $nm, a folder $work, and fail().

# What counts is arithmetic, comparison and conversion. Moves and bitwise operations on vector registers
# are fine: compilers copy structs with them.
# x86: all of x87; arithmetic on ss sd ps pd sh ph and bf16; fused multiply-add; comparisons; conversions.
suffix='(ss|sd|ps|pd|sh|ph)'
arithmetic='add|sub|mul|div|sqrt|min|max|rcp|rcp14|rcp28|rsqrt|rsqrt14|rsqrt28|round|rndscale|hadd|hsub|addsub|dp|dpbf16|scalef|getexp|getmant|reduce|range|fixupimm|fpclass|exp2|cmp[a-z_]*|u?comi'
x86="f[a-z0-9]+|v?($arithmetic)$suffix|vf(n?m(add|sub|addsub|subadd)|c?maddc|c?mulc)[0-9]*$suffix|v?cvt[a-z0-9]+"
# AArch64: all f... but fmov; conversions; bf16 (bfi, bfm, bfc and bfxil move bits of integers).
aarch64='f[a-lo-z][a-z0-9]*|f(max|min|mad|msub|mla|mls|mul)[a-z0-9]*|fn[a-z0-9]*|[su]cvtf|bf(cvt|dot|ml|mm|mul|add|sub)[a-z0-9]*'
# 32-bit ARM: v....f32 and the like but vmov; conversions from and to them.
arm='v([a-ln-z][a-z0-9]*|m[a-np-z][a-z0-9]*)\.(f(16|32|64)|bf16|[su](8|16|32)\.f(16|32|64))[.a-z0-9]*'

# Without a floating-point unit the instructions are calls: of libgcc's helpers under their two kinds of
# names (__aeabi_fadd, __addsf3), or of libm.
mode='[sdtxhb]'
helpers="__aeabi_(c?[df][a-z0-9]+|u?[il]2[df]|h2f[a-z_]*)"
helpers="$helpers|__(add|sub|mul|div|neg|unord|eq|ne|lt|le|gt|ge|cmp|powi)${mode}[fc][23][a-z0-9]*"
helpers="$helpers|__(float|floatun|fix|fixuns|extend|trunc)$mode[a-z0-9]+|__gnu_[fhd]2[fhd]_[a-z]+"
helpers="$helpers|(sqrt|cbrt|exp|exp2|expm1|pow|log|log2|log10|log1p|sin|cos|tan|sinh|cosh|tanh|atan|atan2|erf|floor|ceil|round|rint|nearbyint|trunc|lround|lrint|llround|fabs|fmin|fmax|fma|fmod|ldexp|frexp|scalbn|modf|strtod|atof)[fl]?"

# floating_instructions OBJECT... : "object: instruction" of each
floating_instructions() {
    for object in "$@"; do
        case $("$objdump" -f "$object" | sed -n 's/^architecture: \([^,]*\),.*/\1/p') in
        i386*) pattern=$x86 ;;
        aarch64*) pattern=$aarch64 ;;
        arm*) pattern=$arm ;;
        *) fail "unknown architecture of $object" ;;
        esac
        # a prefix is no instruction of its own; the mnemonic follows it
        "$objdump" -d --no-show-raw-insn "$object" |
            sed -nE 's/^ *[0-9a-f]+:\t((rep|repz|repnz|lock|data16|notrack|bnd|cs|ds|es|fs|gs) )*//p' |
            grep -E "^($pattern)([[:space:]]|$)" | sed "s|^|$(basename "$object"): |" || true
    done
}

# floating_helpers FILE... : names of floating-point functions that the files use or hold
floating_helpers() {
    "$nm" "$@" | awk 'NF >= 2 { print $NF }' | grep -xE "$helpers" | sort -u || true
}

# ---- does it notice?
checked=0
notices() { # notices NAME CODE [FLAGS]: it must be seen, as an instruction or as a call
    printf '%s\n' "$2" > "$work/$1.c"
    # shellcheck disable=SC2086
    $compiler -std=c11 -O2 -fno-math-errno ${3:-} -c "$work/$1.c" -o "$work/$1.o" ||
        fail "$1.c does not compile"
    [ -n "$(floating_instructions "$work/$1.o")$(floating_helpers "$work/$1.o")" ] ||
        fail "$1 goes unnoticed: $2"
    checked=$((checked + 1))
}

check_detector() {
    loop='for (int i = 0; i < 64; i++)'
    notices float_add 'float f(float a, float b) { return a + b; }'
    notices float_sub 'float f(float a, float b) { return a - b; }'
    notices float_mul 'float f(float a, float b) { return a * b; }'
    notices float_div 'float f(float a, float b) { return a / b; }'
    notices double_add 'double f(double a, double b) { return a + b; }'
    notices double_mul 'double f(double a, double b) { return a * b; }'
    notices double_sqrt 'double sqrt(double); double f(double a) { return sqrt(a); }'
    notices float_less 'int f(float a, float b) { return a < b; }'
    notices double_equal 'int f(double a, double b) { return a == b; }'
    notices float_min 'float f(float a, float b) { return a < b ? a : b; }'
    notices to_int 'int f(float a) { return (int)a; }'
    notices to_unsigned 'unsigned f(double a) { return (unsigned)a; }'
    notices to_wide 'long long f(double a) { return (long long)a; }'
    notices from_int 'double f(int a) { return a; }'
    notices from_unsigned 'float f(unsigned a) { return a; }'
    notices from_wide 'float f(unsigned long long a) { return a; }'
    notices widen 'double f(float a) { return a; }'
    notices narrow 'float f(double a) { return a; }'
    notices long_double 'long double f(long double a) { return a * a; }'
    notices packed "void f(float *restrict a, const float *restrict b) { $loop a[i] += b[i]; }" -O3
    case $($compiler -dumpmachine) in
    x86_64* | i?86*)
        notices avx "void f(float *restrict a, const float *restrict b) { $loop a[i] *= b[i]; }" '-O3 -mavx2'
        notices fma 'double f(double a, double b, double c) { return a * b + c; }' '-mfma -ffp-contract=fast'
        notices avx512 "void f(float *restrict a, const int *restrict b) { $loop a[i] = b[i]; }" \
            '-O3 -mavx512f -mprefer-vector-width=512'
        ;;
    aarch64*)
        notices half "void f(__fp16 *restrict a, const __fp16 *restrict b) { $loop a[i] *= b[i]; }" \
            '-O3 -march=armv8.2-a+fp16'
        ;;
    arm*hf)
        notices neon "void f(float *restrict a, const float *restrict b) { $loop a[i] *= b[i]; }" \
            '-O3 -march=armv7-a -mfpu=neon -ffast-math'
        ;;
    esac
    cat > "$work/integers.c" <<'END'
struct big { long a[8]; float kept; };
void copy(struct big *to, const struct big *from) { *to = *from; }
long f(int a, int b) { return (long)a * b >> 3; }
int g(const signed char *p, const short *q) { int s = 0; for (int i = 0; i < 64; i++) s += p[i] * q[i]; return s; }
unsigned m(unsigned a, unsigned b) { return a > b ? a % b : b; }
long long d(long long a, long long b) { return a / b; }
unsigned z(unsigned a) { return a & ~0xff0u; }
float pick(const float *p, int i) { return p[i]; }
END
    $compiler -std=c11 -O3 -c "$work/integers.c" -o "$work/integers.o"
    mistaken=$(floating_instructions "$work/integers.o")$(floating_helpers "$work/integers.o")
    [ -z "$mistaken" ] || fail "integers and moves are taken for floating point: $mistaken"
    echo "$($compiler -dumpmachine): $checked kinds of floating-point code are noticed, each compiled on its own; integers and moves are not"
}
