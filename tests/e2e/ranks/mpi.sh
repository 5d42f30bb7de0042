# Sourced by the tests of several ranks, behind checks.sh: how to start them, or a reason to skip.
tools=${QAT_BUILD_ROOT:?}/tools
if ! command -v mpirun >/dev/null 2>&1 || ! ldd "$tools/qat-train" | grep -q libmpi; then
    echo "SKIP ranks: no mpirun, or a build without MPI (Debian: libopenmpi-dev, openmpi-bin)"
    exit "$failed"
fi
# Tests may run as root, on machines with fewer processors than ranks.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1
# Open MPI itself does not free all that it takes.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

train() { # train <ranks> <recipe> <folder> <options...>; 0 ranks: without mpirun
    ranks=$1 recipe=$2 folder=$3
    shift 3
    if [ "$ranks" = 0 ]; then
        "$tools/qat-train" "$recipe" --out "$folder" --progress plain "$@"
    else
        mpirun -n "$ranks" "$tools/qat-train" "$recipe" --out "$folder" --progress plain "$@"
    fi
}
same_run() { # same_run <what> <folder> <folder>: checkpoints and log
    for file in last.ckpt best.ckpt log.csv; do
        cmp -s "$2/$file" "$3/$file" || {
            not_ok "$1: $(cmp "$2/$file" "$3/$file" 2>&1)"
            return
        }
    done
    ok "$1: last.ckpt, best.ckpt and log.csv are the same"
}

# ---------------------------------------------------------------- ranks in the background
begin() { # begin <ranks> <recipe> <folder> <options...>: in the background; $launcher is the shell of train
    train "$@" >begin.txt 2>begin_err.txt &
    launcher=$!
}
ranks_of() { # ranks_of <launcher>: the processes of the ranks
    for child in $(pgrep -P "$1"); do
        case $(cat /proc/"$child"/comm 2>/dev/null) in
        qat-train) echo "$child" ;;
        *) ranks_of "$child" ;;
        esac
    done
}
wait_for() { # wait_for <file>: until it is there
    for _ in $(seq 600); do
        [ -s "$1" ] && return 0
        sleep 0.05
    done
    return 1
}
ends_soon() { # ends_soon <what>: the launcher ends within 30 seconds, and not with 0
    for _ in $(seq 300); do
        kill -0 "$launcher" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$launcher" 2>/dev/null; then
        not_ok "$1: it still runs after 30 seconds"
        for rank in $(ranks_of "$launcher"); do kill -KILL "$rank"; done
    fi
    if wait "$launcher"; then not_ok "$1: it ends with 0"; else ok "$1: it ends"; fi
}
