# shellcheck shell=bash
# Sourced: the accuracy of a network by four commands, as counts of right answers (top-1/top-5). $tools
# is the folder of the commands.
#
# four_figures <recipe> <folder> <data> <pictures> [options of qat-train...]
#     trains into the folder, exports, and sets
#         samples    test samples
#         trained    what qat-train prints last of the integers
#         exact      what qat-eval prints of the checkpoint
#         engine     what qat-eval prints of the .qm on the data (KIND:PATH, or a recipe's file)
#         counted    the right answers of qat-run over the files pictures/CLASS/*; - without a folder
#     Tests have at most 10,000 samples: of more, two decimals of a percent do not give the count.

count_of() { # count_of <share or percent> <what of all>: how many samples are that
    awk "BEGIN { printf \"%d\", $1 * $samples / $2 + 0.5 }"
}

figure() { # figure <key> <file>: a number of a JSON object
    sed -n "s/.*[{ ]\"$1\": \([0-9.e-]*\).*/\1/p" "$2"
}

counts_of_json() { # counts_of_json <file>
    echo "$(count_of "$(figure top1 "$1")" 1)/$(count_of "$(figure top5 "$1")" 1)"
}

trained_counts() { # trained_counts <file>: from qat-train's last line
    local last top1 top5
    last=$(tail -n 1 "$1")
    samples=$(sed -n 's/.*; \([0-9]*\) test samples;.*/\1/p' <<<"$last")
    top1=$(sed -n 's/.*; top-1: [^;]*on integers \([0-9.]*\) %.*/\1/p' <<<"$last")
    top5=$(sed -n 's/.*; top-5: [^;]*on integers \([0-9.]*\) %.*/\1/p' <<<"$last")
    trained=$(count_of "${top1:--1}" 100)/$(count_of "${top5:--1}" 100)
}

# A line for each picture: {"input": "folder/CLASS/1.png", "top": [{"class": 3, "label": "CLASS", ...}, ...
count_answers() { # count_answers <.qm> <folder with a folder for each class>
    find "$2" -type f -print0 | sort -z | xargs -0 "$tools/qat-run" "$1" --json --top 5 |
        awk '{
            split($0, path, "\""); n = split(path[4], parts, "/")
            count = split($0, label, "\"label\": \"")
            for (k = 2; k <= count; k++) {
                sub(/".*/, "", label[k])
                if (label[k] == parts[n - 1]) { top5++; if (k == 2) top1++ }
            }
        } END { printf "%d/%d", top1, top5 }'
}

four_figures() {
    local recipe=$1 dir=$2 data=$3 pictures=$4 of=--recipe
    shift 4
    rm -rf "$dir"
    mkdir -p "$dir"
    "$tools/qat-train" "$recipe" --out "$dir/run" "$@" >"$dir/train.txt" || return 1
    trained_counts "$dir/train.txt"
    "$tools/qat-eval" "$dir/run/last.ckpt" --json >"$dir/checkpoint.json" || return 1
    exact=$(counts_of_json "$dir/checkpoint.json")
    "$tools/qat-export" "$dir/run/last.ckpt" "$dir/model.qm" >"$dir/export.txt" || return 1
    case $data in *.ini) ;; *) of=--data ;; esac
    "$tools/qat-eval" "$dir/model.qm" $of "$data" --json >"$dir/model.json" || return 1
    engine=$(counts_of_json "$dir/model.json")
    counted=-
    [ -z "$pictures" ] || counted=$(count_answers "$dir/model.qm" "$pictures")
}

all_same() { # all_same: are the four, or the three that there are, equal?
    [ "$trained" = "$exact" ] && [ "$exact" = "$engine" ] &&
        { [ "$counted" = - ] || [ "$counted" = "$engine" ]; }
}
