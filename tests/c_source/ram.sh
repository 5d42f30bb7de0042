#!/usr/bin/env bash
# qat-export --ram: networks whose layers run in row bands, or whose tensors of few bits lie packed, take no more RAM than was
# asked for, and give the bytes of the network as it was: in the engine with every instruction set, and as C source here and
# on a Cortex-M4.
#
#     ram.sh ANSWERS
set -u
answers=$(realpath "${1:?}") sanitizers=
tools=${QAT_BUILD_ROOT:?}/tools examples=${QAT_SOURCE_ROOT:?}/examples
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/compilers.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/networks.sh"
. "$QAT_SOURCE_ROOT/tests/c_source/map.sh"
isas=$("$tools/qat-eval" "$QAT_SOURCE_ROOT/README.md" --isa none 2>&1 | sed -n 's/.*this processor runs: //p' | tr -d ,)

[ -n "$isas" ] && ok "instruction sets: $isas" || not_ok "no instruction sets"

npy() { # npy <file> <shape> <type>: an array of the bytes of standard input
    header=$(printf "{'descr': '|%s', 'fortran_order': False, 'shape': (%s), }" "$3" "$2")
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header" >"$1"
    cat >>"$1"
}

cat >main.c <<'END'
#include "answers.c"
#include "device.h"
int main(void)
{
    int const wrong = check_network();
    device_print(wrong ? "wrong\n" : "right\n");
    return wrong != 0;
}
END
printf 'int check_network(void);\nint main(void) { return check_network() != 0; }\n' >host.c

# ---------------------------------------------------------------- networks and limits
as_source() { # as_source <network> <bytes>: 20 runs of the C file, compared with the network without bands
    model="$1 with $2 bytes"
    "$answers" "$1.qm" net 20 >answers.c
    wrong=$(by_gcc 2>&1)
    gcc -O1 host.c answers.c net.o -o host && ./host || wrong="$wrong other bytes"
    ram=$(sed -n 's/^#define NET_ARENA_BYTES \([0-9]*\).*/\1/p' net.h)
    if [ -z "$wrong" ] && [ "$ram" -le "$2" ]; then ok "$model as C source: 20 runs, $ram bytes"; else
        not_ok "$model as C source: $ram bytes: $wrong"
    fi
}
as_model() { # as_model <network> <shape of the input> <type>: the .qm, with every instruction set
    tail -c 65536 "$1.qm" | head -c "$(($(tr -d ' ' <<<"$2" | tr , '*')))" | npy x.npy "$2" "$3"
    check "$1: an answer" "$tools/qat-run" "$1.qm" --input x.npy --output want.npy
    for isa in $isas; do
        check "in bands ($isa)" "$tools/qat-run" banded.qm --input x.npy --isa "$isa" --output got.npy
        same "  has the same bytes" want.npy got.npy
    done
}
fits() { # fits <network> <limit> <shape of the input> <type> <what is printed> <what is in JSON>
    bytes=$(($(sed 's/K/ * 1024/' <<<"$2")))
    check "$1 --ram $2 as C source" "$tools/qat-export" "$1.qm" net.c --ram "$2"
    grep '^RAM: ' out.txt
    has "  says how" "^RAM: [0-9]+ bytes instead of [0-9]+: $5" out.txt
    said=$(sed -n 's/^flash: the layers of the bands add about \([0-9]*\) bytes to a .qm$/\1/p' out.txt)
    as_source "$1" "$bytes"
    check "$1 --ram $2 as a .qm" "$tools/qat-export" "$1.qm" banded.qm --ram "$2" --json
    has "  and as JSON" "\"ram\": [0-9]+, \"ram_before\": [0-9]+, $6.*\"flash_added\": $said[,}]" out.txt
    added=$(($(wc -c <banded.qm) - $(wc -c <"$1.qm")))
    if [ "$said" = $added ]; then ok "  $said bytes were added, as it says"; else not_ok "  it says $said bytes, $added were added"; fi
    as_model "$1" "$3" "$4"
}
in_bands() { # in_bands <network> <limit> <shape of the input> <type>
    fits "$@" '[0-9]+ layers up to .* in [0-9]+ bands of [0-9]+ rows?, [0-9.]+ % more' '"band_layers": [1-9]'
}
packed() { # packed <network> <limit> <shape of the input> <type>
    fits "$@" '[0-9]+ tensors of few bits are packed, and the layers that make or read them run in bands of [0-9]+ rows?, [0-9.]+ % more' '.*"packed_tensors": [1-9]'
}
for network in mobilenet_v2 resnet20 quickstart mobilenet4 resnet2; do
    make_network $network || not_ok "$network is not made: $(tail -n 2 made.txt)"
