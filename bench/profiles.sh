#!/usr/bin/env bash
# What a profile costs on this machine: networks of pictures of 224 x 224, each exported in the profiles
# paper, tflite and onnx, on one thread. The networks are trained for two steps: latency hardly depends on the values.
# The files take turns, and what is printed is the fastest time of each, and the median of the quotients of a turn. Run it
# on a quiet machine.
# Usage: bench/profiles.sh [OUT] [--rounds N] [--seconds S] [--isa NAME]
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
out=runs/profiles rounds=9 seconds=0.4 isa=
take_options rounds seconds isa -- "$@"
mkdir -p "$out"
networks='mobilenet_v1_1.0_224 mobilenet_v2 resnet18'

for network in $networks; do
    [ ! -f "$out/$network-onnx.qm" ] || continue
    printf '[data]\nkind = shapes\nheight = 224\ntrain_count = 8\ntest_count = 8\n[model]\narch = %s\n[train]\nbatch = 4\nsteps = 2\neval_every = never\n[quant]\nenabled = yes\nlayout = int8\n' \
        "$network" >"$out/$network.ini"
    logged "$out/log" "$tools/qat-train" "$out/$network.ini" --out "$out/run" --overwrite
    for profile in paper tflite onnx; do
        logged "$out/log" "$tools/qat-export" "$out/run/last.ckpt" "$out/$network-$profile.qm" --samples 4 --profile "$profile"
    done
done

for network in $networks; do
    for _ in $(seq "$rounds"); do
        for profile in paper tflite onnx; do
            echo "$network $profile $("$tools/qat-bench" "$out/$network-$profile.qm" --json --threads 1 --seconds "$seconds" \
                ${isa:+--isa "$isa"} | number min_ms /dev/stdin)"
        done
    done
done >"$out/times"

lscpu | sed -n 's/^Model name: *//p'
awk -f bench/median.awk -f <(cat <<'AWK'
    { key = $1 " " $2 }
    $2 == "paper" { paper = $3 }
    !(key in best) { keys[++count] = key; best[key] = $3 }
    { quotients[key] = quotients[key] " " $3 / paper }
    $3 < best[key] { best[key] = $3 }
    END {
        print "| network | profile | an inference, ms | beside profile paper |"
        print "|---|---|---|---|"
        for (i = 1; i <= count; i++) {
            split(keys[i], k, " ")
            printf "| %s | %s | %.3f | %.2f |\n", k[1], k[2], best[keys[i]], median(quotients[keys[i]])
        }
    }
AWK
) "$out/times"
