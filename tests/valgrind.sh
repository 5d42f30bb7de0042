#!/usr/bin/env bash
# valgrind.sh [BUILD]: a short training run under Valgrind's memcheck. It is quantized and has everything that
# allocates (augmentation, averages, a second epoch, evaluation, checkpoints, a resume). There may be no invalid
# access, no use of uninitialised memory, and no lost block. BUILD is a folder made by meson (build). There are no
# suppressions. Blocks that are still reachable at the end do not count: OpenBLAS and the C library keep
# buffers until the process ends.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# else qat-train would set it and begin anew, outside of Valgrind
export OPENBLAS_NUM_THREADS=1

train() {
    valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect "$build/tools/qat-train" recipes/quickstart.ini \
        --set data.train_count=64 --set data.test_count=20 --set train.batch=16 --set train.eval_batch=10 \
        --set model.filters=4,8 --set model.strides=2 --set model.dropout=0.1 --set data.crop_pad=2 \
        --set train.average_decay=0.9 --set quant.quant_delay=2 --set quant.bn_freeze_delay=6 \
        --set output.keep=2 --threads 2 --out "$work/run" "$@"
}
for fold in two_pass one_pass; do
    train --set quant.bn_fold=$fold --set train.epochs=2 --set train.checkpoint_every=3 --overwrite
    cp "$work/run/step-6.ckpt" "$work/run/last.ckpt"
    train --set quant.bn_fold=$fold --set train.epochs=2 --resume
done
echo "Valgrind: no error"
