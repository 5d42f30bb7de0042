#!/usr/bin/env bash
# The same seed gives the same bytes. Checkpoints after 200 steps are compared whole (cmp): with 1, 2 and 4 compute
# threads, with 1 and 3 loader threads, with different moments of saving, and after a run that was stopped several
# times and resumed with other numbers of threads. This is done with forward simulated and with forward on integers.
# The network (data/every_layer.ini) has every kind of layer that sums: convolutions, depthwise, a residual add, a
# product, batch norm of its own, concatenation, pooling, fully connected, dropout. The data are augmented and
# shuffled. Quantization begins at step 20, and batch norm is frozen at step 150.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

cat >net.ini <<'END'
[data]
kind = shapes
train_count = 300
test_count = 60
crop_pad = 2
flip = yes
brightness = 0.2
contrast = 0.2
saturation = 0.2
[train]
steps = 200
batch = 24
lr = 0.05
eval_every = 50
log_every = 10
checkpoint_every = 50
[quant]
enabled = yes
quant_delay = 20
bn_freeze_delay = 150
END
cat "$QAT_SOURCE_ROOT/tests/e2e/data/every_layer.ini" >>net.ini
train() { # train <folder> <options...>
    folder=$1
    shift
    "$tools/qat-train" net.ini --out "$folder" "$@"
}

for fold in two_pass one_pass; do
    for layout in uint8 int8; do
        run=$fold-$layout
        of_run="--set quant.bn_fold=$fold --set quant.layout=$layout"
        for threads in 1 2 4; do
            # shellcheck disable=SC2086
            check "$run, $threads threads" train $run-$threads $of_run --threads $threads \
                --set data.threads=$((threads == 4 ? 3 : 1)) --set train.checkpoint_every=$((threads * 30))
        done
        for threads in 2 4; do
            for file in last.ckpt best.ckpt log.csv; do
                same "$run: $file of $threads threads is that of 1" $run-1/$file $run-$threads/$file
            done
        done
    done
done
if cmp -s two_pass-uint8-1/last.ckpt one_pass-uint8-1/last.ckpt; then
    not_ok "two_pass and one_pass differ"
else
    ok "two_pass and one_pass differ"
fi
check "another seed" train other --set train.seed=2
if cmp -s two_pass-uint8-1/last.ckpt other/last.ckpt; then not_ok "it differs"; else ok "it differs"; fi

# ---------------------------------------------------------------- stopped and resumed, on other threads
stop_at() { # stop_at <row> <options...>: SIGTERM when log.csv has so many rows
    rows=$1
    shift
    "$tools/qat-train" net.ini --out parts "$@" >parts.txt 2>&1 &
    pid=$!
    for _ in $(seq 1200); do
        [ -f parts/log.csv ] && [ "$(wc -l <parts/log.csv)" -gt "$rows" ] && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.02
    done
    kill -TERM $pid
    wait $pid
}
until_stopped() { # until_stopped <command...>: again where the run was over before the signal came (a busy machine)
    for _ in 1 2 3 4 5 6; do
        rm -rf parts
        "$@"
        grep -q '^stopped at step' parts.txt && break
    done
}
stop_twice() {
    stop_at 3 --threads 1
    stop_at 8 --threads 4 --resume
}
until_stopped stop_twice
has "stopped before its end" '^stopped at step [0-9]+ of 200' parts.txt
check "resumed" train parts --threads 2 --resume --set data.threads=2 --set data.prefetch=1
for file in last.ckpt best.ckpt log.csv; do
    same "$file of a run stopped twice" two_pass-uint8-1/$file parts/$file
done

# ---------------------------------------------------------------- forward on integers, from the first step on
integers="--set quant.forward=integer --set quant.quant_delay=0"
for threads in 1 2; do
    # shellcheck disable=SC2086
    check "forward on integers, $threads threads" train integer-$threads $integers --threads $threads
done
# shellcheck disable=SC2086
until_stopped stop_at 3 $integers --threads 2
has "stopped on integers" '^stopped at step [0-9]+ of 200' parts.txt
# shellcheck disable=SC2086
check "resumed on integers" train parts $integers --threads 1 --resume
for file in last.ckpt best.ckpt log.csv; do
    same "forward on integers: $file of 2 threads is that of 1" integer-1/$file integer-2/$file
    same "forward on integers: $file of a run that was stopped" integer-1/$file parts/$file
done
exit $failed
