#!/usr/bin/env bash
# Mutations of the ONNX project's models (Debian: libonnx-testdata) through fuzz_onnx_replay, in pieces; a run that was
# stopped goes on behind the last piece that it finished. Prints the count.
#
#   tests/fuzz/onnx_archive.sh BUILD [MUTATIONS [DONE]]    of each model, default 1000; DONE: the file of what is done
set -eu
replay=$1/tests/fuzz/fuzz_onnx_replay mutations=${2:-1000} finished=${3:-onnx_archive.done}
archive=${ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
touch "$finished"
for folder in "$archive"/*/[a-z]*; do
    [ -f "$folder/model.onnx" ] || continue
    grep -qF " $folder " "$finished" && continue
    count=$("$replay" --mutations "$mutations" "$folder/model.onnx" | sed -n 's/^ok.* \([0-9]*\) executions/\1/p')
    [ -n "$count" ] || { echo "not ok - $folder"; exit 1; }
    echo "$count $folder " >>"$finished"
done
awk '{ n += $1 } END { print "ok - " NR " models, " n " executions" }' "$finished"
