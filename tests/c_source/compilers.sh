# Sourced by the tests of C source: net.c of this folder by each compiler that is there, without a warning; the program
# needs memcpy and memset alone, and has no floating point. Expects $model, a name for messages, and $sanitizers.
compiler=arm-none-eabi-gcc objdump=arm-none-eabi-objdump nm=arm-none-eabi-nm
fail() { echo "$*"; }
. "$QAT_SOURCE_ROOT/tests/source/floating.sh" # integer_only.sh shows that it notices
warnings="-Wall -Wextra -Wconversion -Wpedantic -Werror"
integer_helpers='__aeabi_(u?[il]div(mod)?|l(mul|lsl|lsr|asr)|u?lcmp|[il]div0|memcpy[48]?|memset[48]?|memclr[48]?)|__gnu_thumb1_case_[a-z0-9]*'
arm() { command -v arm-none-eabi-gcc >/dev/null; }
by_gcc() { # by_gcc <flags>: net.o; prints what is wrong
    gcc $warnings -std=c99 -O1 $sanitizers "$@" -c net.c -o net.o || echo "gcc: $model"
}
by_others() { # by_others <flags>: prints what is wrong
    if command -v clang >/dev/null; then clang $warnings -std=c99 "$@" -fsyntax-only net.c || echo "clang: $model"; fi
    if command -v g++ >/dev/null; then g++ $warnings -std=c++17 "$@" -x c++ -fsyntax-only net.c || echo "g++: $model"; fi
    arm || return 0
    for cpu in cortex-m4 cortex-m55; do
        arm-none-eabi-gcc $warnings -std=c99 -mcpu=$cpu -mthumb -mfloat-abi=hard -O2 -ffreestanding "$@" -c net.c -o /dev/null || echo "$cpu: $model"
    done
    arm-none-eabi-gcc $warnings -std=c99 -mcpu=cortex-m0plus -mthumb -Os -ffreestanding "$@" -c net.c -o arm.o || echo "arm: $model"
    bad=$(arm-none-eabi-nm -u arm.o | awk '{ print $2 }' | grep -vxE "memcpy|memset|$integer_helpers" | tr '\n' ' ')
    [ -z "$bad" ] || echo "$model needs $bad"
    # with a floating-point unit, where its instructions would be seen
    arm-none-eabi-gcc -std=c99 -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard -mthumb -O2 "$@" -c net.c -o float.o
    bad=$(floating_instructions float.o; floating_helpers arm.o float.o)
    [ -z "$bad" ] || echo "$model has $bad"
}
