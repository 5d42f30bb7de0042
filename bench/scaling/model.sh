#!/usr/bin/env bash
# How long a step takes on many ranks: a model, checked here and drawn for clusters.
#
#     bench/scaling/model.sh check [ROUNDS]
#
# ResNet-20 and MobileNet v1 0.25 on 1, 2 and 4 ranks of one thread: the time of a step as the model says and as it is,
# and their ratio. The exit status is 1 if one differs by more than 10 %.
#
#     bench/scaling/model.sh draw [OUT]
#
# ResNet-50 and MobileNet v1 on up to 1,024 ranks, each a machine like this one or SPEED times as fast, joined by 10 or
# 100 Gbit/s: a table, OUT.png and OUT.svg.
#
# The model adds up what is computed, how long ranks wait for the slowest, and what messages take. All three are measured
# without the steps that are checked: bench/scaling/apart.c trains ranks that send nothing, and lets them wait for each
# other or not; bench/scaling/exchanges.c times messages. For clusters two things are assumed: that all ranks are equally
# fast, so that none waits, and what messages take:
LATENCY_10=30e-6 MESSAGE_10=2e-6     # seconds, TCP over 10 Gbit/s Ethernet: of an exchange, of one more message
LATENCY_100=3e-6 MESSAGE_100=0.3e-6  # RDMA over 100 Gbit/s
SPEED=${SPEED:-16}                   # how many times as fast the faster machines compute: 2 or more
# Other programs should not run meanwhile. The build needs MPI; QAT_BUILD names another one than build.
set -u
cd "$(dirname "$0")/../.."
. bench/scaling/steps.sh
model="bench/scaling/model.awk"
[ -x "$build/bench/exchanges" ] || { echo "no $build/bench/exchanges: a build with MPI has it" >&2 && exit 1; }

value() { # value <name> [<file>]: of the JSON object in the file; exchanges.json
    sed -n "s/.*\"$1\": \([-+.0-9e]*\).*/\1/p" "${2:-$folder/exchanges.json}"
}

failed() { # failed <what> <file with its messages>
    tail -n 3 "$2" >&2
    echo "$1 failed" >&2
    exit 1
}

profile() { # profile <recipe> <options...>: what a step exchanges, to the file exchanged
    local recipe=$1
    shift
    QAT_RANKS_TIMELINE=$folder/line mpirun --bind-to none -n 2 "$tools/qat-train" "$recipe" --threads 1 --set train.shards=2 \
        --set train.log_every=1000 --out "$folder/profile" --overwrite --progress none "$@" >"$folder/said.txt" 2>&1 \
        </dev/null || failed "a run of 2 ranks" "$folder/said.txt"
    awk -f bench/scaling/profile.awk "$folder/line.0.csv" >"$folder/exchanged"
    [ -s "$folder/exchanged" ] || failed "the timeline" "$folder/line.0.csv"
}

exchanges() { # exchanges <ranks>: exchanges.json
    mpirun --bind-to none -n "$1" "$build/bench/exchanges" >"$folder/exchanges.json" 2>"$folder/said.txt" </dev/null ||
        failed exchanges "$folder/said.txt"
}

# ---------------------------------------------------------------- check

check_network() { # check_network <name> <lines of [model]> <steps>
    local apart together measured step i
    recipe "$2" 64 "$3" >"$folder/net.ini"
    profile "$folder/net.ini" --set train.steps=12 --set train.batch=64
    for ranks in 1 2 4; do
        apart=() together=() measured=()
        for i in $(seq "$rounds"); do
            "$build/bench/apart" "$folder/net.ini" $ranks train.shards=8 train.lr=1e-30 output.dir="$folder/apart" \
                >"$folder/apart.json" 2>"$folder/said.txt" || failed apart "$folder/said.txt"
            apart+=("$(value apart "$folder/apart.json")")
            together+=("$(value together "$folder/apart.json")")
            step=$(ms $ranks 1 8 "$folder/net.ini" "$folder/run") || exit 1
            measured+=("$step")
        done
        [ $ranks != 1 ] || echo '{"exchange": 0, "byte": 0}' >"$folder/exchanges.json"
        [ $ranks = 1 ] || exchanges $ranks
        awk -f $model -f <(cat <<'AWK'
            BEGIN {
                read_profile(file)
                messages = sums_of(ranks, exchange, byte) + gradients_of(ranks, exchange, byte, 0, 0, 0)
                said = 1000 * (together + messages)
                printf "%-18s %5d %10.1f %8.1f %9.2f %10.1f %10.1f %7.3f\n", name, ranks, 1000 * apart, 1000 * (together - apart), 1000 * messages, said, measured, said / measured
                exit !(said / measured <= 1.1 && said / measured >= 0.9)
            }
AWK
        ) -v file="$folder/exchanged" -v name="$1" -v ranks=$ranks -v apart="$(least "${apart[@]}")" \
            -v together="$(least "${together[@]}")" -v measured="$(least "${measured[@]}")" -v exchange="$(value exchange)" \
            -v byte="$(value byte)" || status=1
    done
}

