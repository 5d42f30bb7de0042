#!/usr/bin/env bash
# train.asynchronous: a server and its workers. With one worker nothing is stale, so the run is that of one process, to
# the last digit. With more it learns, says how stale gradients were, continues with another number of ranks, and ends
# when a process dies.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/e2e/ranks/mpi.sh"
cp "$QAT_SOURCE_ROOT/recipes/quickstart.ini" quickstart.ini
sed 's/^\[train\]/&\nasynchronous = yes/' quickstart.ini >asynchronous.ini
short='--set data.train_count=640 --set data.test_count=150 --set train.steps=40 --set train.batch=16
    --set train.eval_every=10 --set train.checkpoint_every=10 --set quant.quant_delay=15 --set quant.bn_freeze_delay=30'

# ---------------------------------------------------------------- one worker
alone() { # alone <case> <options...>: log.csv has the loss, gradients and figures of one process
    case=$1
    shift
    rm -rf one two
    # shellcheck disable=SC2086
    {
        check "$case: one process" train 0 quickstart.ini one $short "$@"
        check "$case: a server and a worker" train 2 asynchronous.ini two $short "$@"
    }
    if cmp one/log.csv two/log.csv; then ok "$case: the same log"; else not_ok "$case: another log"; fi
}
alone "two_pass"
alone "lsq" --set quant.ranges=lsq --set quant.learn_delay=25
alone "one_pass, on integers" --set quant.bn_fold=one_pass --set quant.forward=integer --set quant.quant_delay=0
alone "weights that freeze, averages" --set quant.layout=int8 --set quant.weight_bits=4 --set quant.freeze_threshold=0.02 \
    --set train.average_decay=0.9
alone "falling bits" --set quant.weight_bits=4 --set "quant.weight_bits_schedule=8 until 20"
has "one worker: it says so" '^asynchronous: rank 0 applies the gradients of one worker$' out.txt
has "one worker: nothing is left out" '^asynchronous: gradients were applied 0.00 steps after' out.txt
has_no() { # has_no <what> <pattern> <file>
    if grep -qE -- "$2" "$3"; then not_ok "$1: $(grep -E -- "$2" "$3")"; else ok "$1"; fi
}
has_no "one worker: it does not say that another run gives another result" 'another run|left out' out.txt

# ---------------------------------------------------------------- two workers learn
column() { # column <step> <column>: of the server's row in learns/ranks.csv
    awk -F, -v step="$1" -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i }
        $1 == step && $2 == 0 { print $at }' learns/ranks.csv
}
above() { # above <what> <figure> <bound>
    if awk "BEGIN { exit !($2 > $3) }"; then ok "$1: $2 > $3"; else not_ok "$1: $2 is not above $3"; fi
}
epochs=$(sanitized 1 8)
check "two workers" train 3 asynchronous.ini learns --set data.train_count=2400 --set data.test_count=500 \
    --set train.batch=40 --set "train.epochs=$epochs" --set "train.eval_every=$epochs epochs"
has "it says that it is not reproducible" '^asynchronous: rank 0 applies the gradients of 2 workers as they come' out.txt
has "it says how stale gradients were" '^asynchronous: gradients were applied [0-9.]+ steps after' out.txt
last=$((60 * epochs))
accuracy=$(awk -F, -v step=$last 'NR > 1 && $1 == step { print $7 }' learns/log.csv)
above "accuracy on integers" "${accuracy:-0}" "$(sanitized 5 75)"
above "mean staleness" "$(column $last mean_staleness)" 0.2
above "largest staleness" "$(column $last largest_staleness)" 0.5
if [ "$(column $last batches)" = $last ]; then ok "every batch is counted"; else
    not_ok "$(column $last batches) batches of $last"
fi
check "its checkpoint is evaluated" "$tools/qat-eval" learns/last.ckpt

# Each other worker computes with the bits of before when they fall.
# shellcheck disable=SC2086
check "bits that fall twice, three workers" train 4 asynchronous.ini falls $short --set quant.ranges=lsq --set quant.learn_delay=15 \
    --set quant.weight_bits=4 --set "quant.weight_bits_schedule=8 until 20, 6 until 30"
has "gradients with other bits are left out" '^asynchronous: gradients of 4 batches were left out, because the bits' out.txt

# ---------------------------------------------------------------- continued with another number of ranks
# shellcheck disable=SC2086
{
    begin 3 asynchronous.ini many $short --set train.lr=0.02 --set train.steps=400
    wait_for many/last.ckpt
    kill -USR1 "$(pgrep -P "$launcher" | head -n 1)"
    ends_soon "asked to stop"
    has "it stopped with a checkpoint" '^stopped at step [0-9]+ of 400' begin.txt
    stopped=$(sed -n 's/^stopped at step \([0-9]*\) .*/\1/p' begin.txt)
    check "resumed with 4 ranks" train 4 asynchronous.ini many $short --set train.lr=0.02 --set train.steps=400 --resume
    has "it continues" "^continuing at step ${stopped:-?} of 400" out.txt
}
for log in log ranks; do
    has "$log.csv goes on to the end" '^400,' many/$log.csv
done
if cut -d, -f1 many/log.csv | tail -n +2 | sort -cnu; then ok "no row is lost or twice"; else
    not_ok "rows of log.csv are out of order"
fi

# ---------------------------------------------------------------- a process dies
dies() { # dies <rank> <name>
    rm -rf dies
    # shellcheck disable=SC2086
    begin 3 asynchronous.ini dies $short --set train.lr=0.02 --set train.steps=100000
    wait_for dies/last.ckpt
    mapfile -t pids < <(ranks_of "$launcher")
    kill -KILL "${pids[$1]}"
    ends_soon "$2 is killed"
    has "$2 is named" "rank $1 .* exited on signal 9" begin_err.txt
    check "$2 is killed: the checkpoint is whole" "$tools/qat-inspect" dies/last.ckpt
}
dies 0 "the server"
dies 2 "a worker"
# shellcheck disable=SC2086
begin 3 asynchronous.ini hangs $short --set train.lr=0.02 --set train.steps=100000 --rank-timeout 3
wait_for hangs/last.ckpt
mapfile -t pids < <(ranks_of "$launcher")
kill -STOP "${pids[1]}"
ends_soon "a worker that hangs"
has "a worker that hangs is named" "process ${pids[1]}.* has shown no sign of life for 3 seconds" begin_err.txt

# ---------------------------------------------------------------- what cannot work
# shellcheck disable=SC2086
{
    refuses "one process" 2 "train.asynchronous = yes needs at least two processes" train 0 asynchronous.ini no $short
    refuses "more workers than batches" 2 "2 workers, but an epoch has 1 batch (train.batch = 400): start at most 2 processes" \
        train 3 asynchronous.ini no $short --set train.batch=400
    refuses "memory for messages" 1 "the network and the messages between the server and 2 workers need" train 3 \
        asynchronous.ini no $short --set model.filters=8,256,512 --set model.strides=2,2,2 --max-memory 82
    if [ -e no ]; then not_ok "a refused run leaves a folder"; else ok "a refused run leaves nothing"; fi
    # a worker may say so first, of its loss
    refuses "a parameter that is not finite" 1 "no checkpoint was written yet" train 3 asynchronous.ini infinite $short \
        --set train.lr=1e30
    refuses "shards" 2 "train.asynchronous = yes cannot be combined with train.shards = 2" train 0 asynchronous.ini no \
        $short --set train.shards=2
    refuses "a run that was not asynchronous" 2 "it is not the same run" train 3 asynchronous.ini one $short --resume
}
exit $failed
