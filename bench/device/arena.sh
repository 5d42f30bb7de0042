#!/usr/bin/env bash
# RAM of the networks of MLPerf Tiny: our arena beside TensorFlow Lite Micro's, as its interpreter plans it.
#
#     QAT_DATA=.. QAT_BUILD_ROOT=build QAT_SOURCE_ROOT=. PYTHON=python3 bench/device/arena.sh      PYTHON: has tflite-micro
#
# "activations" is the part of TensorFlow Lite Micro's arena that does not depend on the processor. The rest describes
# tensors and layers, with pointers of 64 bits here; on a device they have 32. What describes our layers is in flash.
set -eu
QAT_BUILD_ROOT=$(realpath "${QAT_BUILD_ROOT:?}") QAT_SOURCE_ROOT=$(realpath "${QAT_SOURCE_ROOT:?}")
tools=$QAT_BUILD_ROOT/tools
. "$QAT_SOURCE_ROOT/tests/c_source/networks.sh"
[ -d "$zoo" ] || { echo "no folder models/mlperf-tiny in QAT_DATA" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '%-22s %14s %14s %14s\n' network "qat's arena" activations "TFLM's arena"
for network in $imported_networks; do
    make_network "$network"
    "$tools/qat-export" "$network.qm" net.c >/dev/null
    figures=$("${PYTHON:-python3}" "$QAT_SOURCE_ROOT/bench/device/arena.py" "$zoo/$(file_of "$network").tflite")
    set -- $figures
    printf '%-22s %14d %14d %14d\n' "$network" "$(sed -n 's/^#define NET_ARENA_BYTES //p' net.h)" "$2" "$3"
done
