#!/usr/bin/env bash
# A network for real numbers by the commands: it is trained on .npy arrays, exported with its mean and std, and
# evaluated and run without its recipe. Each check prints one line, `ok -` or `not ok -`.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

npy() { # npy <file> <dtype> <shape> <bytes as octal escapes>
    text="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    printf '\223NUMPY\001\000\166\000%-117s\n' "$text" >"$1"
    printf "$4" >>"$1"
}
bytes() { # bytes <N> <awk expression of i>: so many bytes as octal escapes
    awk "BEGIN { for (i = 0; i < $1; i++) printf \"\\\\%03o\", ($2) % 256 }"
}
mkdir -p signals # class 1 lies above 40, class 0 below: behind mean 40 and std 4 easy to tell
npy signals/train_x.npy '|i1' '64, 8' "$(bytes 512 '35 + 10 * (int(i / 8) % 2) + (i * 7) % 3')"
npy signals/train_y.npy '|u1' '64,' "$(bytes 64 'i % 2')"
cp signals/train_x.npy signals/test_x.npy
cp signals/train_y.npy signals/test_y.npy
cat >signals.ini <<EOF
[data]
kind = npy
path = $work/signals
mean = 40
std = 4
[model]
arch = mlp
hidden = 4
[train]
epochs = 30
batch = 16
lr = 0.02
[quant]
enabled = yes
EOF
check "training on real numbers" "$tools/qat-train" signals.ini --out signals/run
check "export of that" "$tools/qat-export" signals/run/last.ckpt signals.qm
check "its checkpoint's accuracy" "$tools/qat-eval" signals/run/last.ckpt
has "its checkpoint tells the classes apart" '^quantized +top-1 100.00 %' out.txt
check "its .qm's accuracy, without a recipe" "$tools/qat-eval" signals.qm --data "npy:$work/signals"
has "its .qm tells them apart too: it knows mean and std" '^quantized +top-1 100.00 %' out.txt
check "inspect says how" "$tools/qat-inspect" signals.qm
has "inspect: mean and std" '^input: real numbers in 1 channels, .* mean 40, std 4$' out.txt
sed 's/std = 4/std = 5/' signals.ini >other.ini
refuses "a recipe that normalises otherwise" 2 "other.ini: data.std is 5 in channel 0, but the network was made with 4" \
    "$tools/qat-eval" signals.qm --recipe other.ini
refuses "the same for the checkpoint" 2 "data.std is 5" "$tools/qat-eval" signals/run/last.ckpt --recipe other.ini
# 45 is 0x42340000
npy real.npy '<f4' '1, 1, 8, 1' "$(awk 'BEGIN { for (i = 0; i < 8; i++) printf "\\000\\000\\064\\102" }')"
check "run on real numbers" "$tools/qat-run" signals.qm --input real.npy
has "45 is of class 1" '^real.npy: 1 ' out.txt

# the same with 16-bit activations
printf 'layout = int8\nprofile = tflite\nactivation_bits = 16\n' >>signals.ini
check "training with 16-bit activations" "$tools/qat-train" signals.ini --out signals/wide
check "export of that too" "$tools/qat-export" signals/wide/last.ckpt wide.qm
check "its accuracy" "$tools/qat-eval" wide.qm --data "npy:$work/signals"
has "it tells them apart" '^quantized +top-1 100.00 %' out.txt
check "run on real numbers, with 16-bit codes" "$tools/qat-run" wide.qm --input real.npy
has "45 is of class 1 there too" '^real.npy: 1 ' out.txt
exit $failed
