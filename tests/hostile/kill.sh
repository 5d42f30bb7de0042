#!/usr/bin/env bash
# kill.sh [KILLS] [SEED]: a training run is killed (kill -9) at KILLS random moments (5), every third of
# them inside the writing of a checkpoint, and resumed each time. Then
#   - every checkpoint that lies there after a kill can be read: last, best, step-N;
#   - the run's last and best checkpoints, log.csv, quant.csv and event file equal an uninterrupted run's, byte for byte.
# A run that ends before all kills are used up is followed by another one. Also with QAT_KILLS in the
# environment. Prints what happened.
set -u
kills=${1:-${QAT_KILLS:-5}}
seed=${2:-$$}
RANDOM=$seed
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

# A checkpoint after each step: a good part of the time is spent in writing them.
recipe="--set data.train_count=320 --set data.test_count=40 --set train.batch=16 --set model.filters=8,16
    --set model.strides=2 --set model.hidden=256,128 --set model.head=flatten --set train.steps=120
    --set quant.quant_delay=10 --set quant.range_log_every=5 --set train.log_every=5 --set train.eval_every=30 --set train.checkpoint_every=1
    --set output.keep=3 --set data.crop_pad=2 --set model.dropout=0.1"
run() { # run <folder> <options...>
    folder=$1
    shift
    # shellcheck disable=SC2086
    exec "$tools/qat-train" "$QAT_SOURCE_ROOT/recipes/quickstart.ini" $recipe --out "$folder" "$@"
}
events= folder_of_events= # event files, if this build writes them
if [ -e "$QAT_BUILD_ROOT/lib/board/libqat_board.a" ]; then
    recipe="$recipe --set output.tensorboard=yes"
    events=tensorboard/events.out.tfevents.0.qat folder_of_events="tensorboard "
fi
now() { date +%s%N; }

begin=$(now)
(run whole) >out.txt 2>&1 || { cat out.txt; not_ok "the uninterrupted run"; exit 1; }
length=$((($(now) - begin) / 1000000))
size=$(wc -c <whole/last.ckpt)
echo "the uninterrupted run: $length ms, checkpoints of $size bytes; seed of the moments $seed"

killed=0 writing=0 unreadable=0 rounds=0 read=0
readable() { # every checkpoint of the folder
    for file in killed/*.ckpt; do
        [ -e "$file" ] || continue
        read=$((read + 1))
        "$tools/qat-inspect" "$file" >/dev/null 2>inspect.txt && continue
        unreadable=$((unreadable + 1))
        not_ok "kill $killed: $(head -n 1 inspect.txt)"
    done
}
wait_for_writing() {
    while kill -0 $pid 2>/dev/null; do
        compgen -G 'killed/*.tmp' >/dev/null && return
    done
}
while [ $killed -lt "$kills" ]; do
    rm -rf killed
    rounds=$((rounds + 1))
    how=
    while true; do
        # shellcheck disable=SC2086
        (run killed $how --threads $((1 + RANDOM % 2))) >run.txt 2>&1 &
        pid=$!
        if [ $killed -lt "$kills" ]; then
            sleep "$(awk "BEGIN { print $RANDOM / 32768 * (0.05 + 2 * $length / 1000 / ($kills < 8 ? 8 : $kills)) }")"
            [ $((killed % 3)) = 2 ] && wait_for_writing
            kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
        fi
        wait $pid 2>/dev/null
        status=$?
        [ $status = 137 ] || break
        ls killed/*.tmp >/dev/null 2>&1 && writing=$((writing + 1))
        readable
        how=$([ -e killed/last.ckpt ] && echo --resume)
    done
    if [ $status != 0 ]; then
        not_ok "a run ended with status $status: $(tail -n 1 run.txt)"
        break
    fi
    for file in last.ckpt best.ckpt log.csv quant.csv step-118.ckpt step-119.ckpt step-120.ckpt $events; do
        same "round $rounds, $killed kills so far: $file is the uninterrupted run's" whole/$file killed/$file
    done
    kept=$(cd killed && echo *)
    if [ "$kept" = "best.ckpt last.ckpt log.csv quant.csv step-118.ckpt step-119.ckpt step-120.ckpt ${folder_of_events}times.csv" ]; then
        ok "nothing else is left"
    else
        not_ok "left: $kept"
    fi
done
echo "$killed kills in $rounds runs, $writing inside the writing of a checkpoint; $read checkpoints read, $unreadable unreadable"
exit $failed
