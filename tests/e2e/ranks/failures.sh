#!/usr/bin/env bash
# Ranks that die, hang, are slow, or have something else than the others. In each case all ranks end within 30 seconds
# with a message that names the one, and no checkpoint is lost: the run is resumed with 2 ranks, and its files are those
# of the run that nobody disturbed. `failures.sh 20`: killed at 20 random moments, not at 2.
set -u
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
. "$QAT_SOURCE_ROOT/tests/e2e/ranks/mpi.sh"
kills=${1:-2}

cat >net.ini <<'END'
[data]
kind = shapes
train_count = 160
test_count = 40
crop_pad = 2
flip = yes
[model]
filters = 16, 32
strides = 2, 2
[train]
steps = 60
batch = 16
shards = 4
eval_every = 10
checkpoint_every = 3
[quant]
enabled = yes
quant_delay = 10
bn_freeze_delay = 50
END
check "undisturbed" train 0 net.ini whole

resumed() { # resumed <what> <folder>: continued with 2 ranks, it is the whole run
    if [ -f "$2/last.ckpt" ]; then how=--resume; else how=--overwrite; fi
    check "$1: resumed with 2 ranks" train 2 net.ini "$2" $how
    same_run "$1" whole "$2"
}

# ---------------------------------------------------------------- dead
clock() { # milliseconds
    echo $(($(date +%s%N) / 1000000))
}

begin 4 net.ini killed
wait_for killed/log.csv
span=$(clock)
if wait "$launcher"; then ok "4 ranks"; else not_ok "4 ranks: $(cat begin_err.txt)"; fi
span=$(($(clock) - span + 1)) # of an undisturbed run, from its first row on
same_run "4 ranks" whole killed
rm -rf killed

# Trains until a random moment at which the ranks still run; pids are their processes then.
train_for_a_moment() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rm -rf killed
        begin 4 net.ini killed
        wait_for killed/log.csv
        moment=$((RANDOM % span))
        sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
        mapfile -t pids < <(ranks_of "$launcher")
        [ ${#pids[@]} != 4 ] || grep -q '^60,' killed/log.csv || return 0
        wait "$launcher"
    done
    return 1
}

RANDOM=1
for kill in $(seq "$kills"); do
    if ! train_for_a_moment; then
        not_ok "kill $kill: the ranks were faster ten times"
    elif [ $((kill % 3)) = 0 ]; then
        kill -KILL "${pids[@]}"
        ends_soon "kill $kill, of all ranks"
    else
        kill -KILL "${pids[$((RANDOM % ${#pids[@]}))]}"
        ends_soon "kill $kill, of one rank"
        has "kill $kill: it is named" 'rank [0-3].* exited on signal 9' begin_err.txt
    fi
    resumed "kill $kill" killed
    rm -rf killed
done

# ---------------------------------------------------------------- stopped for good
begin 4 net.ini stopped --set train.steps=100000 --rank-timeout 3
wait_for stopped/last.ckpt
mapfile -t pids < <(ranks_of "$launcher")
kill -STOP "${pids[2]}"
ends_soon "a rank that hangs"
has "a rank that hangs is named" "^rank [0-3] .*: rank [0-3] .*process ${pids[2]}.* has shown no sign of life for 3 seconds" begin_err.txt
check "its checkpoint is whole" "$tools/qat-inspect" stopped/last.ckpt

# ---------------------------------------------------------------- slow, but alive
begin 4 net.ini slow --rank-timeout 3
wait_for slow/last.ckpt
mapfile -t pids < <(ranks_of "$launcher")
if [ ${#pids[@]} = 4 ]; then
    kill -STOP "${pids[1]}"
    sleep 1.5
    kill -CONT "${pids[1]}"
fi
if wait "$launcher"; then ok "a rank that was stopped for a while"; else not_ok "a slow rank ends the run: $(cat begin_err.txt)"; fi
same_run "with a slow rank" whole slow

# ---------------------------------------------------------------- asked to stop: all after the same step
begin 4 net.ini asked --set train.steps=100000
wait_for asked/last.ckpt
kill -USR1 "$(pgrep -P "$launcher" | head -n 1)"
ends_soon "asked to stop"
has "asked to stop, with a checkpoint" '^stopped at step [0-9]+ of 100000' begin.txt

# ---------------------------------------------------------------- they disagree
apart() { # apart <what> <text> <how> <options of rank 1...>: it is refused, and nothing is lost
    what=$1 text=$2 how=$3
    shift 3
    before=$(cat whole/* | sha256sum)
    if timeout 30 mpirun -n 1 "$tools/qat-train" net.ini --out whole "$how" : \
        -n 1 "$tools/qat-train" net.ini --out whole "$how" "$@" >out.txt 2>err.txt; then
        not_ok "$what: it succeeds"
    else
        has "$what" "$text" err.txt
    fi
    if [ "$before" = "$(cat whole/* | sha256sum)" ]; then ok "$what: no file changed"; else
        not_ok "$what: files changed"
    fi
}
apart "another recipe" '^qat-train: rank 1 \(.*\) has another recipe than rank 0 \(.*\):' --overwrite --set train.lr=0.1
apart "another batch norm" '^qat-train: rank 1 .* has another recipe than rank 0' --overwrite --set train.sync_batch_norm=no
apart "other data" '^qat-train: rank 1 .* has another (recipe|training split) than rank 0' --overwrite --set data.train_count=176
check "the weights of rank 1" train 0 net.ini other --set train.seed=2 --set train.steps=3
apart "other weights" '^qat-train: rank 1 .* has another (recipe|network to begin with) than rank 0' --overwrite \
    --set train.init=other/last.ckpt
apart "a recipe that continues" '^qat-train: (rank 1 .*: )?.*it is not the same run' --resume --set train.lr=0.1
apart "a rank that fails" '^qat-train: rank 1 .*: .*nowhere' --overwrite --set data.kind=folder --set data.path=nowhere
exit $failed
