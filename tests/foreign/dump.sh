#!/usr/bin/env bash
# tools/dump_tensors.py beside qat-debug: TensorFlow Lite's and ONNX Runtime's tensors agree with a model's, layer by
# layer; and a bias that is changed in one layer of the .tflite file is found. Where Python has them:
#     PEERS_PYTHON=venv/bin/python meson test -C build dump
set -u
tools=${QAT_BUILD_ROOT:?}/tools
python=${PEERS_PYTHON:-python3}
dump=$QAT_SOURCE_ROOT/tools/dump_tensors.py
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
agree() { # agree <dump>: no layer of it is far from the model's
    check "qat-debug beside $1" "$tools/qat-debug" a.qm --data digits --against "$1" --csv "$1.csv"
    if grep -q "the other runtime" out.txt; then not_ok "$1: $(grep "the other runtime" out.txt)"; else ok "$1: every layer agrees"; fi
    has "$1: logits are compared" '^"logits",.*,0,-?[0-9.]+,[^,]*,""$' "$1.csv"
}

printf '[data]\nkind = digits\ntrain_count = 1000\ntest_count = 60\n[model]\nfilters = 6, 8, 8\nstrides = 2, 1, 2
[train]\nepochs = 3\nbatch = 20\nlr = 0.1\n[quant]\nenabled = yes\nquant_delay = 50%%\nema_decay = 0.9\n' >small.ini
check "a small run" "$tools/qat-train" small.ini --out run
check "its export" "$tools/qat-export" run/last.ckpt a.qm --profile tflite --samples 4
check "its inputs" "$tools/qat-eval" a.qm --data digits --dump-inputs inputs --samples 20
check "as .tflite" "$tools/qat-export" a.qm a.tflite
check "as .onnx" "$tools/qat-export" a.qm a.onnx

for kind in "tflite ai_edge_litert" "onnx onnxruntime"; do
    set -- $kind
    if ! "$python" -c "import $2" 2>/dev/null; then
        echo "SKIP tensors of a .$1 file: $python has no $2 (PEERS_PYTHON names another Python)"
        continue
    fi
    check "the dump of .$1" "$python" "$dump" "a.$1" inputs "of_$1"
    agree "of_$1"
done
[ -d of_tflite ] || exit $failed

cat >change.py <<'EOP'
import sys, numpy as np
from ai_edge_litert.interpreter import Interpreter
net = Interpreter("a.tflite")
of = {t["name"]: t for t in net.get_tensor_details()}
scale = lambda name: of[name]["quantization_parameters"]["scales"][0]
bias = net.get_tensor(of["conv2/bias_codes"]["index"])
changed = bias.copy()
changed[3] += round(30 * scale("conv2/relu/q") / scale("conv2/bias_codes"))
file = open("a.tflite", "rb").read()
assert file.count(bias.tobytes()) == 1
open("b.tflite", "wb").write(file.replace(bias.tobytes(), changed.tobytes()))
EOP
check "a bias is changed by 30 quanta" "$python" change.py
check "the dump of the changed file" "$python" "$dump" b.tflite inputs changed
check "qat-debug" "$tools/qat-debug" a.qm --data digits --against changed
has "names the layer first" '^  1. conv2: channel 3: the other runtime.s values are off by \+(29\.[5-9]|30\.[0-5]) quanta' out.txt
has "and says where they part" '^the other runtime and integer first differ, on its own inputs, in conv2$' out.txt
check_status() { "$python" "$dump" a.tflite run changed; }
refuses "a folder without samples" 1 "holds no 0.npy" check_status
exit $failed
