#!/usr/bin/env bash
# Regression by the commands: the recipe, shortened, is trained, exported, evaluated as checkpoint and as .qm, and a
# signal is answered. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

sed -E 's/^train_count.*/train_count = 4000/; s/^test_count.*/test_count = 400/; s/^epochs.*/epochs = 4/; s/^dir.*/dir = run/' \
    "$QAT_SOURCE_ROOT/recipes/regression.ini" >tones.ini
check "training" "$tools/qat-train" tones.ini
has "its figures" '; 400 validation samples; R2: float [0-9.]+, on integers [0-9.]+' out.txt
check "export" "$tools/qat-export" run/last.ckpt a.qm --summary
has "every byte of the eval graph is the engine's" 'bytes compared, 0 differing' out.txt
has "it is certified" '^certified against the checkpoint: ' out.txt
judged_alike run/last.ckpt a.qm tones.ini
has "it hears the tones" '^quantized +R2 0[.][5-9]' out.txt
printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 96, 1), }" >silence.npy
head -c 384 /dev/zero >>silence.npy
check "an answer" "$tools/qat-run" a.qm --input silence.npy
has "is two frequencies" '^silence.npy: values [0-9.-]+ [0-9.-]+$' out.txt
exit $failed
