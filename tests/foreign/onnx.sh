#!/usr/bin/env bash
# Networks from ONNX files: the tests of the ONNX project (Debian: libonnx-testdata), networks of torchvision, and what is
# refused. Python with torch, torchvision and onnx: PEERS_TORCH or PEERS_PYTHON.
set -u
compare=$(realpath "$1")
tools=${QAT_BUILD_ROOT:?}/tools
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
archive=${ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}

printf '[data]\nkind = shapes\ntrain_count = 20\ntest_count = 20\n[train]\nbatch = 4\n[model]\nonnx = none.onnx\n' >none.ini
if "$tools/qat-train" none.ini --dry-run 2>&1 | grep -q 'without protobuf-c'; then
    echo "SKIP onnx: this build has no protobuf-c (Debian: libprotobuf-c-dev, protobuf-c-compiler, libonnx-dev)"
    exit $failed
fi
refuses "no such file" 1 "none.onnx" "$tools/qat-train" none.ini --dry-run
printf 'no model' >none.onnx
refuses "not an ONNX file" 1 "not an ONNX file" "$tools/qat-train" none.ini --dry-run
refuses "a network's name beside a file" 2 "cannot be combined" "$tools/qat-train" none.ini --set model.arch=mlp --dry-run
refuses "a strange head" 2 "expected average, flatten, or a number" "$tools/qat-train" none.ini --set model.head=many --dry-run

# ---------------------------------------------------------------- the tests of the ONNX project
if [ -d "$archive" ]; then
    "$compare" "$archive"/*/* >nodes.txt 2>&1
    total=$(find "$archive" -name model.onnx | wc -l)
    good=$(grep -c '^ok ' nodes.txt) refused=$(grep -c '^refused ' nodes.txt) parsed=$(grep -c '^parsed ' nodes.txt)
    known=$(grep -c '^known ' nodes.txt) exact=$(grep -c '^exact ' nodes.txt)
    # Floats of 16 bits are float32 here; the archive has bfloat16 as integers.
    bad=$(grep '^differs ' nodes.txt | grep -vE ' test_cast(like)?_([A-Z]*_to_B?FLOAT16|BFLOAT16_to_FLOAT)')
    if [ $((good + known + refused + parsed + exact)) -ge $((total - 8)) ] && [ "$good" -ge 339 ] && [ "$known" -ge 45 ] && [ -z "$bad" ]; then
        ok "of $total models $good have the archive's answers within 1e-5, $exact quantized ones exactly, $known without data, $refused are refused, $parsed have nothing to compare"
    else
        not_ok "of $total models $good are right, $known without data, $refused refused, $parsed parsed: $bad"
    fi
    if [ "$exact" -ge 11 ]; then ok "quantized operators are exact: $(sed -n 's/^exact test_\([^ ]*\).*/\1/p' nodes.txt | tr '\n' ' ')"
    else not_ok "of the quantized operators $exact are exact"; fi
    float_only=$(grep '; no integers: ' nodes.txt) frozen=$(grep -c 'in integers 0 of' nodes.txt)
    if [ -z "$float_only" ] && [ "$frozen" -ge 300 ]; then ok "$frozen of them are frozen in both layouts, and the engine equals the exact evaluation"
    else not_ok "$frozen of them are frozen in both layouts; no integers: $float_only"; fi
    # The tests of networks that have no other operators than those that are taken: by operator, and the reason of each refusal.
    taken="Conv|ConvTranspose|Gemm|MatMul|BatchNormalization|Relu|Clip|LeakyRelu|PRelu|HardSwish|HardSigmoid|Sigmoid|Tanh|Softmax"
    taken="$taken|Add|Sub|Mul|Div|Neg|Concat|Split|Slice|Gather|Pad|MaxPool|AveragePool|GlobalAveragePool|GlobalMaxPool|ReduceMean"
    taken="$taken|Expand|Tile|DepthToSpace|SpaceToDepth|Flatten|Reshape|Transpose|Resize|Upsample|Squeeze|Unsqueeze|Dropout|Identity|Constant|QLinearConv|QLinearMatMul"
    taken="$taken|QLinearAdd|QuantizeLinear|DequantizeLinear"
    grep -E "^[a-z]* [^ ]* \[(($taken),)*($taken)\]" nodes.txt >taken.txt
    ok "of $(wc -l <taken.txt) tests of the operators that are taken $(grep -cE '^(ok|exact|known) ' taken.txt) are right, $(grep -c '^parsed ' taken.txt) have no tensors of numbers, $(grep -c '^refused ' taken.txt) are refused:"
    awk -F'[][]' '{ split($1, word, " "); n = split($2, ops, ","); for (i = 1; i <= n; i++) { all[ops[i]]++; count[ops[i], word[1]]++ } }
        END { for (op in all) printf "     %-20s %3d tests: %3d right, %3d parsed, %3d refused, %3d differ\n", op, all[op], count[op, "ok"] + count[op, "exact"] + count[op, "known"],
            count[op, "parsed"], count[op, "refused"], count[op, "differs"] }' taken.txt | sort
    sed -nE "s/^(refused|parsed) ([^ ]*) \[[^]]*\]: (.*model.onnx: )?(.*)/     \2: \4/p" taken.txt
    others=$(grep -E '^(refused|parsed) ' taken.txt | grep -vE "^parsed test_identity_(opt|sequence) ")
    if [ -z "$others" ]; then ok "no others are refused, or not compared"
    elif [ "$total" -ne 1072 ]; then ok "this is another archive than Debian 12's of 1072 models: it has others"
    else not_ok "others: $others"; fi
    if [ -d "$archive/node/test_identity_sequence" ]; then
        refuses "a network of sequences" 1 "is a sequence or an optional; data are tensors" "$tools/qat-import" "$archive/node/test_identity_sequence/model.onnx" m.qm
    fi
    mute=$(grep '^refused ' nodes.txt | grep -vE '^refused [^:]*: .{12}' | head -n 3)
    if [ -z "$mute" ]; then ok "each that is refused has a sentence"; else not_ok "without a sentence: $mute"; fi
