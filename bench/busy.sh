#!/usr/bin/env bash
# Trains the small regression of bench/speed/busy.c with two threads while four processes keep the machine busy. Beside it:
# with one thread, which waits for nobody. Prints both times (the middle of several runs) and their ratio, which must
# be at most 1.5.
#
#     bench/busy.sh [ROUNDS]      default: 9
#
# QAT_REFERENCE names the folder of an older build, whose libqat has the threads of OpenMP (as libqat had before
# lib/infer/host/pool.c). Then that is compared, with OMP_WAIT_POLICY=passive. QAT_BUILD names another build than build.
# As root the script runs before the machine's other programs, in a session of its own, so that the four processes are
# all that disturbs it.
set -u
cd "$(dirname "$0")/.."
rounds=${1:-9}
build=${QAT_BUILD:-build}
steps=2000
if [ -z "${QAT_BUSY_SESSION:-}" ] && [ -w /proc/self/autogroup ]; then
    QAT_BUSY_SESSION=1 exec setsid -w "bench/${0##*/}" "$@"
fi
{ echo -20 >/proc/self/autogroup; } 2>/dev/null

busy=()
for _ in 1 2 3 4; do
    while :; do :; done &
    busy+=($!)
done
trap 'kill "${busy[@]}"' EXIT

seconds() { # seconds <threads>
    "$build/bench/busy" --threads "$1" --steps $steps | awk '{ print $1 }'
}
reference() {
    if [ -n "${QAT_REFERENCE:-}" ]; then
        LD_LIBRARY_PATH=$QAT_REFERENCE/lib:$QAT_REFERENCE/lib/infer OMP_WAIT_POLICY=passive seconds 2
    else
        seconds 1
    fi
}
middle() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

ours=() theirs=()
for ((i = 0; i < rounds; i++)); do
    ours+=("$(seconds 2)")
    theirs+=("$(reference)")
done
name="1 thread"
[ -z "${QAT_REFERENCE:-}" ] || name="OpenMP, passive, 2 threads"
awk -v a="$(printf '%s\n' "${ours[@]}" | middle)" -v b="$(printf '%s\n' "${theirs[@]}" | middle)" -v name="$name" 'BEGIN {
    kept = a > 0 && b > 0 && a <= 1.5 * b
    printf "2 threads: %.3f s; %s: %.3f s; ratio %.2f (at most 1.5): %s\n", a, name, b, (b > 0 ? a / b : 0), (kept ? "kept" : "BROKEN")
    exit !kept
}'
