#!/usr/bin/env bash
# The same bytes for every number of ranks: `mpirun -n N qat-train` against one process with as many shards. Networks
# of several kinds, layouts, folds, forwards, learned ranges. Without an argument a part of it is done in about a
# minute; `ranks.sh all` runs 1, 2, 3, 4 and 8 ranks with 1 and 2 threads for each of them.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/e2e/ranks/mpi.sh"
all=${1:-}

settings() { # settings <data> <model>: a recipe with shards
    printf '[data]\n%s\n[model]\n%s\n' "$1" "$2"
    cat <<'END'
[train]
steps = 6
batch = 16
shards = 8
eval_every = 3
log_every = 2
checkpoint_every = 3
eval_batch = 3
lr = 0.02
[quant]
enabled = yes
quant_delay = 2
END
}
pictures='kind = shapes
train_count = 64
test_count = 30
crop_pad = 2
flip = yes'
scenes='kind = scenes
height = 64
train_count = 32
test_count = 12
one_class = yes'
faces='kind = faces
height = 32
train_count = 32
test_count = 12'
cp "$QAT_SOURCE_ROOT/recipes/quickstart.ini" quickstart.ini
settings "$pictures" 'arch = resnet20' >resnet20.ini
settings "$pictures" $'arch = mobilenet_v1\nmultiplier = 0.125' >mobilenet.ini
settings "$scenes" $'arch = mobilenet_ssd\nmultiplier = 0.05' >detector.ini
printf '[detect]\nscore_threshold = 0.001\n' >>detector.ini
settings "$pictures" 'arch = resnet' >resnet.ini
settings "$faces" 'filters = 8, 12' >attributes.ini
settings "$pictures" '' | sed '/^\[model\]$/d' >layers.ini
cat "$QAT_SOURCE_ROOT/tests/e2e/data/every_layer.ini" >>layers.ini
short='--set data.train_count=64 --set data.test_count=150 --set train.steps=6 --set train.batch=16 --set train.shards=8
    --set train.eval_every=3 --set train.log_every=2 --set train.checkpoint_every=3 --set quant.quant_delay=2
    --set quant.bn_freeze_delay=5'
integers='--set quant.forward=integer --set quant.quant_delay=0'

compare() { # compare <name> <recipe> <ranks:threads...> -- <options...>
    name=$1 recipe=$2 how=
    shift 2
    while [ "$1" != -- ]; do
        how="$how $1"
        shift
    done
    shift
    [ -z "$all" ] || how="1:1 1:2 2:1 2:2 3:1 3:2 4:1 4:2 8:1 8:2"
    rm -rf one
    check "$name: one process" train 0 "$recipe" one --threads 2 "$@"
    for each in $how; do
        rm -rf many
        check "$name: ${each%:*} ranks, ${each#*:} threads" train "${each%:*}" "$recipe" many --threads "${each#*:}" "$@"
        same_run "$name: ${each%:*} ranks, ${each#*:} threads" one many
    done
}

# shellcheck disable=SC2086
{
    compare quickstart quickstart.ini 1:2 2:1 3:2 4:1 8:1 -- $short
    compare "one_pass, int8" quickstart.ini 2:2 3:1 -- $short --set quant.bn_fold=one_pass --set quant.layout=int8
    compare lsq quickstart.ini 2:1 -- $short --set quant.ranges=lsq --set quant.learn_delay=3
    compare "on integers" quickstart.ini 2:1 3:1 -- $short $integers
    compare "on integers, one_pass, int8" quickstart.ini 4:1 -- $short $integers --set quant.bn_fold=one_pass \
        --set quant.layout=int8
    compare "batch norm of each part" quickstart.ini 2:1 3:2 -- $short --set train.sync_batch_norm=no
    compare "batch norm of each part, on integers" quickstart.ini 3:1 -- $short $integers --set train.sync_batch_norm=no \
        --set quant.bn_fold=one_pass
    compare "in float" quickstart.ini 3:1 -- $short --set quant.enabled=no
    compare ResNet-20 resnet20.ini 2:1 --
    compare MobileNet mobilenet.ini 3:1 --
    compare detector detector.ini 2:1 3:1 --
    # shellcheck disable=SC2086
    compare "detector, on integers" detector.ini 3:2 -- $integers # losses that read codes
    compare attributes attributes.ini 4:1 --
    compare "every layer" layers.ini 2:1 --
}
if [ -n "$all" ]; then
    for network in resnet20 mobilenet detector attributes layers; do
        for layout in uint8 int8; do
            for fold in two_pass one_pass; do
                of_run="--set quant.layout=$layout --set quant.bn_fold=$fold"
                # shellcheck disable=SC2086
                compare "$network, $layout, $fold" $network.ini -- $of_run
                # shellcheck disable=SC2086
                compare "$network, $layout, $fold, on integers" $network.ini -- $of_run $integers
            done
        done
        compare "$network, lsq" $network.ini -- --set quant.ranges=lsq --set quant.learn_delay=3
    done
