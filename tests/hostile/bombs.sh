#!/usr/bin/env bash
# Small files that ask for much memory or much work. Each one is refused with a sentence, or it gives
# the right result; within 512 MiB and 5 seconds of processor time, also under the sanitizers. Each of
# the defaults QAT_DEFAULT_DATA_MEMORY, QI_DEFAULT_MEMORY and
# QI_DEFAULT_MACS is exceeded.
#   bombs.sh BOMBS     the program that writes the files and measures commands
set -u
bombs=$(realpath "$1")
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"
export OMP_NUM_THREADS=2

within() { # within <command...>: its exit status, or 99 if it took too much
    "$bombs" run 5 512 "$@"
}
limited() { # limited <what> <text> <command...>: refused with exit status 1 and a sentence, in time
    what=$1 text=$2
    shift 2
    refuses "$what" 1 "$text" within "$@"
}
data() { # data <name> <kind> <path> <settings...>: a recipe r.ini for this data
    printf '[data]\nkind = %s\npath = %s\n[model]\narch = mlp\nhidden = 8\n[train]\nbatch = 2\n[output]\ndir = run\n' "$1" "$2" >r.ini
}

check "write the files" "$bombs" write .
for f in weights.npz idx/train-images-idx3-ubyte.gz npy/train_x.npy.gz shared.qm constants.qm biases.qm work.qm; do
    ok "$f: $(stat -c %s "$f") bytes"
done

# ------------------------------------------------------------------ models
# 4,096 layers that share their weights: packed once, and right.
{ printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1024), }" && head -c 1024 /dev/zero; } >x.npy
check "4,096 layers with shared weights run" within "$tools/qat-run" shared.qm --input x.npy --output y.npy
check "constants that 860 tensors share are shown" within "$tools/qat-inspect" constants.qm
check "and their values" within "$tools/qat-inspect" constants.qm --tensor 5 --limit 3
limited "constants that overlap" "constants that overlap" "$tools/qat-inspect" overlap.qm
limited "2^50 comparisons" "one run takes 11" "$tools/qat-run" work.qm --input none.npy
has "the message names the flag" "--max-macs" err.txt
limited "2^50 comparisons, inspected" "--max-macs" "$tools/qat-inspect" work.qm
limited "2^50 comparisons, evaluated" "--max-macs" "$tools/qat-eval" work.qm --data digits
limited "2^50 comparisons, timed" "--max-macs" "$tools/qat-bench" work.qm --runs 1
limited "4,096 biases for the same weights" "biases for the same weights (index 256): 257" "$tools/qat-run" biases.qm --input none.npy
limited "layers with a clamp each need more than 4096 MiB" "4096 MiB are allowed (--max-memory" \
    "$tools/qat-run" clamps.qm --input none.npy
for t in "qat-run detector.qm --input none.npy" "qat-eval detector.qm --data digits" "qat-bench detector.qm" \
    "qat-inspect detector.qm"; do
    # shellcheck disable=SC2086
    limited "2^20 boxes: ${t%% *}" "choosing among 1048576 boxes takes up to 1099511627776 comparisons" "$tools/"$t
done
limited "2^18 boxes in 16 classes" "takes up to 1099511627776 comparisons" "$tools/qat-run" regular.qm --input none.npy
limited "2^28 scores, and 2 GiB allowed" "boxes takes 1033 MiB of memory, but 1000 MiB are allowed" \
    "$tools/qat-inspect" scores.qm --max-memory 1000
limited "a usual detector, and little allowed" "takes up to 17253000 comparisons, which count as 276048000 multiply-adds" \
    "$tools/qat-inspect" usual.qm --max-macs 10000000
check "a usual detector" within "$tools/qat-inspect" usual.qm --max-memory 5
limited "--max-memory" "but 1 MiB are allowed" "$tools/qat-inspect" shared.qm --max-memory 1
limited "--max-macs" "4294967296 multiply-adds, but 1000 are allowed" "$tools/qat-inspect" shared.qm --max-macs 1000

