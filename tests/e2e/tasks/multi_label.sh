#!/usr/bin/env bash
# Labels that may occur together, by the commands: the recipe, shortened, is trained, exported, and evaluated as
# checkpoint and as .qm. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

sed -E 's/^train_count.*/train_count = 1500/; s/^test_count.*/test_count = 200/; s/^epochs.*/epochs = 4/; s/^height.*/height = 32/; s/^dir.*/dir = run/' \
    "$QAT_SOURCE_ROOT/recipes/multi_label.ini" >labels.ini
check "training" "$tools/qat-train" labels.ini
has "its figures" '; 150 validation samples; mean AP: float [0-9.]+ %, on integers [0-9.]+ %' out.txt
check "export" "$tools/qat-export" run/last.ckpt a.qm --summary
has "every byte of the eval graph is the engine's" 'bytes compared, 0 differing' out.txt
has "it is certified" '^certified against the checkpoint: ' out.txt
judged_alike run/last.ckpt a.qm labels.ini
has "all figures" '^quantized +mean AP [0-9.]+ %  mean AUC [0-9.]+ %  mean F1 [0-9.]+ %' out.txt
exit $failed
