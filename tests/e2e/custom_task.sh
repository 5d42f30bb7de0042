#!/usr/bin/env bash
# A task from a plugin (examples/real_value.c), from training to a .qm's answers: its figures are columns of
# log.csv and decide about best.ckpt, and nothing goes without the plugin. One `ok -` or `not ok -` line a check.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
plugin=$QAT_BUILD_ROOT/examples/libreal_value.so
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"

cat >age.ini <<INI
[plugin]
path = $plugin
[data]
kind = faces
train_count = 200
test_count = 30
height = 32
[model]
arch = layers
[layer.conv1]
op = conv2d
filters = 6
kernel = 3
stride = 2
batch_norm = yes
activation = relu
[layer.pool]
op = global_average_pool
[layer.value]
op = fully_connected
units = 1
bias = yes
[train]
steps = 60
batch = 16
eval_every = 20
[quant]
enabled = yes
quant_delay = 20
[output]
dir = age
INI
check "a custom task trains" "$tools/qat-train" age.ini
has "its figure is printed without percent" 'test, RMSE: float [0-9.]+, on integers [0-9.]+  ' out.txt
has "and at the end" '; RMSE: float [0-9.]+, on integers [0-9.]+$' out.txt
has "its figures are columns" '^step,.*,train_accuracy,float_rmse,integer_rmse,simulated_rmse,gradient_norm$' age/log.csv
least=$(tail -n +2 age/log.csv | cut -d, -f 7 | grep . | sort -g | head -1)
check "its best checkpoint is inspected" "$tools/qat-inspect" age/best.ckpt --plugin "$plugin"
has "the least error is the best" "^float RMSE [0-9.]+, on integers RMSE $least(,|\$)" out.txt

check "it is exported" "$tools/qat-export" age/last.ckpt age.qm --plugin "$plugin" --summary
has "the table of both networks has no percent" '^RMSE +[0-9.]+ +[0-9.]+$' out.txt
"$tools/qat-eval" age.qm --recipe age.ini --plugin "$plugin" --json >eval.txt 2>&1
has "the model reaches what the log says" "\"rmse\": $(tail -1 age/log.csv | cut -d, -f 7)," eval.txt
"$tools/qat-eval" age/last.ckpt --plugin "$plugin" --json >exact.txt 2>&1
has "the exact evaluation too" "\"rmse\": $(tail -1 age/log.csv | cut -d, -f 7)," exact.txt
check "inputs are written" "$tools/qat-eval" age.qm --recipe age.ini --dump-inputs in --samples 1 --plugin "$plugin"
"$tools/qat-run" age.qm --input in/0.npy --plugin "$plugin" >run.txt 2>&1
has "qat-run prints its answer" '^in/0.npy: value [0-9.]+$' run.txt
"$tools/qat-run" age.qm --input in/0.npy --plugin "$plugin" --json >json.txt 2>&1
has "and as JSON" '^{"input": "in/0.npy", "value": [0-9.]+}$' json.txt

cp -r age again
check "a finished run is resumed" "$tools/qat-train" age.ini --out again --resume
same "and stays as it was" age/last.ckpt again/last.ckpt
refuses "without the plugin" 1 libreal_value.so "$tools/qat-eval" age/last.ckpt
refuses "other data" 1 "samples without a value, but the network answers one" \
    "$tools/qat-eval" age/last.ckpt --plugin "$plugin" --data shapes

# A table that lacks something is refused when the plugin is opened.
sed '/^    \.answer = answer,/d' "${QAT_SOURCE_ROOT:?}/examples/real_value.c" >mute.c
"${CC:-cc}" -std=c11 -w -shared -fPIC -I "$QAT_SOURCE_ROOT/include" mute.c -o libmute.so
refuses "a task without answers" 2 "plugin ./libmute.so: task real_value: no answer" \
    "$tools/qat-train" age.ini --set plugin.path=./libmute.so --out mute
exit $failed
