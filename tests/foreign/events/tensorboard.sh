#!/usr/bin/env bash
# Event files of runs (output.tensorboard) as TensorBoard reads them: scalars beside log.csv, histograms, pictures,
# the graph, the settings and figures of its HPARAMS page. PEERS_PYTHON names a Python with tensorboard.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
python=${PEERS_PYTHON:-python3}
if [ ! -e "$QAT_BUILD_ROOT/lib/board/libqat_board.a" ]; then
    echo "SKIP event files: this build has no protobuf-c"
    exit 0
fi
if ! "$python" -c 'import tensorboard, numpy' 2>/dev/null; then
    echo "SKIP event files in TensorBoard: $python has none (PEERS_PYTHON names another Python)"
    exit 0
fi
train() { # train <name> <recipe> <settings...>: a short run with event files
    name=$1 recipe=$QAT_SOURCE_ROOT/recipes/$2.ini sets=()
    shift 2
    for s in output.tensorboard=yes train.epochs=1 train.steps=6 train.log_every=2 train.eval_every=3 "$@"; do
        sets+=(--set "$s")
    done
    check "$name: it trains" "$tools/qat-train" "$recipe" --out "runs/$name" "${sets[@]}"
}
small=(data.train_count=64 data.test_count=32 train.batch=16)
train quickstart quickstart "${small[@]}" quant.quant_delay=3
train channels quickstart "${small[@]}" quant.quant_delay=0 quant.layout=int8 train.lr=0.02 train.average_decay=0.9
train floats quickstart "${small[@]}" quant.enabled=no train.optimizer=adam
train faces faces "${small[@]}" quant.quant_delay=3
train boxes multi_label data.train_count=16 data.test_count=8 train.batch=4 data.presence=no model.arch=mobilenet_ssd
train words keyword_gru "${small[@]}" quant.quant_delay=3
train values regression "${small[@]}" data.train_count=160 quant.quant_delay=3
train labels multi_label "${small[@]}" data.train_count=160 quant.quant_delay=3
train pixels segmentation "${small[@]}" quant.quant_delay=3
"$python" "$QAT_SOURCE_ROOT/tests/foreign/events/read_events.py" runs 2>err.txt || {
    not_ok "TensorBoard reads all of them"
    tail -n 5 err.txt
}
exit $failed
