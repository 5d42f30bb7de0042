#!/usr/bin/env bash
# Optimizers, averages and a teacher by the commands. A run that was killed and resumed equals an uninterrupted one.
# Models are made of the averages. A student needs its teacher for training, but not for export.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

cat >small.ini <<'INI'
[data]
kind = digits
train_count = 320
test_count = 100
[model]
filters = 4, 8
[train]
epochs = 12
batch = 16
log_every = 1
checkpoint_every = 7
[quant]
enabled = yes
quant_delay = 20%
INI
train() { # train <folder> <options...>
    folder=$1
    shift
    "$tools/qat-train" small.ini --out "$folder" "$@"
}
wait_for_rows() { # wait_for_rows <file> <rows>
    for _ in $(seq 600); do
        [ -f "$1" ] && [ "$(wc -l <"$1")" -gt "$2" ] && return
        sleep 0.02
    done
}
model_of() { # the model of a run, less its path and its checkpoint's digest
    "$tools/qat-export" "$1/last.ckpt" "$1.qm" --samples 20 >export.txt 2>&1 || return 1
    "$tools/qat-inspect" "$1.qm" --json | sed 's/"path"[^,]*//; s/"checkpoint"[^,]*//'
}

# ---------------------------------------------------------------- killed and resumed
killed_equals_whole() { # killed_equals_whole <name> <options...>
    name=$1
    shift
    check "$name" train "$name" "$@"
    "$tools/qat-train" small.ini --out "$name-killed" "$@" >/dev/null 2>&1 &
    pid=$!
    wait_for_rows "$name-killed/log.csv" 40
    kill -KILL $pid
    wait $pid 2>/dev/null
    if [ "$(wc -l <"$name-killed/log.csv")" -lt 241 ]; then ok "$name: killed"; else not_ok "$name: killed"; fi
    check "$name: resumed" train "$name-killed" "$@" --resume --threads 1
    for file in log.csv last.ckpt best.ckpt; do
        same "$name: $file after SIGKILL and --resume" "$name/$file" "$name-killed/$file"
    done
}
killed_equals_whole sgd --set train.nesterov=yes --set train.clip_norm=1
killed_equals_whole adam --set train.optimizer=adam --set train.lr=0.003 --set train.clip_value=0.1
killed_equals_whole adamw --set train.optimizer=adamw --set train.lr=0.003 --set train.average_decay=0.99
killed_equals_whole rmsprop --set train.optimizer=rmsprop --set train.lr=0.02 \
    --set train.average_decay=0.9999 --set train.average_ramp=yes --set train.schedule=exponential
killed_equals_whole adagrad --set train.optimizer=adagrad --set train.schedule=polynomial

# ---------------------------------------------------------------- averages
check "eval of averages" "$tools/qat-eval" adamw/last.ckpt --json
mv out.txt averaged.txt
check "eval of the last step's parameters" "$tools/qat-eval" adamw/last.ckpt --json --raw-params
if cmp -s out.txt averaged.txt; then not_ok "they are not the same"; else ok "they are not the same"; fi
logged=$(tail -n 1 adamw/log.csv | cut -d, -f6)
has "the log's float accuracy is the averages'" \
    "\"float_top1\": $(awk "BEGIN { printf \"%.6g\", $logged / 100 }")," averaged.txt
check "a model of the last step's parameters" "$tools/qat-export" adamw/last.ckpt raw.qm --raw-params
"$tools/qat-inspect" raw.qm --json | sed 's/"path"[^,]*//; s/"checkpoint"[^,]*//' >raw.json
model_of adamw >averaged.json
if cmp -s raw.json averaged.json; then not_ok "it is another model"; else ok "it is another model"; fi
for tool in "qat-eval sgd/last.ckpt" "qat-export sgd/last.ckpt x.qm"; do
    # shellcheck disable=SC2086
    refuses "${tool%% *} --raw-params without averages" 2 "sgd/last.ckpt: --raw-params: this run did not average its parameters" \
        "$tools"/$tool --raw-params
done
refuses "eval of a .qm's raw parameters" 2 "--raw-params works with checkpoints only" "$tools/qat-eval" raw.qm --data digits --raw-params

# ---------------------------------------------------------------- a teacher
check "a teacher" train teacher --set quant.enabled=no --set model.filters=8,16
killed_equals_whole student --set distill.teacher=teacher/last.ckpt --set distill.weight=0.7
refuses "a student with another teacher" 2 "was started with a distill.teacher other than sgd/last.ckpt" train student --resume \
    --set distill.teacher=sgd/last.ckpt --set distill.weight=0.7
refuses "a student without its teacher" 2 "was started with a distill.teacher" train student --resume --set distill.weight=0.7
cp teacher/last.ckpt teacher.ckpt
refuses "a student in its teacher's place" 1 "distill.teacher = teacher/last.ckpt is a checkpoint in teacher, which --overwrite would remove" \
    train teacher --overwrite --set distill.teacher=teacher/last.ckpt
ln -s teacher/best.ckpt linked.ckpt
refuses "a run in place of the weights that it begins with" 1 "train.init = linked.ckpt is a checkpoint in $PWD/teacher," \
    train "$PWD/teacher" --overwrite --init linked.ckpt
same "they stay" teacher.ckpt teacher/last.ckpt
mkdir begun
cp teacher.ckpt begun/first.ckpt
check "a file that is no run's checkpoint may lie there" train begun --overwrite --init begun/first.ckpt \
    --set model.filters=8,16 --set train.epochs=1
mv teacher gone
check "a student is exported without its teacher" "$tools/qat-export" student/last.ckpt s.qm --samples 20
refuses "a teacher that is not there" 1 "teacher/last.ckpt" train s2 --set distill.teacher=teacher/last.ckpt
check "its file may move" train student --resume --set distill.teacher=gone/last.ckpt --set distill.weight=0.7
refuses "settings that exclude each other" 2 "--set train.nesterov=yes: train.nesterov = yes cannot be combined with train.optimizer = adam" \
    train s3 --set train.nesterov=yes --set train.optimizer=adam
exit $failed
