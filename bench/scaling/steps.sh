# Sourced by the scripts of this folder: training some steps, and how long one took. Expects the repository as the
# current folder. QAT_BUILD names another build than build.
build=${QAT_BUILD:-build}
tools=$PWD/$build/tools
[ -x "$tools/qat-train" ] || tools=$build/tools
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

recipe() { # recipe <lines of [model]> <batch> <steps>: on drawn pictures
    cat <<END
[data]
kind = shapes
train_count = 512
test_count = 10
[model]
$1
[train]
batch = $2
steps = $3
log_every = $(($3 / 2))
eval_every = 1000000
checkpoint_every = 1000000
[quant]
enabled = yes
quant_delay = 0
END
}

# ms <ranks> <threads> <shards> <recipe> <folder> <qat-train's options...>: of a step, in the second half of the run. A run
# that fails has no time: its messages are shown, and the status is 1.
ms() {
    local ranks=$1 threads=$2 shards=$3 recipe=$4 run=$5 launch=()
    shift 5
    [ "$ranks" = 1 ] || launch=(mpirun --bind-to none -n "$ranks")
    "${launch[@]}" "$tools/qat-train" "$recipe" --threads "$threads" --set train.shards="$shards" --out "$run" --overwrite \
        --progress none "$@" >"$run.txt" 2>&1 </dev/null || {
        tail -n 3 "$run.txt" >&2
        return 1
    }
    awk -F, 'NR == 2 { step = $1; at = $2 } NR == 3 { printf "%.3f\n", 1000 * ($2 - at) / ($1 - step) }' "$run/times.csv"
}

least() {
    printf '%s\n' "$@" | sort -g | head -n 1
}