done
in_bands resnet20 44K '1, 32, 32, 3' u1
in_bands quickstart 14000 '1, 28, 28, 1' u1
in_bands mobilenet_v2 64K '1, 96, 96, 3' u1
packed mobilenet4 32K '1, 32, 32, 3' u1
packed resnet2 24K '1, 32, 32, 3' u1

# ---------------------------------------------------------------- on a device
if command -v arm-none-eabi-gcc >/dev/null && command -v qemu-system-arm >/dev/null; then
    on_device() { # on_device <network> <KiB> <runs>
        "$tools/qat-export" "$1.qm" net.c --ram "$2K" >/dev/null && "$answers" "$1.qm" net "$3" >answers.c
        said=$(make -s -f "$examples/cortex-m4/Makefile" run MAIN=main.c OUT=run.elf CFLAGS='-Os -I.' 2>&1 </dev/null)
        if grep -q '^right$' <<<"$said"; then ok "$1 in $2K on a Cortex-M4: the bytes of the network as it was, in $3 runs"; else
            not_ok "$1 on a Cortex-M4: $(tail -n 3 <<<"$said")"
        fi
        ram=$(ram_of run.map run.net.o)
        if [ "$ram" -gt 0 ] && [ "$ram" -le $(($2 * 1024)) ]; then ok "the linker's map has $ram bytes of RAM"; else not_ok "the linker's map has $ram bytes of RAM"; fi
    }
    on_device mobilenet_v2 64 20
    on_device mobilenet4 32 5
else
    echo "SKIP a Cortex-M4: no arm-none-eabi-gcc, or no qemu-system-arm"
fi

# ---------------------------------------------------------------- more and less
"$tools/qat-export" resnet20.qm plain.c --prefix net >/dev/null
check "a limit that the network keeps as it is" "$tools/qat-export" resnet20.qm much.c --ram 1M --prefix net
has "  needs no bands" '^RAM: [0-9]+ bytes, as it is$' out.txt
sed -i 's/much\.h/plain.h/; s/much.h says/plain.h says/' much.c
same "  and changes nothing" plain.c much.c
refuses "too little RAM" 1 "it can be made to need " "$tools/qat-export" mobilenet_v2.qm small.qm --ram 1K
least=$(sed -n 's/.*made to need \([0-9]*\).*/\1/p' err.txt)
check "the least RAM that it names, $least bytes" "$tools/qat-export" mobilenet_v2.qm small.qm --ram "$least"
refuses "a byte less" 1 "it can be made to need $least" "$tools/qat-export" mobilenet_v2.qm less.qm --ram $((least - 1))
[ ! -e less.qm ] && ok "  writes nothing" || not_ok "less.qm is there"
for wrong in 0 -1 64X 64KB K 1.5K 99999999999999999999; do
    refuses "--ram $wrong" 2 "--ram $wrong: expected a number of bytes, such as 65536 or 64K" "$tools/qat-export" resnet20.qm net.c --ram $wrong
done
refuses "--ram for another format" 2 "--ram is of the formats qm and c" "$tools/qat-export" resnet20.qm net.onnx --ram 64K

check "from the checkpoint" "$tools/qat-export" run-resnet20/last.ckpt both.qm --samples 4 --ram 44K
check "from its .qm" "$tools/qat-export" resnet20.qm again.qm --ram 44K
same "  is the same file" both.qm again.qm
check "in bands, and stripped" "$tools/qat-export" resnet20.qm strip.qm --ram 44K --strip
check "an epilogue, several outputs" make_network ssd
check "  with all the RAM that it needs" "$tools/qat-export" ssd.qm ssd_all.qm --ram 1M
all=$(sed -n 's/^RAM: \([0-9]*\) bytes, as it is$/\1/p' out.txt)
check "  and with a byte less" "$tools/qat-export" ssd.qm ssd_less.qm --ram "$((all - 1))"
has "  says how" "^RAM: [0-9]+ bytes instead of $all: [0-9]+ layers up to " out.txt
exit $failed
