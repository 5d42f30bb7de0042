#!/usr/bin/env bash
# Each header of lib/infer/kernels, alone, compiles without a warning as C99 and as C++17, with all features and with
# none, by every compiler that is there: a network as C source is built by strangers, with their warnings.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

kernels=$QAT_SOURCE_ROOT/lib/infer/kernels
warnings=(-Wall -Wextra -Wconversion -Wpedantic -Wshadow -Werror)
none=$(sed -n 's/^#define \(QK_[A-Z]*\) 1 .*/-D\1=0/p' "$kernels/parts/features.h")
[ "$(wc -w <<<"$none")" -ge 5 ] || not_ok "features.h: only these are found: $none"

headers() { # headers <compiler and its flags>: those that it does not take
    for header in "$kernels"/*.h "$kernels"/*/*.h; do
        for features in "" "$none"; do
            printf '#include "infer/kernels/%s"\ntypedef int nothing;\n' "${header#"$kernels"/}" |
                "$@" $features "${warnings[@]}" -fsyntax-only -I"$QAT_SOURCE_ROOT/include" -I"$QAT_SOURCE_ROOT/lib" - ||
                echo "${header#"$kernels"/}"
        done
    done 2>&1
}
try() { # try <compiler and its flags>
    if ! command -v "$1" >/dev/null; then
        echo "SKIP $*: $1 is not installed"
        return
    fi
    bad=$(headers "$@")
    if [ -z "$bad" ]; then ok "$*"; else not_ok "$*: $bad"; fi
}
try gcc -std=c99 -x c
try gcc -std=c11 -O2 -x c
try clang -std=c99 -x c
try g++ -std=c++17 -x c++
try clang++ -std=c++17 -x c++
for cpu in cortex-m0plus cortex-m4 cortex-m55; do # the kernels know no other differences
    try arm-none-eabi-gcc -mcpu=$cpu -mthumb -std=c99 -x c
done
try arm-none-eabi-gcc -mcpu=cortex-m55 -mthumb -mfloat-abi=hard -std=c99 -x c # with Helium
try arm-none-eabi-g++ -mcpu=cortex-m55 -mthumb -mfloat-abi=hard -std=c++17 -x c++

echo 'static int f(void *p) { short *q = p; return *q; }' >wrong.h
if echo '#include "wrong.h"' | g++ -I. -x c++ -fsyntax-only - 2>/dev/null; then not_ok "C in C++ goes unnoticed"; fi
exit $failed
