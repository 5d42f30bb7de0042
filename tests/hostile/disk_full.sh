#!/usr/bin/env bash
# What happens if files cannot be written: on a full disk (a small tmpfs, if one can be mounted), and if files may not
# grow (ulimit -f, everywhere). The old checkpoint stays whole. Training continues with a warning, and writes again
# when there is room. It fails if there is no room at the end. The results are those of an undisturbed run.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
. "$QAT_SOURCE_ROOT/tests/common/checks.sh"

recipe=$QAT_SOURCE_ROOT/recipes/quickstart.ini
options="--set data.train_count=320 --set data.test_count=40 --set train.batch=16 --set model.filters=8,16
    --set model.strides=2 --set model.hidden=64 --set model.head=flatten --set train.steps=200
    --set quant.quant_delay=10 --set quant.range_log_every=1 --set train.log_every=1 --set train.eval_every=100 --set train.checkpoint_every=10"
events= # the event file, if this build writes one
if [ -e "$QAT_BUILD_ROOT/lib/board/libqat_board.a" ]; then
    options="$options --set output.tensorboard=yes"
    events=tensorboard/events.out.tfevents.0.qat
fi
# shellcheck disable=SC2086
run() { # run <folder> <options...>
    "$tools/qat-train" "$recipe" $options --out "$@"
}
limited() { # limited <run...>: with files of at most half a checkpoint
    (ulimit -f $((kilobytes / 2)) && run "$@")
}
# shellcheck disable=SC2086
start() { # start <folder> <options...>: in the background, into run.txt, run.err; sets pid
    "$tools/qat-train" "$recipe" $options --out "$@" >run.txt 2>run.err &
    pid=$!
}
wait_until() { # wait_until <command...>: it succeeds, or the run has ended
    until "$@" || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
}
has_rows() { # has_rows <folder> <rows>
    [ -f "$1/log.csv" ] && [ "$(wc -l <"$1/log.csv")" -gt "$2" ]
}
begin() { # begin <folder>: a run that is stopped after its first checkpoints
    start "$1"
    wait_until has_rows "$1" 25
    kill -TERM $pid
    wait $pid
    cp "$1/last.ckpt" "$(basename "$1").before"
}
ends_well() { # ends_well <folder>: the run in the background, which had warned
    if wait $pid; then ok "$1: the run ends well"; else not_ok "$1: $(tail -n 1 run.err)"; fi
    has "$1: it had warned" 'warning: step ' run.err
    same_run "$1: room again" "$1"
}
same_run() { # same_run <what> <folder>
    for file in last.ckpt best.ckpt log.csv quant.csv $events; do
        same "$1: $file is the undisturbed run's" whole/$file "$2/$file"
    done
}
whole_rows() { # whole_rows <folder>: its log.csv ends with a row, not inside of one
    if [ -z "$(tail -c 1 "$1/log.csv")" ]; then ok "$1: log.csv has whole rows"; else not_ok "$1: log.csv ends inside a row"; fi
}
no_temporaries() {
    if compgen -G "$1/*.tmp" >/dev/null; then not_ok "nothing half-written is left"; else
        ok "nothing half-written is left"
    fi
}

check "the undisturbed run" run whole
kilobytes=$(($(wc -c <whole/last.ckpt) / 1024))

# ---------------------------------------------------------------- files that may not grow
begin limit
refuses "a limit below the checkpoint's size, to the end" 1 "; the checkpoint of step " limited limit --resume
has "it warns while the run goes on" 'qat-train: warning: step [0-9]+: cannot write .*last\.ckpt: File too large; the checkpoint of step [0-9]+ stays: limit/last\.ckpt; training continues$' err.txt
same "the checkpoint from before" limit.before limit/last.ckpt
no_temporaries limit
whole_rows limit
check "resumed without the limit" run limit --resume
same_run "after a failed end" limit

if command -v prlimit >/dev/null 2>&1; then
    begin raised
    start raised --resume
    prlimit --pid $pid --fsize=$((kilobytes * 512)):
    wait_until grep -q 'warning: step' run.err
    prlimit --pid $pid --fsize=unlimited:
    ends_well raised
else
    echo "SKIP a limit that is raised meanwhile: no prlimit"
fi

# ---------------------------------------------------------------- a full disk
mkdir disk
if ! mount -t tmpfs -o size=$((8 * kilobytes))k tmpfs disk 2>/dev/null; then
    echo "SKIP a full disk: no tmpfs can be mounted here"
    exit $failed
fi
trap 'umount "$work/disk"; rm -rf "$work"' EXIT
begin disk/run
cat /dev/zero >disk/fill 2>/dev/null
refuses "a full disk, to the end" 1 "; the checkpoint of step " run disk/run --resume
has "it warns while the run goes on" 'qat-train: warning: step [0-9]+: .*: No space left on device; the checkpoint of step [0-9]+ stays: ' err.txt
same "the checkpoint from before" run.before disk/run/last.ckpt
no_temporaries disk/run
whole_rows disk/run
start disk/run --resume
wait_until grep -q 'warning: step' run.err
rm disk/fill
ends_well disk/run
exit $failed
