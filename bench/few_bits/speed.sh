#!/usr/bin/env bash
# Speed of weights of few bits on this machine: ResNet-20 and MobileNet v1 0.5 on CIFAR-10 with weights of 8, 4, 3 and 2
# bits and codes of 8, and with weights of 1 bit (-1 and 1) of which convolutions multiply codes of 2 bits: an inference,
# and the opening of the file. The networks are trained for a few steps: latency does not depend on the values. The files
# take turns, and what is printed is the median of the quotients of a turn, with the fastest time of each. Run it on a
# quiet machine.
# Usage: bench/few_bits/speed.sh [OUT] [--rounds N] [--seconds S]
set -eu
cd "$(dirname "$0")/../.."
. bench/runs.sh
out=runs/few_bits_speed rounds=15 seconds=0.4
take_options rounds seconds -- "$@"
mkdir -p "$out"
widths='8 4 3 2 1'

for network in resnet20 mobilenet; do
    for bits in $widths; do
        [ ! -f "$out/$network-w$bits.qm" ] || continue
        if [ "$bits" = 1 ]; then
            settings=(--set quant.weight_ranges=bwn --set quant.input_bits=2 --set 'quant.layer @first.input_bits=8')
        else
            settings=(--set "quant.weight_bits=$bits")
        fi
        logged "$out/log" "$tools/qat-train" "recipes/cifar10_$network.ini" --out "$out/run" --overwrite --set train.steps=6 \
            --set train.eval_every=never --set train.schedule=constant --set train.warmup=0 --set quant.quant_delay=2 \
            --set quant.bn_freeze_delay=4 "${settings[@]}"
        logged "$out/log" "$tools/qat-export" "$out/run/last.ckpt" "$out/$network-w$bits.qm" --samples 16
    done
done

measure() { # measure <key> <file> <options...>: a time in ms
    "$tools/qat-bench" "$2" --json "${@:3}" | number "$1" /dev/stdin
}

for network in resnet20 mobilenet; do
    for _ in $(seq "$rounds"); do
        for bits in $widths; do
            file=$out/$network-w$bits.qm
            echo "$network $bits $(measure median_ms "$file" --seconds "$seconds") $(measure open_ms "$file" --load)"
        done
    done
done >"$out/times"

lscpu | sed -n 's/^Model name: *//p'
awk -f bench/median.awk -f <(cat <<'AWK'
    { key = $1 " " $2 }
    $2 == 8 { run8 = $3; load8 = $4 }
    !(key in run) { keys[++count] = key; run[key] = $3; load[key] = $4 }
    { runs[key] = runs[key] " " run8 / $3; loads[key] = loads[key] " " load8 / $4 }
    $3 < run[key] { run[key] = $3 }
    $4 < load[key] { load[key] = $4 }
    END {
        print "| network | bits of weights | an inference, ms | speed beside 8 bits | opening, ms | speed beside 8 bits |"
        print "|---|---|---|---|---|---|"
        for (i = 1; i <= count; i++) {
            split(keys[i], k, " ")
            printf "| %s | %s | %.3f | %.3f | %.3f | %.3f |\n", k[1], k[2], run[keys[i]], median(runs[keys[i]]), load[keys[i]], median(loads[keys[i]])
        }
    }
AWK
) "$out/times"
