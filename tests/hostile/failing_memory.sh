#!/usr/bin/env bash
# failing_memory.sh MODULE: in every command each of the first allocations fails once. The command ends with 1 and
# a sentence, or does without the memory; it frees what it has, and leaves nothing behind.
set -u
module=$(realpath "$1")
build=${QAT_BUILD_ROOT:?}
tools=$build/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
case $(meson introspect "$build" --buildoptions | tr '}' '\n' | sed -n 's/.*"name": "b_sanitize", "value": "\([^"]*\)".*/\1/p') in
'' | none) ;;
*)
    echo "SKIP failing memory in commands: the sanitizers have an allocator of their own"
    exit 0
    ;;
esac
export OPENBLAS_NUM_THREADS=1 # the commands need not start themselves again
recipe=$QAT_SOURCE_ROOT/recipes/quickstart.ini
small="--set data.train_count=64 --set data.test_count=32 --set train.batch=16 --set model.filters=4,8
    --set model.strides=2 --set train.steps=2 --set quant.quant_delay=0"
tflite=$(find "$QAT_SOURCE_ROOT/tests/golden/data" -name '*.tflite' | sort | head -n 1)

each() { # each <what> <allocations> <command...>: with one failing allocation after the other
    what=$1 most=$2 bad=
    shift 2
    for ((n = 0; n < most; n++)); do
        rm -rf out && mkdir out
        FAIL_AT=$n LD_PRELOAD=$module timeout 100 "$@" >out.txt 2>err.txt
        status=$?
        if [ $status -gt 1 ]; then
            bad="status $status"
        elif grep -q '^blocks that were not freed' err.txt; then
            bad=$(grep '^blocks' err.txt)
        elif [ $status = 1 ] && ! grep -q '^qat-[a-z]*: .*memory' err.txt; then
            bad="no word about memory: $(tail -n 1 err.txt)"
        elif compgen -G 'out/*.tmp' >/dev/null; then
            bad="half written: $(echo out/*.tmp)"
        fi
        [ -z "$bad" ] || { not_ok "$what, allocation $n: $bad"; return; }
    done
    ok "$what: $most allocations failed once"
}

# shellcheck disable=SC2086
check "a checkpoint" "$tools/qat-train" "$recipe" $small --out good
check "a model" "$tools/qat-export" good/last.ckpt good.qm --samples 8
# shellcheck disable=SC2086
each "qat-train --dry-run" 24 "$tools/qat-train" "$recipe" $small --dry-run
# shellcheck disable=SC2086
each "qat-train" 24 "$tools/qat-train" "$recipe" $small --out out/run
if [ -e "$build/lib/board/libqat_board.a" ]; then
    # shellcheck disable=SC2086
    each "qat-train with event files" 24 "$tools/qat-train" "$recipe" $small --set output.tensorboard=yes --out out/run
fi
each "qat-export" 24 "$tools/qat-export" good/last.ckpt out/m.qm --samples 8
each "qat-import" 24 "$tools/qat-import" "$tflite" out/i.qm
each "qat-eval" 24 "$tools/qat-eval" good.qm --data digits --samples 8
each "qat-inspect" 24 "$tools/qat-inspect" good.qm
each "qat-inspect of a checkpoint" 24 "$tools/qat-inspect" good/last.ckpt
each "qat-bench" 24 "$tools/qat-bench" good.qm --runs 1
exit $failed
