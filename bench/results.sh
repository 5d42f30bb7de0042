#!/usr/bin/env bash
# Makes docs/results.md: the tables and figures of Jacob et al. beside ours. Its text is bench/results.md.in. Lines
# that begin with '@' are replaced:
#     @table NAME FILE COMMAND     by the contents of RUNS/NAME/FILE; if it is not there, by the COMMAND that would make it
#     @plot NAME PATTERN TITLE     by RUNS/NAME/PATTERN.svg, copied to docs/figures/NAME-*.svg
#     @counts                      by parameters and multiply-adds of the networks, counted now
#     @pairs NAME FIGURE           by a sentence about RUNS/NAME/results.md: FIGURE of the integer networks against that of
#                                  the float networks with the same settings
# NAME=DIR uses another folder instead of RUNS/NAME. With --run, every COMMAND is called first, with OUT = RUNS/NAME;
# what is finished there is not repeated. Where no table is there, the page is written only into another folder (--docs).
# Usage: bench/results.sh [RUNS] [NAME=DIR]... [--run] [--docs DIR]
set -eu
cd "$(dirname "$0")/.."
. bench/runs.sh
runs=runs docs='' run=no
declare -A folder_of plots_of
while [ $# -gt 0 ]; do
    case $1 in
    --run) run=yes ;;
    --docs) docs=${2:?} && shift ;;
    -*) stop "unknown option $1" ;;
    *=*) folder_of[${1%%=*}]=${1#*=} ;;
    *) runs=$1 ;;
    esac
    shift
done

folder() { # folder <name>
    echo "${folder_of[$1]:-$runs/$1}"
}

tables() { # the files of tables that are there
    local name file
    grep '^@table ' bench/results.md.in | while read -r _ name file _; do
        find "$(folder "$name")/$file" 2>/dev/null || true
    done
}

make_table() { # make_table <name> <file> <command...>: what the command leaves
    local name=$1
    shift 2
    # shellcheck disable=SC2068
    ${@//OUT/$(folder "$name")} >&2
}

insert_table() { # insert_table <name> <file> <command...>
    local file
    file=$(folder "$1")/$2
    if [ -f "$file" ]; then
        sed -E 's/^(found|not found|kept|BROKEN|open|cards|bccd): /* &/' "$file" # lines of a list
        printf '\n(`%s`)\n' "${*:3}"
    else
        printf '*Not measured yet: `%s`.*\n' "${*:3}"
    fi
}

insert_plot() { # insert_plot <name> <pattern> <title...>: called with patterns left as they are (set -f)
    local file number
    set +f
    for file in "$(folder "$1")"/$2.svg; do
        [ -f "$file" ] || break
        number=$((${plots_of[$1]:-0} + 1))
        plots_of[$1]=$number
        mkdir -p "$docs/figures"
        cp "$file" "$docs/figures/$1-$number.svg"
        printf '![%s](figures/%s-%d.svg)\n' "${*:3}" "$1" "$number"
    done
}

insert_pairs() { # insert_pairs <name> <figure>: a cell with quant.enabled = yes is paired with the one with no
    local file
    file=$(folder "$1")/results.md
    [ ! -f "$file" ] || awk -F ' *[|] *' -v figure="$2" '
        /^[|] recipe / { for (i = 2; i < NF; i++) column[$i] = i; next }
        $2 !~ /^recipes/ { next }
        {
            key = ""
            for (i = 2; i < column["seeds"]; i++) if (i != column["quant.enabled"]) key = key " " $i
            quantized = $column["quant.enabled"] == "yes"
            value = $column[(quantized ? "" : "float_") figure " [%]"]
            if (value != "missing") { if (quantized) integer[key] = value; else real[key] = value }
        }
        END {
            for (key in integer) if (key in real) {
                d = integer[key] - real[key]
                n++; sum += d
                if (d < 0) { falls++; if (d < least) least = d }
                if (d > 0) { rises++; if (d > most) most = d }
            }
            if (!n) exit
            printf "`%s` of the integer networks minus `float_%s` of the float networks: lower in %d of %d pairs, by at most %.2f points; ",
                figure, figure, falls, n, -least
            if (rises) printf "higher in %d, by at most %.2f; ", rises, most
            printf "%+.2f points in the mean.\n", sum / n
        }' "$file"
}

count() { # count <published name> <recipe> <arch>: a row
    "$tools/qat-train" "recipes/paper/$2.ini" --dry-run --set "model.arch=$3" | awk -v name="$1" '
        /that only training uses/ { training = $1 }
        $1 == "total" { parameters = $2; macs = $3 }
        END { printf "| %s | %.2f M%s | %.0f M |\n", name, parameters / 1e6, training ? sprintf(" (%.2f M)", training / 1e6) : "", macs / 1e6 }'
}

insert_counts() {
    local multiplier resolution
    echo '| network | parameters (with those that only training has) | multiply-adds |'
    echo '|---|---|---|'
    for multiplier in 1.0 0.75 0.5 0.25; do
        for resolution in 224 192 160 128; do
            count "MobileNet v1 $multiplier, $resolution" mobilenet_imagenet "mobilenet_v1_${multiplier}_$resolution"
        done
    done
    for depth in 50 101 152; do count "ResNet-$depth" resnet_imagenet "resnet$depth"; done
    count 'Inception v3' inception_v3_imagenet inception_v3
    count 'MobileNet SSD, COCO, 320' ssd_coco mobilenet_ssd
}

assemble() {
    local line what rest
    while IFS= read -r line; do
        read -r what rest <<<"$line"
        # shellcheck disable=SC2086
        case $what in
        @table) insert_table $rest ;;
        @plot) set -f && insert_plot $rest ;;
        @counts) insert_counts ;;
        @pairs) insert_pairs $rest ;;
        *) printf '%s\n' "$line" ;;
        esac
    done <bench/results.md.in
}

if [ $run = yes ]; then
    grep '^@table ' bench/results.md.in | while read -r _ name file command; do
        # shellcheck disable=SC2086
        make_table "$name" "$file" $command </dev/null || echo "$name: not all that is promised was kept" >&2
    done
fi
if [ -z "$docs" ]; then
    [ -n "$(tables)" ] || stop "$runs: no table is there, and docs/results.md would lose its own; --docs DIR writes the page elsewhere"
    docs=docs
fi
mkdir -p "$docs"
assemble >"$docs/results.md.part"
mv "$docs/results.md.part" "$docs/results.md"
