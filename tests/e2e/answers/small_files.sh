#!/usr/bin/env bash
# Small .qm files: weights of few bits are packed, and --strip leaves out what running does not need. All of these
# files give the same answers. What fits into how many bytes is printed. Each check prints `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
recipes=${QAT_SOURCE_ROOT:?}/recipes
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

size() { # size <file>
    wc -c <"$1" | tr -d ' '
}

at_most() { # at_most <what> <number> <limit>: awk's arithmetic
    if awk "BEGIN {exit !(($2) <= ($3))}"; then ok "$1: $(awk "BEGIN {printf \"%.4g\", $2}"), at most $3"; else
        not_ok "$1: $(awk "BEGIN {print $2}"), wanted at most $3"
    fi
}

# ---------------------------------------------------------------- a small network for digits
train() { # train <folder> <options...>
    folder=$1
    shift
    check "training of $folder" "$tools/qat-train" "$recipes/quickstart.ini" --out "$folder" \
        --set data.train_count=320 --set data.test_count=100 --set train.epochs=2 --set train.batch=16 \
        --set model.filters=8,24,32 --set model.strides=2,1,2 "$@"
}

sed 's/^test_count = .*/test_count = 100/' "$recipes/quickstart.ini" >test.ini
answers() { # answers <.qm> <file>: of every picture
    "$tools/qat-eval" "$1" --recipe test.ini >"$2" 2>err.txt || not_ok "qat-eval of $1: $(tail -n 1 err.txt)"
}

for bits in 8 4 2; do
    train "w$bits" --set quant.weight_bits=$bits
    check "export of w$bits" "$tools/qat-export" "w$bits/last.ckpt" "w$bits.qm" --samples 20
    check "export of w$bits, not packed" "$tools/qat-export" "w$bits/last.ckpt" "plain$bits.qm" --samples 20 --pack no
    check "export of w$bits, stripped" "$tools/qat-export" "w$bits/last.ckpt" "small$bits.qm" --samples 20 --strip
    has "the output says what was left out" \
        "^small$bits.qm: [0-9]+ bytes, qm, without names, description, labels, test, scales$" out.txt
    check "w$bits.qm stripped" "$tools/qat-export" "w$bits.qm" "again$bits.qm" --strip
    same "a .qm becomes the same file" "small$bits.qm" "again$bits.qm"
    check "plain$bits.qm packed" "$tools/qat-export" "plain$bits.qm" "packed$bits.qm" --pack yes
    same "a .qm that is packed again is the first one" "w$bits.qm" "packed$bits.qm"
    check "w$bits.qm with records of a fixed length" "$tools/qat-export" "w$bits.qm" "fixed$bits.qm" --compact no
    has "the output says so" "^fixed$bits.qm: [0-9]+ bytes, qm, not compact$" out.txt
    check "and compact again" "$tools/qat-export" "fixed$bits.qm" "compact$bits.qm" --compact yes
    same "it is the first one" "w$bits.qm" "compact$bits.qm"
    for form in w plain small fixed; do answers "$form$bits.qm" "$form$bits.txt"; done
    same "w$bits: figures packed and not packed" "w$bits.txt" "plain$bits.txt"
    same "w$bits: figures compact and not compact" "w$bits.txt" "fixed$bits.txt"
    for form in w small; do grep '^quantized' "$form$bits.txt" >"$form$bits.figures"; done
    same "w$bits: the same figures stripped" "w$bits.figures" "small$bits.figures"
    echo "   $bits bits: $(size "plain$bits.qm") bytes, packed $(size "w$bits.qm"), stripped $(size "small$bits.qm"), not compact $(size "fixed$bits.qm")"
done
same "8 bits: nothing is packed" w8.qm plain8.qm
at_most "4 bits, stripped, KB" "$(size small4.qm) / 1024" 6

# ---------------------------------------------------------------- bits of single layers
check "qat-inspect of 4 bits" "$tools/qat-inspect" w4/last.ckpt
has "it says so" '^quantized: layout uint8, 4-bit weights, 8-bit activations$' out.txt
train mixed --set quant.weight_bits=8 --set 'quant.layer conv*.weight_bits=4' --set 'quant.layer conv1.weight_bits=3' --set 'quant.layer conv2.activation_bits=5'
check "qat-inspect of mixed bits" "$tools/qat-inspect" mixed/last.ckpt
has "it says which" '^quantized: layout uint8, weights of 3 to 8 bits, activations of 5 to 8 bits$' out.txt
train threes --set quant.weight_bits=8 --set 'quant.layer *.weight_bits=3'
check "qat-inspect of layers of 3 bits" "$tools/qat-inspect" threes/last.ckpt
has "it says so, whatever the settings of the others are" ', 3-bit weights, 8-bit activations$' out.txt

# ---------------------------------------------------------------- parts
for part in names description labels test scales; do
    check "--strip=$part" "$tools/qat-export" w4.qm part.qm --strip=$part
    has "--strip=$part: the output says so" "qm, without $part$" out.txt
    at_most "--strip=$part: bytes" "$(size part.qm)" "$(size w4.qm)"
done
check "two parts" "$tools/qat-export" w4.qm part.qm --strip=names,test --json
has "two parts: JSON" '"without": "names, test"' out.txt
refuses "an unknown part" 2 "expected names, description, labels, test or scales" \
    "$tools/qat-export" w4.qm part.qm --strip=names,colours
refuses "--pack maybe" 2 "expected yes or no" "$tools/qat-export" w4.qm part.qm --pack maybe
refuses "--strip of another format" 2 "are of the format qm" "$tools/qat-export" w4.qm part.onnx --strip
refuses "a .qm as a .qm" 2 "is a .qm already" "$tools/qat-export" w4.qm part.qm