check() {
    rounds=${1:-3} status=0
    printf '%-18s %5s %10s %8s %9s %10s %10s %7s\n' network ranks 'apart, ms' waiting messages 'model, ms' 'step, ms' ratio
    check_network ResNet-20 'arch = resnet
depth = 20
width = 16' 40
    check_network 'MobileNet v1 0.25' 'arch = mobilenet_v1
multiplier = 0.25' 120
    exit $status
}

# ---------------------------------------------------------------- draw

# describe <name> <lines of [model]>: appends to networks how long 32 pictures of 224 pixels take with all processors, and
# the file of what a step exchanges; once with batch norm of the whole batch, and once of each rank's part
describe() {
    local file ms sync
    recipe "$2" 32 2 | sed 's/^kind = shapes/&\nheight = 224\nwidth = 224/; s/^train_count = .*/train_count = 128/' >"$folder/net.ini"
    ms=$(ms 1 "$(nproc)" 1 "$folder/net.ini" "$folder/run") || exit 1
    for sync in yes no; do
        file=$folder/exchanged-$(wc -l <"$folder/networks")
        profile "$folder/net.ini" --set train.batch=4 --set train.sync_batch_norm=$sync
        cp "$folder/exchanged" "$file"
        echo "$1$([ $sync = yes ] || echo ', sync_batch_norm = no')|$ms|$file" >>"$folder/networks"
    done
}

draw() {
    out=${1:-runs/scaling}
    [ "$SPEED" -ge 2 ] || { echo "SPEED=$SPEED: expected 2 or more" >&2 && exit 2; }
    mkdir -p "$(dirname "$out")"
    : >"$folder/networks"
    exchanges 2
    describe 'ResNet-50' 'arch = resnet50'
    describe 'MobileNet v1' 'arch = mobilenet_v1
multiplier = 1'
    awk -f $model -f <(cat <<'AWK'
        function efficiency(ranks, computing, wire,    alone) {
            alone = step_of(1, computing, 0, 0, add, 1)
            return alone / step_of(ranks, computing, latency[wire] + (ranks - 2) * message[wire], 8 / (wire * 1e9), add, 1)
        }
        # what a step takes, milliseconds
        function parts_of(ranks, computing, wire,    exchange, byte) {
            exchange = latency[wire] + (ranks - 2) * message[wire]
            byte = 8 / (wire * 1e9)
            return sprintf("| %s | %d | %.0f | %.0f | %.0f | %.0f |\n", $1, wire, 1000 * computing, 1000 * sums_of(ranks, exchange, 0),
                1000 * sums_of(ranks, 0, byte), 1000 * gradients_of(ranks, exchange, byte, add, computing, 1))
        }
        BEGIN { FS = "|"; latency[10] = l10; latency[100] = l100; message[10] = m10; message[100] = m100 }
        {
            read_profile($3)
            total = 0
            for (i = 1; i <= buckets; i++) total += values[i]
            printf "%s: %.0f ms for 32 pictures of 224 pixels here; a step has %d exchanges for which all wait, and %.1f million gradients (of both passes of folding)\n", $1, $2, sums, total / 1e6
            for (fast = 1; fast <= speed; fast += speed - 1)
                for (wire = 10; wire <= 100; wire *= 10) {
                    curve = sprintf("%s, %d Gbit/s", $1, wire)
                    row = sprintf("| %s | %s | %d", $1, fast == 1 ? "this one" : fast " times as fast", wire)
                    for (ranks = 1; ranks <= 1024; ranks *= 2) {
                        e = efficiency(ranks, $2 / 1000 / fast, wire)
                        if (fast > 1) print ranks, 100 * e, curve >points
                        if (ranks == 2 || ranks == 8 || ranks == 32 || ranks == 128 || ranks == 1024) row = row sprintf(" | %5.1f %%", 100 * e)
                    }
                    rows = rows row " |\n"
                    if (fast > 1) parts = parts parts_of(1024, $2 / 1000 / fast, wire)
                }
        }
        END {
            printf "\n| network | machine | Gbit/s | 2 ranks | 8 | 32 | 128 | 1024 |\n|---|---|---|---|---|---|---|---|\n%s", rows
            printf "\n1024 ranks, %d times as fast, milliseconds\n| network | Gbit/s | computing | exchanges of sums | bytes of sums | gradients |\n|---|---|---|---|---|---|\n%s", speed, parts
        }
AWK
    ) -v add="$(value add)" -v speed="$SPEED" -v l10=$LATENCY_10 -v l100=$LATENCY_100 -v m10=$MESSAGE_10 -v m100=$MESSAGE_100 \
        -v points="$folder/points" "$folder/networks"
    "$build/bench/curves" "$out" "What ranks keep of their speed: 32 pictures a rank, machines $SPEED times as fast" ranks 'of the speed, %' --log-x <"$folder/points" &&
        echo "drawn: $out.png, $out.svg"
}

case ${1:-} in
check | draw) "$@" ;;
*)
    sed -n '2,12p' bench/scaling/model.sh
    exit 2
    ;;
esac