fi

# ---------------------------------------------------------------- bytes, as docs/scaling.md predicts them
# quickstart in float: batch norms of 16, 32, 64, 64 channels, 61050 parameters, one loss; what a row itself sends, 32
# bytes, is counted in the next one
sends() { # sends <what> <numbers besides gradients> <options...>: in the second step of two ranks
    what=$1 predicted=$((8 * 61050 / 2 + 8 * $2))
    shift 2
    # shellcheck disable=SC2086
    check "bytes, $what" train 2 quickstart.ini bytes --overwrite $short --set quant.enabled=no --set train.log_every=1 \
        --set train.steps=3 "$@"
    sent=$(sed -n 's/^2,[01],[0-9.]*,//p' bytes/ranks.csv | sort -u)
    if [ "$sent" = $((predicted + 32)) ]; then ok "$what: a step sends $predicted bytes"; else
        not_ok "$what: a step sends '$sent' bytes, predicted $predicted and 32"
    fi
}
moments=$((33 + 65 + 129 + 129))
sends "batch norm of the batch" $((2 * moments + 2 + 3))
sends "batch norm of each part" $((moments + 2 + 3)) --set train.sync_batch_norm=no

# ---------------------------------------------------------------- gradients travel while backward runs
# Sums of batch norm (channel 0) that begin and end while a bucket of gradients (channel 1) is on its way
wide="--set model.depth=20 --set model.width=32 --set train.steps=3"
# shellcheck disable=SC2086
QAT_RANKS_TIMELINE=line check "timeline" train 2 resnet.ini wide $wide
overlapped=$(awk -F, 'FNR == 1 { n = 0; next } $2 == 0 { begin[++n] = $3 }
    $2 == 1 { for (i = 1; i <= n; i++) if (begin[i] > $3 && begin[i] < $5) { found++; break } } END { print found + 0 }' line.*.csv)
if [ "$overlapped" -gt 0 ]; then ok "$overlapped buckets of gradients travelled while backward went on"; else
    not_ok "no bucket of gradients travelled while backward went on"
fi

# ---------------------------------------------------------------- shards count, and must suffice
fails() { # fails <what> <text> <command...>
    what=$1 text=$2
    shift 2
    if "$@" >out.txt 2>err.txt; then not_ok "$what: it succeeds"; else has "$what" "$text" err.txt; fi
}
# shellcheck disable=SC2086
{
    check "8 shards" train 0 quickstart.ini eight $short
    check "4 shards" train 0 quickstart.ini four $short --set train.shards=4
    fails "more ranks than shards" 'train.shards = 2, but there are 3 ranks' train 3 quickstart.ini few $short \
        --set train.shards=2
    fails "more shards than samples" 'train.shards=17: train.shards = 17 cannot be combined with train.batch = 16' \
        train 0 quickstart.ini too_many $short --set train.shards=17
}
if cmp -s eight/last.ckpt four/last.ckpt; then not_ok "another number gives other bits"; else
    ok "another number gives other bits"
fi
exit $failed
