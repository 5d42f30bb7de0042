#!/usr/bin/env bash
# Networks in other people's build systems: the CMake package and the Makefile fragment build one. The examples for Arduino,
# ESP-IDF and Zephyr, which are not installed here, are compiled and run on this computer with stand-ins for what
# they include.
set -u
tools=${QAT_BUILD_ROOT:?}/tools source=${QAT_SOURCE_ROOT:?}
. "$source/tests/common/checks.sh"
. "$source/tests/c_source/networks.sh"
make_network keyword_spotting 2>/dev/null || make_network signals || { cat made.txt; exit 1; }
mv ./*.qm net.qm
printf '#include "net.h"\nint main(void) { return net_self_test(); }\n' >main.c

# ---------------------------------------------------------------- CMake and make
cmake_lists() { # cmake_lists <line>...: a project of C
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(firmware C)\n' >CMakeLists.txt
    printf '%s\n' "$@" >>CMakeLists.txt
}
if command -v cmake >/dev/null; then
    cmake_lists 'find_package(qat REQUIRED)' 'qat_add_model(net net.qm --strict)' 'add_executable(firmware main.c)' \
        'target_link_libraries(firmware PRIVATE net)'
    check "CMake: a project that finds the package" cmake -S . -B cmake "-Dqat_DIR=$source/tools/build" "-DQAT_EXPORT=$tools/qat-export"
    check "CMake: it builds" cmake --build cmake
    check "CMake: the network passes its self-test" cmake/firmware
    check "CMake: the options are taken" grep -q '#include <string.h>' cmake/net.model/net.c
    touch -d '+1 minute' net.qm
    cmake --build cmake >out.txt 2>&1
    has "CMake: a newer model is written again" 'net.c: a network as C source' out.txt
else
    echo "SKIP the CMake package: no cmake"
fi
mkdir make
cp net.qm main.c make
printf 'include %s/tools/build/qat.mk\nfirmware: main.o net.o\n\t$(CC) $^ -o $@\nmain.o: net.h\n' "$source" >make/Makefile
check "make: a Makefile with the fragment" make -C make firmware QAT_EXPORT="$tools/qat-export" QAT_EXPORT_FLAGS=--strict
check "make: the network passes its self-test" make/firmware

# ---------------------------------------------------------------- Arduino
"$tools/qat-export" net.qm net.c >/dev/null
mkdir stand_ins
cat >stand_ins/Arduino.h <<'END'
#include <cstdint>
#include <cstdio>
enum { LED_BUILTIN = 13, OUTPUT = 1, LOW = 0, HIGH = 1 };
inline int blinks, pauses;
inline void pinMode(int, int) {}
inline void digitalWrite(int, int level) { blinks += level; }
inline void delay(unsigned long) { pauses++; }
inline unsigned long micros() { return 1000; }
inline struct {
    void begin(long) {}
    void print(const char *text) { std::printf("%s", text); }
    void print(int n) { std::printf("%d", n); }
    void println(const char *text) { std::printf("%s\n", text); }
    void println(int n) { std::printf("%d\n", n); }
    void println(unsigned long n) { std::printf("%lu\n", n); }
} Serial;
END
{
    echo '#include "Arduino.h"'
    cat "$source"/examples/arduino/examples/Answer/Answer.ino
    echo 'int main() { setup(); loop(); std::printf("blinks %d\n", blinks); return 0; }'
} >sketch.cpp
gcc -std=c99 -O1 -c net.c -o net.o
check "Arduino: the sketch compiles" g++ -std=c++17 -Wall -Wextra -Werror -Istand_ins -I. sketch.cpp net.o -o sketch
check "Arduino: the sketch runs" ./sketch
if grep -qx 'self-test passed' out.txt && [ "$(sed -n 's/^answer \([0-9]*\),.*/\1/p' out.txt)" = "$(sed -n 's/^blinks //p' out.txt)" ]; then
    ok "Arduino: it blinks its answer"
else not_ok "Arduino: $(cat out.txt)"; fi
lacks=$(for key in name version author maintainer sentence paragraph category url architectures; do
    grep -qE "^$key=.+" "$source/examples/arduino/library.properties" || echo "$key"
done)
if [ -z "$lacks" ]; then ok "Arduino: library.properties has what a library must have"; else not_ok "library.properties lacks $lacks"; fi

# ---------------------------------------------------------------- ESP-IDF
printf '#include <stdint.h>\nstatic inline int64_t esp_timer_get_time(void) { return 5; }\n' >stand_ins/esp_timer.h
printf 'void app_main(void);\nint main(void) { app_main(); return 0; }\n' >start.c
check "ESP-IDF: main.c compiles" gcc -std=c11 -Wall -Wextra -Werror -Istand_ins -I. start.c "$source/examples/esp32/main/main.c" net.o -o esp32
check "ESP-IDF: it runs" ./esp32
has "ESP-IDF: the self-test" '^self-test passed: layers [0-9]+$' out.txt

# ---------------------------------------------------------------- Zephyr
mkdir -p stand_ins/zephyr
cat >stand_ins/zephyr/kernel.h <<'END'
#include <stdint.h>
#include <stdio.h>
#define printk printf
static inline uint32_t k_cycle_get_32(void) { return 7; }
END
if command -v cmake >/dev/null; then
    mkdir zephyr
    cp net.qm zephyr/model.qm
    cmake_lists "set(APPLICATION_SOURCE_DIR \"$work/zephyr\")" 'set(CONFIG_QAT_NETWORK y)' 'set(CONFIG_QAT_NETWORK_MODEL model.qm)' \
        'set(CONFIG_QAT_NETWORK_OPTIONS "--strict")' "add_executable(app $source/examples/zephyr/sample/src/main.c)" \
        'macro(zephyr_library_named name)' ' set(library ${name})' ' add_library(${name} STATIC)' 'endmacro()' \
        'macro(zephyr_library_sources)' ' target_sources(${library} PRIVATE ${ARGN})' 'endmacro()' \
        'macro(zephyr_include_directories)' ' target_include_directories(app PRIVATE ${ARGN})' 'endmacro()' \
        "add_subdirectory($source/examples/zephyr module)" "target_include_directories(app PRIVATE $work/stand_ins)" \
        'target_link_libraries(app PRIVATE qat_network)'
    check "Zephyr: the module's CMakeLists" cmake -S . -B zephyr/build "-DQAT_EXPORT=$tools/qat-export"
    check "Zephyr: the sample builds" cmake --build zephyr/build
    check "Zephyr: it runs" zephyr/build/app
    has "Zephyr: the self-test" '^self-test passed: layers [0-9]+$' out.txt
fi
if python3 -c 'import yaml' 2>/dev/null; then
    check "Zephyr: module.yml" python3 -c 'import sys, yaml
module = yaml.safe_load(open(sys.argv[1]))
assert module["name"] == "qat" and module["build"] == {"cmake": ".", "kconfig": "Kconfig"}' "$source/examples/zephyr/zephyr/module.yml"
else
    echo "SKIP module.yml: no yaml module of Python"
fi
if python3 -c 'import kconfiglib' 2>/dev/null; then
    check "Zephyr: Kconfig" python3 -c 'import sys, kconfiglib
symbols = kconfiglib.Kconfig(sys.argv[1], warn_to_stderr=False).syms
assert all(name in symbols for name in sys.argv[2:])' "$source/examples/zephyr/Kconfig" QAT_NETWORK QAT_NETWORK_MODEL QAT_NETWORK_OPTIONS
else
    echo "SKIP Kconfig: no kconfiglib module of Python"
fi
exit $failed
