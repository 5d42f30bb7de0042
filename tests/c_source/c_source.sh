#!/usr/bin/env bash
# Networks as C source (qat-export --format c): every compiler that is there takes the files without a warning, the
# program needs memcpy and memset alone, and its outputs are the engine's, byte for byte, in 20 runs of each network.
#
#     c_source.sh ANSWERS TESTS      ANSWERS: tests/c_source/answers.c, built; TESTS: the folder of the test programs
#
# models.sh says which networks. Under the sanitizers there are few, and gcc compiles these with the sanitizers too.
set -u
answers=$(realpath "${1:?}") tests=${2:?}
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/compilers.sh"
ops() { # ops <model>: the names of its ops, sorted
    "$tools/qat-inspect" "$1" --json | tr ',{' '\n\n' | sed -n 's/^ *"op": "\([a-z0-9_]*\)".*/\1/p' | sort -u
}

sanitizers='' least=100 others=yes random=24
if [ "${QAT_SANITIZE:-none}" != none ]; then
    sanitizers="-g -fsanitize=$QAT_SANITIZE -fno-sanitize-recover=all" least=6 others=no random=6
    makers='test_infer test_state test_packing'
fi
. "$QAT_SOURCE_ROOT/tests/c_source/models.sh"
if [ -n "$sanitizers" ]; then
    awk 'NR % 3 == 1' chosen.txt >some.txt && mv some.txt chosen.txt
fi

# ---------------------------------------------------------------- each network
cat >main.c <<'END'
#include <stdio.h>
int check_network(void);
int main(void)
{
    int const wrong = check_network();
    if (wrong)
        printf("%s %d\n", wrong < 0 ? "self-test: layer" : "run", wrong < 0 ? -1 - wrong : wrong);
    return wrong != 0;
}
END
compile() { # compile <flags>: net.c of this folder by each compiler; prints what is wrong
    by_gcc "$@"
    [ "$others" = yes ] || return 0
    count=$((count + 1))
    [ $((count % 8)) = 1 ] || return 0 # the others have seen enough of them
    by_others "$@"
}
try() { # try <model> <options of qat-export>: prints what is wrong
    model=$1
    shift
    "$tools/qat-export" "$model" net.c "$@" >/dev/null || echo "not written: $model"
    "$answers" "$model" net 20 >answers.c || echo "no answers: $model"
    compile
    gcc -O1 main.c answers.c net.o $sanitizers -o run && ./run || echo "$model differs"
}
count=0
wrong=$(while read -r model; do try "$model"; done <chosen.txt 2>&1)
n=$(wc -l <chosen.txt)
if [ -z "$wrong" ] && [ "$n" -ge $least ]; then ok "$n networks: no warning, the engine's bytes in 20 runs of each"; else
    not_ok "of $n networks:"
    head -n 40 <<<"$wrong"
fi
if [ -z "$sanitizers" ]; then
    while read -r model; do ops "$model"; done <chosen.txt | sort -u >seen.txt
    lacks=$(grep -oE 'X\([a-z0-9_]+\)' "$QAT_SOURCE_ROOT/include/qat/infer.h" | sed 's/X(\(.*\))/\1/' | grep -v '^name$' | sort -u | comm -23 - seen.txt | tr '\n' ' ')
    if [ -z "$lacks" ]; then ok "among them are all ops"; else not_ok "no network has: $lacks"; fi
fi

# ---------------------------------------------------------------- options
with_states=$(ls models/state_* | head -n 1)
# the strict form includes string.h; a compiler that has no C library finds it here, after its own places
mkdir -p bare
cat >bare/string.h <<'END'
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void *memcpy(void *to, const void *from, size_t count);
void *memset(void *to, int byte, size_t count);
#ifdef __cplusplus
}
#endif
END
for model in "models/20240607-1.qm" "$with_states"; do
    count=0
    wrong=$(
        exec 2>&1
        "$tools/qat-export" "$model" net.c --prefix My_Net --section .weights --no-self-test >/dev/null
        "$answers" "$model" net 20 | sed 's/ net_/ My_Net_/' >answers.c
        compile
        gcc -DNO_SELF_TEST main.c answers.c net.o $sanitizers -o run && ./run
        [ "$(grep -c '^static.*MY_NET_SECTION' net.c)" = 0 ] || objdump -h net.o | grep -q '\.weights' || echo "no section .weights"
        grep -q self_test net.[ch] && echo "a self-test in spite of --no-self-test"
        "$tools/qat-export" "$model" net.c --caller-arena >/dev/null
        "$answers" "$model" net 20 >answers.c
        count=0
        compile
        gcc -DCALLER_ARENA -DARENA_BYTES=NET_ARENA_BYTES main.c answers.c net.o $sanitizers -o run && ./run
        [ -z "$sanitizers" ] && nm net.o | grep -q ' [bB] ' && echo "a static arena in spite of --caller-arena"
        "$tools/qat-export" "$model" net.c --separate-weights >/dev/null
        "$answers" "$model" net 20 >answers.c
        count=0
        compile -DNET_WEIGHTS_AT=0x60000000
        before=$others others=no
        compile
        objcopy -I binary -O elf64-x86-64 --rename-section .data=.rodata,alloc,load,readonly,data,contents \
            --set-section-alignment .data=16 --redefine-sym _binary_net_bin_start=net_weights net.bin weights.o
        gcc main.c answers.c net.o $sanitizers weights.o -Wl,-z,noexecstack -o run && ./run
        others=$before count=0
        "$tools/qat-export" "$model" net.c --strict >/dev/null
        compile -idirafter bare
        gcc main.c answers.c net.o $sanitizers -o run && ./run
        sed 's, */\*.*\*/$,,' net.c | grep -nE '^ *(if|for|while) .*[^{]$|^ *else$' | grep -vE '(&&|\|\||[-+*?:(,=])$' # bodies without braces
    )
    if [ -z "$wrong" ]; then ok "${model#models/}: prefix, section, no self-test, caller's arena, separate weights, strict"; else not_ok "${model#models/}: $wrong"; fi
done
"$tools/qat-export" models/20240607-1.qm net.c >/dev/null
cp net.c before.c
"$tools/qat-export" models/20240607-1.qm --format c net >/dev/null
same "the name without an ending, a second time" before.c net.c
refuses "a prefix that is no name" 2 "expected letters, digits" "$tools/qat-export" models/20240607-1.qm net.c --prefix 'a-b'
refuses "an option of another format" 2 "are of the format c" "$tools/qat-export" models/20240607-1.qm net.onnx --caller-arena
cp models/20240607-1.qm model.c
refuses "a .qm in the place of the C file" 2 "it would be overwritten" "$tools/qat-export" models/20240607-1.qm model.c
exit $failed
