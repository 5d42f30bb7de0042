#!/usr/bin/env bash
# Rehearses a run on ImageNet: a drawn set of its shape (1,000 classes, 100,000 pictures of 256 pixels, 2.4 GB of shards)
# is trained on by recipes/paper/mobilenet_imagenet.ini for some steps. Printed are the time of a step, the memory, the
# rate of data, and what the whole protocol would take: days and cost, on one machine and on several.
# Usage: bench/imagenet/rehearse.sh [OUT] [qat-train's options...]
#   STEPS=100        steps that are timed            PICTURES=100000  of the drawn set
#   MEMORY=512M      data.memory                     THREADS          threads of the network (default: all processors)
#   READERS=2        threads that decode             PRICE=1.00       of an hour of such a machine, in any currency
#   MACHINES="2 4 8 16 50"                           EFFICIENCY=0.9   what several machines keep of their speed
#   DATA=FOLDER      packed data to use instead of the drawn set (qat-data pack makes them)
set -eu
cd "$(dirname "$0")/../.."
tools=${QAT_TOOLS:-build/tools}
out=runs/rehearsal
[ $# = 0 ] || [ "${1#-}" != "$1" ] || { out=$1 && shift; }
steps=${STEPS:-100} memory=${MEMORY:-512M} readers=${READERS:-2} threads=${THREADS:-$(nproc)}
data=${DATA:-$out/data}
recipe=recipes/paper/mobilenet_imagenet.ini
mkdir -p "$out"

if [ ! -e "$data/val-000000.tar" ] || [ -e "$data/PACKING" ]; then
    "$tools/qat-data" pack patterns "$data" --quality 90 --set "data.train_count=${PICTURES:-100000}" --set data.test_count=1000
fi
"$tools/qat-data" list "$data"

# run <steps> <name>: trains, and sets `seconds` and `peak` (the most KiB that were resident)
run() {
    n=$1 name=$2
    shift 2
    start=$(date +%s.%N)
    "$tools/qat-train" "$recipe" --threads "$threads" --out "$out/$name" --overwrite --set data.kind=tar \
        --set "data.path=$data" --set data.classes=0 --set "data.memory=$memory" --set "data.threads=$readers" \
        --set data.check=no --set "train.steps=$n" --set train.eval_every=never --set data.test_count=32 "$@" \
        >"$out/$name.txt" 2>&1 &
    pid=$!
    peak=0
    while now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$pid/status 2>/dev/null) && [ -n "$now" ]; do
        peak=$now
        sleep 0.1
    done
    wait $pid || { tail -n 5 "$out/$name.txt" && exit 1; }
    seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
}
short=$((steps / 10 + 1))
run "$short" begin "$@" # what is not a step: indexing, planning, the evaluation, the checkpoint
begin=$seconds
run "$((steps + short))" steps "$@"
batch=$(sed -n 's/^batch = //p' "$recipe")
for option in "$@"; do
    case $option in train.batch=*) batch=${option#*=} ;; esac
done
total=$(sed -n 's/^steps = //p' "$recipe")
rate=$("$tools/qat-data" check "$data" --only test --jobs "$readers" | sed -n 's/.*, \([0-9]*\) pictures\/s.*/\1/p')
bytes=$("$tools/qat-data" list "$data" --only train | sed -n 's/^training: .* bytes, \([0-9]*\) a picture/\1/p')
awk -v begin="$begin" -v all="$seconds" -v steps="$steps" -v batch="$batch" -v total="$total" -v peak="$peak" \
    -v rate="$rate" -v bytes="$bytes" -v price="${PRICE:-1.00}" -v machines="${MACHINES:-2 4 8 16 50}" \
    -v efficiency="${EFFICIENCY:-0.9}" -v readers="$readers" '
    BEGIN {
        step = (all - begin) / steps
        printf "\na step: %.3f s, %.1f pictures/s (%d steps of %d pictures)\n", step, batch / step, steps, batch
        printf "memory: %.0f MiB resident at most\n", peak / 1024
        printf "data: %.2f MB/s are read; %d threads decode %d pictures/s, %.1f times what a step needs\n",
            batch / step * bytes / 1e6, readers, rate, rate * step / batch
        days = total * step / 86400
        printf "the protocol: %d steps\n| machines | days | cost |\n|---|---|---|\n", total
        printf "| 1 | %.1f | %.0f |\n", days, days * 24 * price
        count = split(machines, n, " ")
        for (i = 1; i <= count; i++)
            printf "| %d | %.1f | %.0f |\n", n[i], days / (n[i] * efficiency), days * 24 * price / efficiency
        printf "(each of several machines keeps %.0f %% of its speed; a price of %s an hour)\n", 100 * efficiency, price
    }'