# ---------------------------------------------------------------- where the bytes are
for file in w8 w4 w2 plain4 small4 fixed4; do
    check "qat-inspect $file.qm" "$tools/qat-inspect" $file.qm
    total=$(sed -n 's/^total  *//p' out.txt)
    if [ "$total" = "$(size $file.qm)" ]; then ok "its table adds up to the file's $total bytes"; else
        not_ok "$file.qm: the table says $total bytes, the file has $(size $file.qm)"
    fi
done
check "qat-inspect --json" "$tools/qat-inspect" w4.qm --json
has "JSON has the layers' bytes" '"file_bytes": \{"layers": \[' out.txt
has "JSON says how weights are packed" '"packing": 4, "listed": 0, "bytes_in_file": 3456' out.txt

# ---------------------------------------------------------------- ResNet-20, a step each
resnet() { # resnet <bits> <layout>: its .qm, and stripped
    printf '[data]\nkind = digits\nheight = 32\ntrain_count = 64\ntest_count = 8\n[model]\narch = resnet20
[train]\nsteps = 2\nbatch = 8\n[quant]\nenabled = yes\nlayout = %s\nquant_delay = 1\nweight_bits = %s\n' $2 $1 >resnet.ini
    check "ResNet-20, $2, $1 bits: a step" "$tools/qat-train" resnet.ini --out "resnet$1$2"
    check "its export" "$tools/qat-export" "resnet$1$2/last.ckpt" "resnet$1$2.qm" --samples 4
    check "its export, stripped" "$tools/qat-export" "resnet$1$2.qm" "short$1$2.qm" --strip
    echo "   ResNet-20, $2, $1 bits: $(size "resnet$1$2.qm") bytes, stripped $(size "short$1$2.qm")"
}
for layout in int8 uint8; do
    for bits in 8 4 2; do resnet $bits $layout; done
    at_most "ResNet-20, $layout, 4 bits: its part of the 8-bit file" "$(size resnet4$layout.qm) / $(size resnet8$layout.qm)" 0.53
    at_most "ResNet-20, $layout, 2 bits: its part of the 8-bit file" "$(size resnet2$layout.qm) / $(size resnet8$layout.qm)" 0.25
done
check "8 bits, int8, with records of a fixed length" "$tools/qat-export" resnet8int8.qm fixed.qm --compact no
listing() { # listing <.qm>: tensors and ops, but for sizes and the bytes of shifts
    "$tools/qat-inspect" "$1" | sed '1d; /^bytes of the file/,$d; /^as C source/,/^$/d; / int32 .*shift$/d'
    "$tools/qat-inspect" "$1" --tensor stage1/block1/conv1/weights/q --limit 0 # by the scales of channels
}
listing resnet8int8.qm >compact.txt
listing fixed.qm >fixed.txt
has "names are kept" " stage3/block3/conv2/bias_codes" compact.txt
same "the compact file keeps every name, scale and range" compact.txt fixed.txt

# ---------------------------------------------------------------- what was left out is not invented
ranges() { # ranges <.qm>: of the activations: type, shape, S, Z, range of four digits: S (q - Z) is rounded once more
    "$tools/qat-inspect" "$1" | awk '/^ops, in order/ {exit}
        $2 ~ /^(input|act|output)$/ {split($7, end, /[.][.]/); printf "%s %s %s %s %.4g..%.4g\n", $3, $4, $5, $6, end[1], end[2]}'
}
ranges resnet4int8.qm >ranges.txt
ranges short4int8.qm >stripped.txt
has "there are ranges" '^int8 1x32x32x16 [0-9.e-]+ -?[0-9]+ [0-9.e-]+[.][.][0-9.e-]+$' ranges.txt
same "the ranges of activations, computed of S and Z" ranges.txt stripped.txt
ranges resnet4uint8.qm >ranges.txt
ranges short4uint8.qm >stripped.txt
same "the same of layout uint8" ranges.txt stripped.txt
check "qat-inspect of a stripped .qm" "$tools/qat-inspect" short4int8.qm
has "weights have no scale" '^ +t[0-9]+ const +int8:4 +16x3x3x16 +- +0 - +[0-9]+  -$' out.txt
has "it has no description" '^no description$' out.txt
weights=$(sed -n 's/^ *\(t[0-9]*\) const *int8:4 .*/\1/p' out.txt | head -n 1)
check "its weights" "$tools/qat-inspect" short4int8.qm --tensor "$weights"
has "have codes, and no values" '^ +0 +-?[0-7] +-$' out.txt
check "its weights as JSON" "$tools/qat-inspect" short4int8.qm --tensor "$weights" --json
has "are null" '"scale": null, "zero_point": 0, "min": null, "max": null, .*"values": null}$' out.txt
refuses "an unknown tensor" 2 "names were left out (qat-export --strip)" "$tools/qat-inspect" short4int8.qm --tensor foo
check "its labels" "$tools/qat-inspect" short4int8.qm --labels
has "there are none" "the model has no labels" err.txt

# Writers of other tools' formats need the scales of the channels.
refuses "a stripped .qm as .tflite" 1 "short4int8.qm: cannot be written as .tflite: op 1: the scales of its weights were left out" "$tools/qat-export" short4int8.qm part.tflite
refuses "a stripped .qm as .onnx" 1 "short4int8.qm: op 1: the scales of its weights were left out" "$tools/qat-export" short4int8.qm part.onnx
refuses "qat-debug of a stripped .qm" 1 "short4int8.qm: op 1 of the model has weights without scales" "$tools/qat-debug" short4int8.qm --recipe resnet.ini
exit $failed
