# shellcheck shell=bash
# Sourced by the experiments: trainings, exports and evaluations that are done once. What is finished is not repeated,
# what was interrupted continues, and what was done with other settings is refused. Accuracies that are shares become
# percent in the tables.
tools=${QAT_TOOLS:-build/tools}

stop() { # stop <message>: the command was used wrongly
    echo "$(basename "$0"): $1" >&2
    exit 2
}

# take_options <option...> -- <arguments>: each option that is named sets the variable of its name (--tune-epochs
# tune_epochs), each --set is added to the array settings, --table sets only_table, and what is no option is the folder OUT.
take_options() {
    local known=' '
    while [ "$1" != -- ]; do known+="$1 " && shift; done
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --table) only_table=yes ;;
        -*)
            local name=${1#--}
            case $known in *" $name "*) ;; *) stop "unknown option $1" ;; esac
            if [ "$name" = set ]; then settings+=("${2:?}"); else printf -v "${name//-/_}" %s "${2:?}"; fi
            shift
            ;;
        *) out=$1 ;;
        esac
        shift
    done
}

claim() { # claim <folder>: for this command alone; the lock ends with the last process that holds it
    mkdir -p "$1"
    exec 9>"$1/lock"
    flock -n 9 || stop "$1 is being worked in by another run"
}

logged() { # logged <log> <command...>: adds to the log, which is shown where the command fails
    local log=$1
    shift
    "$@" >>"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        return 1
    }
}

number() { # number <key> <file>: a number from a JSON object
    grep -o "\"$1\": *[-0-9.e+]*" "$2" | head -n 1 | sed 's/.*: *//'
}

number_if_there() { # number_if_there <key> <file>: or a dash
    if [ -f "$2" ]; then number "$1" "$2"; else echo -; fi
}

# A training's seconds are those of all its parts: `begin` is there while one runs, or where one was
# interrupted, which then lasted until the newest file in the folder.
add_part() { # add_part <folder>
    [ -f "$1/begin" ] || return 0
    local end before
    end=$(stat -c %Y "$1"/* | sort -n | tail -n 1)
    before=$(cat "$1/seconds.part" 2>/dev/null || echo 0)
    echo $((before + end - $(cat "$1/begin"))) >"$1/seconds.part"
    rm "$1/begin"
}

stored_settings() { # stored_settings <file>: a folder of an earlier version has no line of the checkpoint: it gets today's
    sed '/^train\.threads=/d' "$1"
    grep -q '^checkpoint ' "$1" || sed -n '/^checkpoint /p' "$1.part"
}

# As when it was begun: recipe, settings, and the checkpoint to begin with. Threads change no result.
same_settings() { # same_settings <folder> <recipe> <checkpoint or -> <settings...>
    local file=$1/settings init
    { cksum <"$2" && printf '%s\n' "${@:4}"; } | sed '/^train\.threads=/d' >"$file.part"
    if [ "$3" != - ]; then
        init=$(cksum <"$3") || stop "$1 begins with $3, which cannot be read"
        echo "checkpoint $init" >>"$file.part"
    fi
    if [ -f "$file" ] && ! stored_settings "$file" | diff - "$file.part" >&2; then
        stop "$1 was begun with another recipe, other settings or another checkpoint; use another folder or remove it"
    fi
    mv "$file.part" "$file"
}

train() { # train <folder> <recipe> <checkpoint to begin with, or -> <section.key=value...>
    local dir=$1 recipe=$2 init=$3 setting
    local options=()
    shift 3
    mkdir -p "$dir"
    same_settings "$dir" "$recipe" "$init" "$@"
    [ -f "$dir/seconds" ] && return 0
    for setting in "$@"; do options+=(--set "$setting"); done
    [ "$init" = - ] || options+=(--set "train.init=$init")
    [ ! -f "$dir/last.ckpt" ] || options+=(--resume)
    add_part "$dir"
    date +%s >"$dir/begin"
    echo "$(date +%T) training $dir" >&2
    logged "$dir/train.log" "$tools/qat-train" "$recipe" --out "$dir" "${options[@]}"
    add_part "$dir"
    mv "$dir/seconds.part" "$dir/seconds"
}

# Quantized from the first step on, with averages of batch norm for the last two fifths.
fine_tune() { # fine_tune <folder> <recipe> <float checkpoint> <epochs> <learning rate> <section.key=value...>
    train "$1" "$2" "$3" "train.epochs=$4" "train.lr=$5" train.warmup=0 train.schedule=cosine quant.enabled=yes \
        quant.ema_decay=0.99 quant.quant_delay=0 quant.bn_freeze_delay=60% "${@:6}"
}

evaluate() { # evaluate <JSON file> <checkpoint or .qm> <qat-eval options...>
    [ -f "$1" ] && return 0
    "$tools/qat-eval" "${@:2}" --json >"$1.part"
    mv "$1.part" "$1"
}

deploy() { # deploy <folder> <recipe> <checkpoint> <qat-export options...>: model.qm, its accuracy in qm.json
    [ -f "$1/qm.json" ] && [ -f "$1/export.log" ] && return 0
    mkdir -p "$1"
    rm -f "$1/export.log" "$1/qm.json"
    logged "$1/export.log" "$tools/qat-export" "$3" "$1/model.qm" "${@:4}"
    evaluate "$1/qm.json" "$1/model.qm" --recipe "$2"
}

# For awk: mean and sample standard deviation of n numbers by their sum and their sum of squares; what is promised of
# a result, kept or not, gathered in `verdict`, `broken` of them.
# shellcheck disable=SC2034
awk_functions='
    function deviation(n, sum, squares) {
        return n > 1 && squares > sum * sum / n ? sqrt((squares - sum * sum / n) / (n - 1)) : 0
    }
    function spread(n, sum, squares, format,    text) {
        text = sprintf(format, sum / n)
        return n > 1 ? text sprintf(" ± %.2f", deviation(n, sum, squares)) : text
    }
    function promise(kept, text) {
        verdict = verdict (kept ? "kept: " : "BROKEN: ") text "\n"
        broken += !kept
    }'
