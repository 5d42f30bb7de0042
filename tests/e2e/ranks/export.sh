#!/usr/bin/env bash
# qat-export under mpirun: the ranks share the verification. The file, the figures and the certificate are those of one
# process, with 2, 3 and 5 ranks, with many samples and with fewer than ranks. What cannot be shared is refused.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/e2e/ranks/mpi.sh"
quick="--set data.train_count=200 --set data.test_count=$(sanitized 700 1300) --set train.steps=20 --set train.batch=10
    --set quant.quant_delay=5 --set model.filters=4,8 --set model.strides=2,2"
# shellcheck disable=SC2086
check "training" "$tools/qat-train" "$QAT_SOURCE_ROOT/recipes/quickstart.ini" $quick --out run

export_by() { # export_by <ranks> <output> <options...>: what it prints is in OUTPUT.txt
    n=$1 out=$2
    shift 2
    launch=()
    [ "$n" = 1 ] || launch=(mpirun -n "$n")
    check "$out: $n ranks" "${launch[@]}" "$tools/qat-export" run/last.ckpt same.qm --threads 1 "$@"
    mv same.qm "$out.qm"
    mv out.txt "$out.txt"
}
same_export() { # same_export <output> <output>
    same "$2: the same file" "$1.qm" "$2.qm"
    same "$2: the same figures" "$1.txt" "$2.txt"
}
export_by 1 alone
has "all samples were verified" "^verified +$(sanitized 700 1300) samples|$(sanitized 700 1300) samples" alone.txt
for ranks in 2 3 5; do
    export_by $ranks "by$ranks"
    same_export alone "by$ranks"
done
export_by 1 some --samples 410
export_by 2 some2 --samples 410
same_export some some2
export_by 1 few --samples 7
export_by 3 few3 --samples 7
same_export few few3
export_by 1 summary --summary --json
export_by 2 summary2 --summary --json
same_export summary summary2
check "one JSON object, with the figures of both networks" \
    python3 -c "import json; a = json.load(open('summary.txt')); assert {'top1', 'float_top1', 'qm_bytes'} <= a.keys(), a"

refuses "a .qm" 2 "and nothing else: start one" mpirun -n 2 "$tools/qat-export" alone.qm alone.c
refuses "a search for bits" 2 "a search runs in one process" mpirun -n 2 "$tools/qat-train" --budget --dry-run \
    "$QAT_SOURCE_ROOT/recipes/quickstart.ini" --init run/last.ckpt --set budget.flash=1M --out search
refuses "a recipe that does not fit has the status of one process" 2 "train.shards = 1, but there are 2 ranks" \
    mpirun -n 2 "$tools/qat-train" "$QAT_SOURCE_ROOT/recipes/quickstart.ini" --out none --set budget.flash=1000000
if [ "$(grep -c 'budget.flash has no effect' err.txt)" = 1 ]; then ok "one rank warns"; else not_ok "one rank warns"; fi
refuses "a checkpoint that is not there" 1 "none.ckpt" mpirun -n 2 "$tools/qat-export" none.ckpt x.qm
if mpirun -n 1 "$tools/qat-export" run/last.ckpt x.qm : -n 1 "$tools/qat-export" run/last.ckpt x.qm --profile tflite >out.txt 2>err.txt; then
    not_ok "ranks with other options: it succeeds"
else
    has "ranks with other options" "rank [01] has made another model than rank [01]: give all ranks the same" err.txt
fi
[ -e x.qm ] && not_ok "a file was written in spite of an error"
exit $failed
