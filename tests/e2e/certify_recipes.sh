#!/usr/bin/env bash
# False alarms: qat-export must accept what the unchanged programs make of every recipe. Run by hand:
#
#     tests/e2e/certify_recipes.sh FOLDER [RECIPE...]
#
# Every recipe of recipes, recipes/claims and recipes/paper is trained for three steps of two samples,
# in both layouts, and exported in both profiles. A recipe of a float run is calibrated (--ptq). The
# data are those in QAT_DATA where they are there, and pictures drawn for the purpose where not. One
# line is printed for each export. FOLDER keeps the results: a second call does what is left. Without
# RECIPE all of them take about 8 minutes on two processors; BUILD is the build folder (build).
# Exit status 0: every export succeeded.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { sed -n '2,/^set -eu/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
build=$(cd "${BUILD:-$root/build}" && pwd)
real=$(cd "${QAT_DATA:-$root/../shared/data}" 2>/dev/null && pwd) || real=/nowhere
touch "$out/results.txt"
[ -d "$out/data" ] || { mkdir "$out/drawing" && python3 -B "$root/tests/source/mutants/make_recipe_data.py" "$out/drawing" &&
    mv "$out/drawing" "$out/data"; }
failed=0

data_of() # RECIPE: the folder that QAT_DATA has to be
{
    local path
    # shellcheck disable=SC2016
    path=$(sed -n 's/^path = ${QAT_DATA}\/\([^ ]*\).*/\1/p' "$1")
    if [ -z "$path" ] || [ -e "$real/$path" ]; then echo "$real"; else echo "$out/data"; fi
}

report() # NAME SECONDS: its log says the rest
{
    if [ "$status" = 0 ]; then
        echo "ok      $1 ($2 s): $(grep -m1 '^certificate\|^verified on' "$out/log")"
        echo "$1" >>"$out/results.txt"
    else
        echo "FAILED  $1: $(tail -n 1 "$out/log")"
        failed=1
    fi
}

run() # COMMAND...: sets status
{
    status=0
    "$@" >"$out/log" 2>&1 || status=$?
}

certify() # RECIPE LAYOUT
{
    local name layout=$2 profile run how=() started=$SECONDS
    name=${1#"$root"/recipes/}
    name=${name%.ini}
    run=$out/$(echo "$name" | tr / -)-$layout
    grep -q '^enabled = no' "$1" && how=(--ptq recipe --ptq-samples 16)
    if grep -qx "$name $layout paper" "$out/results.txt" && grep -qx "$name $layout tflite" "$out/results.txt"; then return; fi
    run "$build/tools/qat-train" "$1" --out "$run" --overwrite --set train.steps=3 --set train.batch=2 --set train.eval_every=never \
        --set train.stop_patience=0 --set data.test_count=2 --set data.train_count=16 --set "quant.layout=$layout" --set train.eval_batch=2
    if [ $status != 0 ]; then
        report "$name $layout training" 0
        return
    fi
    for profile in paper tflite; do
        started=$SECONDS
        run "$build/tools/qat-export" "$run/last.ckpt" "$run-$profile.qm" --profile $profile --samples 2 ${how[@]+"${how[@]}"}
        report "$name $layout $profile" $((SECONDS - started))
        rm -f "$run-$profile.qm"
    done
    rm -rf "$run"
}

[ $# -gt 0 ] || set -- "$root"/recipes/*.ini "$root"/recipes/claims/*.ini "$root"/recipes/paper/*.ini
cd "$out"
for recipe; do
    QAT_DATA=$(data_of "$recipe")
    export QAT_DATA
    for layout in uint8 int8; do certify "$recipe" $layout; done
done
echo "$(grep -c . "$out/results.txt") exports accepted$([ $failed = 0 ] || echo ", some refused")"
exit $failed