# ------------------------------------------------------------------ data
data idx idx
limited "IDX: 3 GiB in 3 MB" "data.memory allows 4096 MiB" "$tools/qat-train" r.ini
limited "IDX: --dry-run" "data.memory allows 4096 MiB" "$tools/qat-train" r.ini --dry-run
data idx longer
limited "IDX: longer than its header says" "larger than the 4194320 bytes allowed" "$tools/qat-train" r.ini
data idx lying
limited "IDX: longer than header and end say" "larger than the 4194320 bytes allowed" "$tools/qat-train" r.ini
data npy npy
limited ".npy.gz: 3 GiB in 3 MB" "but 4096 MiB are allowed (data.memory" "$tools/qat-train" r.ini
data npy short
limited ".npy.gz: longer than its header says" "larger than the 1048704 bytes allowed" "$tools/qat-train" r.ini
data cifar10 cifar
limited "CIFAR-10: 3 GiB in 3 MB" "data.memory allows 2048 MiB" "$tools/qat-train" r.ini --set data.memory=2048
data list list.txt.gz
limited "a list of 3 GiB" "larger than the 268435456 bytes allowed" "$tools/qat-train" r.ini
data coco coco
limited "COCO: 260 million objects in a small file" "data.memory allows 4096 MiB" \
    "$tools/qat-train" r.ini --set data.train_annotations=instances_train.json.gz
limited "COCO: 1000 MiB of spaces, and 500 allowed" "data.memory allows 500 MiB" \
    "$tools/qat-train" r.ini --set data.train_annotations=instances_val.json.gz --set data.memory=500
limited "COCO: 3 GiB of spaces, its end says 100 bytes, and 400 allowed" "data.memory allows 400 MiB" \
    "$tools/qat-train" r.ini --set data.train_annotations=lying.json.gz --set data.memory=400
data list small.txt.gz
limited "a list of 3 GiB, and 100 MiB allowed; its end says 100 bytes" "data.memory allows 100 MiB" \
    "$tools/qat-train" r.ini --set data.memory=100
limited "--max-memory takes the place of data.memory" "data.memory allows 100 MiB" \
    "$tools/qat-eval" shared.qm --data list:list.txt.gz --max-memory 100

# ------------------------------------------------------------------ networks
printf '[data]\nkind = digits\ntrain_count = 64\ntest_count = 16\n[model]\narch = mlp\nhidden = 1000\n[train]\nepochs = 1\nbatch = 8\n[quant]\nenabled = yes\nquant_delay = 0\n[output]\ndir = run\n' >r.ini
limited ".npz: 6 GiB in 6 MB" "MiB are allowed (data.memory)" "$tools/qat-train" r.ini --init weights.npz
limited ".npz: an array beyond LARGEST" "array 'a.npy': larger than the 2147483648 bytes allowed" \
    "$tools/qat-train" r.ini --init large.npz --set data.memory=16384
printf '[data]\nkind = digits\ntrain_count = 64\ntest_count = 16\n[model]\narch = layers\n[layer.a]\nop = flatten\n[layer.b]\nop = fully_connected\nunits = 1000000\n[layer.c]\nop = fully_connected\nunits = 2000\n[layer.d]\nop = fully_connected\nunits = 10\n[output]\ndir = large\n' >large.ini
limited "a network of 16 GB" "(--max-memory)" "$tools/qat-train" large.ini --max-memory 8192
limited "a network of 16 GB, --dry-run" "(--max-memory)" "$tools/qat-train" large.ini --max-memory 8192 --dry-run
check "a small run" "$tools/qat-train" r.ini
check "its checkpoint with a larger layer in its graph" "$bombs" graph run/last.ckpt bomb.ckpt 1000 1048576
for t in "qat-eval bomb.ckpt" "qat-export bomb.ckpt x.qm" "qat-bench bomb.ckpt" "qat-inspect bomb.ckpt"; do
    # shellcheck disable=SC2086
    limited "checkpoint: $t" "4096 MiB are allowed (--max-memory)" "$tools/"${t%% *} ${t#* }
done
for t in "qat-eval run/last.ckpt" "qat-export run/last.ckpt x.qm" "qat-bench run/last.ckpt" "qat-inspect run/last.ckpt"; do
    # shellcheck disable=SC2086
    limited "--max-macs: $t" "are allowed (--max-macs)" "$tools/"${t%% *} ${t#* } --max-macs 1000
done
limited "--max-memory: qat-eval" "but 1 MiB are allowed (--max-memory)" "$tools/qat-eval" run/last.ckpt --max-memory 1
limited "batches" "smaller batches or a larger data.memory" "$tools/qat-train" r.ini --set train.batch=400 \
    --set data.memory=1 --set data.train_count=800 --set output.dir=other
test ! -e other && ok "nothing was written" || not_ok "a refused run left its folder"
exit $failed
