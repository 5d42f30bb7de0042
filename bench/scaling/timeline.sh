#!/usr/bin/env bash
# Draws the exchanges of one training step of several ranks, a line for each rank and kind:
#
#     sums        batch norm, losses: all ranks wait for them
#     gradients   buckets on their way: - while the rank computes, = while it only waits
#
#     bench/scaling/timeline.sh RECIPE RANKS [--set SECTION.KEY=VALUE]...
#
# The step before the last one of 6 is drawn, from its first exchange to the last. QAT_BUILD names another build than
# build.
set -u
cd "$(dirname "$0")/../.."
[ $# -ge 2 ] || { sed -n '2,10p' "bench/scaling/${0##*/}" && exit 2; }
. bench/scaling/steps.sh
recipe=$1 ranks=$2
shift 2
QAT_RANKS_TIMELINE=$folder/line mpirun --bind-to none -n "$ranks" "$tools/qat-train" "$recipe" --threads 1 \
    --set train.shards="$ranks" --set train.steps=6 --set train.eval_every=1000000 --set train.checkpoint_every=1000000 \
    --progress none --out "$folder/run" "$@" >"$folder/out.txt" 2>&1 || { tail -n 3 "$folder/out.txt" && exit 1; }
# A step ends with the sum of counts (24 bytes to each other rank), after which forward begins.
awk -F, -v ranks="$ranks" '
    FNR == 1 { file++; steps = 0; next }
    $2 == 0 && $6 == 24 * (ranks - 1) { if (++steps == 4) from = from && from < $5 ? from : $5; if (steps == 5) to = $5 > to ? $5 : to }
    { n++; rank[n] = $1; channel[n] = $2; begin[n] = $3; wait[n] = $4 == "" ? $5 : $4; end[n] = $5 }
    function draw(line, a, b, mark, k) {
        for (k = at(a); k <= at(b) && k < width; k++) if (k >= 0) cell[line, k] = mark
    }
    function at(time) { return int((time - from) / (to - from) * width) }
    END {
        width = 100
        printf "%.1f ms\n", 1000 * (to - from)
        for (i = 1; i <= n; i++) {
            if (end[i] < from || begin[i] > to) continue
            line = rank[i] (channel[i] == 0 ? " sums" : " gradients")
            if (channel[i] > 0) draw(line, begin[i], wait[i], "-")
            draw(line, wait[i], end[i], "=")
        }
        for (r = 0; r < ranks; r++)
            for (c = 0; c < 2; c++) {
                line = r (c ? " gradients" : " sums")
                printf "rank %-12s |", line
                for (k = 0; k < width; k++) printf "%s", (line, k) in cell ? cell[line, k] : " "
                print "|"
            }
    }' "$folder"/line.*.csv
