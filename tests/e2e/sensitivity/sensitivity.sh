#!/usr/bin/env bash
# qat-debug --sensitivity: killed and taken up again it gives the table of one go; and the table, with its ranking, is
# that of changing each layer by hand (by_hand.c). Of a small run; or of the checkpoints that SENSITIVITY_RUNS names, with
# SENSITIVITY_SAMPLES samples (default 200). Each check prints one line, `ok -` or `not ok -`.
set -u
by_hand=$(realpath "$1")
tools=${QAT_BUILD_ROOT:?}/tools
runs=
for run in ${SENSITIVITY_RUNS:-}; do runs="$runs $(realpath "$run")"; done
samples=${SENSITIVITY_SAMPLES:-200}
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

if [ -z "$runs" ]; then
    printf '[data]\nkind = digits\ntrain_count = 400\ntest_count = 60\n[model]\nfilters = 4, 6, 6\nstrides = 2, 2, 1
[train]\nepochs = 2\nbatch = 20\nlr = 0.1\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9\n' >small.ini
    check "a run" "$tools/qat-train" small.ini --out run
    runs=run/last.ckpt samples=60
fi
for run in $runs; do
    sensitivity() { "$tools/qat-debug" "$run" --sensitivity "$1" --bits 4 --samples "$samples"; }
    rm -f killed.csv whole.csv
    sensitivity killed.csv >/dev/null 2>&1 &
    for _ in $(seq 60000); do [ "$(wc -l 2>/dev/null <killed.csv)" -ge 4 ] 2>/dev/null && break; sleep 0.01; done
    kill -KILL $! 2>/dev/null
    wait $! 2>/dev/null
    echo "killed with $(($(wc -l <killed.csv) - 2)) rows"
    check "$run: taken up again" sensitivity killed.csv
    cp out.txt killed.txt
    check "$run: in one go" sensitivity whole.csv
    same "$run: the same table" killed.csv whole.csv
    same "$run: the same text" killed.txt out.txt
    cat out.txt
    mapfile -t layers < <(sed '1,2d; s/,.*//' whole.csv)
    sed '1,2d' whole.csv >table.csv
    check "$run: ${#layers[@]} rows by hand" "$by_hand" "$run" 4 "$samples" "${layers[@]}"
    same "$run: every figure, and so the ranking, is that by hand" table.csv out.txt
done

# All settings count, however many there are.
sets=
for _ in $(seq 30); do sets="$sets --set quant.weight_bits=8"; done
calibrated() { # shellcheck disable=SC2086
    "$tools/qat-debug" "${runs%% *}" --sensitivity sets.csv --samples 20 --ptq digits --ptq-samples 20 $sets "$@"
}
if [ -z "${SENSITIVITY_RUNS:-}" ]; then
    check "many settings" calibrated --set quant.activation_bits=8
    refuses "another one at the end" 1 "is not a table of this checkpoint" calibrated --set quant.activation_bits=7
fi
exit $failed
