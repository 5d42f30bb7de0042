#!/usr/bin/env bash
# How much faster is a step with ranks? Trains quickstart's network, ResNet-20 and MobileNet v1 (multiplier 0.25) on
# drawn pictures, for some steps each: one process with two threads, with and without shards, and two ranks with one
# thread each. Prints milliseconds a step (the least of all rounds) and ratios:
#
#     shards     one process, shards = 1 / shards = 8
#     ranks      one process with 2 threads / 2 ranks with 1 thread, both with 8 shards: 0.92 or more is wanted
#     waits      share of the time that the ranks wait for each other
#
#     bench/scaling/efficiency.sh [ROUNDS]      default: 5
#
# QAT_BUILD names another build than build. Other programs should not run meanwhile: the figures are told by the least
# times, but two ranks suffer more from a third program than two threads do.
set -u
cd "$(dirname "$0")/../.."
rounds=${1:-5}
. bench/scaling/steps.sh

waits() { # share of the waiting of the last run in the second half
    awk -F, -v ms="$1" -v steps="$2" '{ waited[$1] += $3; n[$1]++; step = $1 }
        END { printf "%.3f\n", waited[step] / n[step] / (ms * steps / 1000) }' "$folder/run/ranks.csv"
}

printf '%-22s %10s %10s %10s %8s %8s %8s\n' network 'shards=1' 'shards=8' '2 ranks' shards ranks waits
while IFS='|' read -r name model batch steps; do
    recipe "$(printf '%b' "$model")" "$batch" "$steps" >"$folder/net.ini"
    whole=() cut=() ranks=()
    for _ in $(seq "$rounds"); do
        a=$(ms 1 2 1 "$folder/net.ini" "$folder/run") && b=$(ms 1 2 8 "$folder/net.ini" "$folder/run") &&
            c=$(ms 2 1 8 "$folder/net.ini" "$folder/run") || exit 1
        whole+=("$a") cut+=("$b") ranks+=("$c")
    done
    a=$(least "${whole[@]}") b=$(least "${cut[@]}") c=$(least "${ranks[@]}")
    printf '%-22s %10.2f %10.2f %10.2f %8.3f %8.3f %8s\n' "$name" "$a" "$b" "$c" "$(awk "BEGIN { print $a / $b }")" \
        "$(awk "BEGIN { print $b / $c }")" "$(waits "${ranks[-1]}" $((steps / 2)))"
done <<'END'
quickstart's convnet|filters = 16, 32, 64, 64\nstrides = 2, 1, 2, 2|64|400
ResNet-20|arch = resnet\ndepth = 20\nwidth = 16|64|32
MobileNet v1 0.25|arch = mobilenet_v1\nmultiplier = 0.25|64|200
END