else
    echo "SKIP onnx tests: no $archive (Debian: libonnx-testdata)"
fi

# ---------------------------------------------------------------- a list without a batch dimension, and volumes
if command -v python3 >/dev/null; then
    check "networks of lists, volumes and embeddings" python3 "$QAT_SOURCE_ROOT/tests/foreign/onnx_made.py" .
    for name in list volume; do
        printf '[data]\nkind = numbers\npath = numbers.csv\nvalue = value\nsplit = 0.8\n[model]\nonnx = %s.onnx\n[train]\nepochs = 3\nbatch = 8\nlr = 0.01\n[quant]\nenabled = yes\nquant_delay = 50%%\n[output]\ndir = %s\n' $name $name >$name.ini
        check "train a network of a $name" "$tools/qat-train" $name.ini
        check "export it" "$tools/qat-export" $name/last.ckpt $name.qm
        has "its answers are equal" 'bytes compared, 0 differing' out.txt
    done
    printf '[data]\nkind = numbers\npath = rows.csv\nvalue = value\nsplit = 0.8\nmean = 0\nstd = 1\n[model]\nonnx = rows.onnx\n[train]\nepochs = 20\nbatch = 8\nlr = 0.05\n[quant]\nenabled = yes\nquant_delay = 50%%\n' >rows.ini
    for how in 'layout=uint8' 'layout=int8' 'layout=int8 activation_bits=16 profile=tflite'; do
        sets=$(for key in $how; do printf ' --set quant.%s' "$key"; done)
        # shellcheck disable=SC2086
        check "train an embedding, $how" "$tools/qat-train" rows.ini --out rows.run $sets
        check "export it" "$tools/qat-export" rows.run/last.ckpt rows.qm
        has "its answers are equal" 'bytes compared, 0 differing' out.txt
        has "all of it is certified" 'certified against the checkpoint: 8 layers' out.txt
        rm -rf rows.run
    done
    check "train with 4 bits" "$tools/qat-train" rows.ini --out rows.run --set quant.activation_bits=4
    refuses "an embedding of more rows than codes" 1 "do not tell the rows of its table apart" "$tools/qat-export" rows.run/last.ckpt rows.qm
    check "train on normalised numbers" "$tools/qat-train" rows.ini --out normal.run --set data.mean=50 --set data.std=30
    refuses "numbers below 0" 1 "data.mean = 0 and data.std = 1" "$tools/qat-export" normal.run/last.ckpt rows.qm
else
    echo "SKIP networks of lists, volumes and embeddings: no python3"
fi

# ---------------------------------------------------------------- networks
for python in "${PEERS_TORCH:-}/bin/python" "${PEERS_PYTHON:-}" "${QAT_PYTHON:-}" python3; do
    [ -n "$python" ] && "$python" -c 'import torch, torchvision, onnx' 2>/dev/null && break
    python=
done
if [ -n "$python" ]; then
    "$python" "$QAT_SOURCE_ROOT/tests/foreign/onnx_networks.py" "$tools" "$compare" ${ONNX_NETWORKS:-resnet18 shufflenet_v2_x1_0} || failed=1
else
    echo "SKIP onnx networks: no Python with torch, torchvision and onnx (PEERS_TORCH names its environment)"
fi
exit $failed
