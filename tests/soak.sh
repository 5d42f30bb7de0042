#!/usr/bin/env bash
# soak.sh [MINUTES] [BUILD]: trains for MINUTES (10) with the sanitizers of BUILD (build-sanitize, made by ./test.sh).
# For half of the time it is one process. For the other half it is stopped (SIGTERM) and resumed every few seconds.
# The script prints the resident memory over time. It fails if AddressSanitizer reports anything (leaks and undefined
# behaviour too), or if memory grows by more than 2 %: in the one process between a fifth of its time and the end, or
# between the first and the last of the short ones.
set -u
minutes=${1:-10}
cd "$(dirname "$0")/.." || exit 1
build=${2:-build-sanitize}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# The quarantine of freed blocks is kept small: it is memory that only the sanitizer holds.
export ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=1:handle_sigill=1
half=$((minutes * 30))
pid=

start() { # start <options...>
    "$build/tools/qat-train" recipes/quickstart.ini --set data.train_count=640 --set data.test_count=100 \
        --set train.batch=32 --set model.filters=8,16,16 --set model.strides=2,2,1 --set model.dropout=0.1 \
        --set data.crop_pad=2 --set train.average_decay=0.99 --set train.epochs=1000000 --set train.schedule=constant \
        --set quant.quant_delay=100 --set train.eval_every=200 --set train.log_every=200 \
        --set train.checkpoint_every=50 --set output.keep=2 --out "$work/run" "$@" >>"$work/out.txt" 2>"$work/err.txt" &
    pid=$!
}
rss() { # of the process, in kB
    awk '/^VmRSS/ { print $2 }' "/proc/$pid/status" 2>/dev/null
}
step() { awk -F, 'NR > 1 { s = $1 } END { print s + 0 }' "$work/run/times.csv" 2>/dev/null; }
stop() { # SIGTERM; the run must say that it stopped, and the sanitizers nothing
    kill -TERM $pid
    wait $pid
    status=$?
    if [ $status != 1 ] || [ -s "$work/err.txt" ]; then
        echo "not ok - status $status: $(head -n 20 "$work/err.txt")"
        exit 1
    fi
}

start
begin=$SECONDS
early=0 late=0 shown=-30
while [ $((SECONDS - begin)) -lt $half ]; do
    sleep 2
    now=$(rss) at=$((SECONDS - begin))
    [ -n "$now" ] || { wait $pid; echo "not ok - ended by itself: $(head -n 20 "$work/err.txt")"; exit 1; }
    if [ $at -ge $((half / 5)) ]; then
        [ $early = 0 ] && early=$now
        late=$now
    fi
    if [ $((at - shown)) -ge 30 ]; then
        echo "one process, $at s: step $(step), $now kB"
        shown=$at
    fi
done
stop
echo "one process: $early kB after $((half / 5)) s, $late kB after $half s, $(tail -n 1 "$work/out.txt")"
failed=0
[ "$late" -le $((early + early / 50)) ] || { echo "not ok - it grew"; failed=1; }

begin=$SECONDS
resumed=0 first=0 last=0
while [ $((SECONDS - begin)) -lt $half ]; do
    start --resume
    sleep $((3 + RANDOM % 5))
    last=$(rss)
    stop
    [ $resumed = 0 ] && first=$last
    resumed=$((resumed + 1))
    [ $((resumed % 5)) = 1 ] && echo "resumed $resumed times, $((SECONDS - begin)) s: step $(step), $last kB"
done
echo "resumed $resumed times: $first kB at the end of the first, $last kB of the last, $(tail -n 1 "$work/out.txt")"
[ "$last" -le $((first + first / 50)) ] || { echo "not ok - it grew"; failed=1; }
[ $failed = 0 ] && echo "ok - soak of $minutes minutes: no report of the sanitizers, no growth"
exit $failed
