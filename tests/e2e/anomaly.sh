#!/usr/bin/env bash
# Anomalies by the commands: the recipe, shortened, is trained, resumed, exported, evaluated as checkpoint and as .qm
# alone, and one picture is answered. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

count=$(sanitized 2000 12000)
sed -E "s/^train_count.*/train_count = $count/; s/^test_count.*/test_count = 400/; s/^epochs.*/epochs = $(sanitized 3 6)/; s/^dir.*/dir = run/" \
    "$QAT_SOURCE_ROOT/recipes/anomaly.ini" >zeros.ini
check "training" "$tools/qat-train" zeros.ini
has "a row's figure" '  validation, AUC: float [0-9.]+ %, on integers [0-9.]+ %' out.txt
has "its figures" "; $((count / 10)) validation samples; AUC: float [0-9.]+ %, on integers [0-9.]+ %\$" out.txt
has "log.csv's columns" ',train_accuracy,float_auc,integer_auc,simulated_auc,gradient_norm$' run/log.csv
best=$(tail -n +2 run/log.csv | cut -d, -f 7 | grep . | sort -g | tail -1)
check "the best checkpoint" "$tools/qat-inspect" run/best.ckpt
has "has the greatest AUC" "on integers AUC $(printf %.2f "$best") %" out.txt
if awk -v auc="$best" 'BEGIN { exit !(auc > '$(sanitized 0 58)') }'; then ok "anomalies are told: $best %"; else not_ok "AUC $best %"; fi

cp -r run again
check "a finished run is resumed" "$tools/qat-train" zeros.ini --out again --resume
same "and stays as it was" run/last.ckpt again/last.ckpt

check "export" "$tools/qat-export" run/last.ckpt a.qm --summary
has "the table of both networks" '^AUC +[0-9.]+ % +[0-9.]+ %$' out.txt
has "every byte of the eval graph is the engine's" 'bytes compared, 0 differing' out.txt
has "it is certified" '^certified against the checkpoint: ' out.txt
check "inspect the .qm" "$tools/qat-inspect" a.qm
has "its epilogue" '^epilogue, computed outside the engine: anomaly of t[0-9]+,t[0-9]+: the mean of 784 squares$' out.txt
judged_alike run/last.ckpt a.qm zeros.ini
check "the test split, which the run did not see" "$tools/qat-eval" a.qm --recipe zeros.ini
has "has samples of its own" '^quantized +AUC [0-9.]+ %  [(]400 samples[)]$' out.txt
check "the .qm alone" "$tools/qat-eval" a.qm --data digits --samples 100
has "is judged" '^quantized +AUC [0-9.]+ %  [(]100 samples[)]$' out.txt

check "inputs are written" "$tools/qat-eval" a.qm --recipe zeros.ini --dump-inputs in --samples 1
check "an answer" "$tools/qat-run" a.qm --input in/0.npy
has "is a score" '^in/0.npy: score [0-9.e-]+$' out.txt
check "as JSON" "$tools/qat-run" a.qm --input in/0.npy --json
has "is a number" '^\{"input": "in/0.npy", "score": [0-9.e-]+\}$' out.txt

refuses "--top of a score" 2 "an autoencoder answers one score" "$tools/qat-run" a.qm --input in/0.npy --top 3
refuses "attributes" 1 "samples without a class, but the network tells class 0 from the others" \
    "$tools/qat-eval" run/last.ckpt --data faces --samples 1
refuses "data without classes" 2 "model.task = anomaly, but samples of faces/train have no class" \
    "$tools/qat-train" zeros.ini --set data.kind=faces --out none
exit $failed
