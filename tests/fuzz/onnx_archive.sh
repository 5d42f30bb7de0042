#!/usr/bin/env bash
# Mutations of the ONNX project's models (Debian: libonnx-testdata) through fuzz_onnx_replay, in pieces; a run that was
# stopped goes on behind the last piece that it finished, with the same program and as many mutations. Prints the count.
#
#   tests/fuzz/onnx_archive.sh BUILD [MUTATIONS [DONE]]    of each model, default 1000; DONE-DIGEST-MUTATIONS: the file of
#                                                          what is done
set -eu
replay=$1/tests/fuzz/fuzz_onnx_replay mutations=${2:-1000}
archive=${ONNX_TESTDATA:-/usr/share/libonnx-testdata/data}
digest=$(sha256sum <"$replay")
finished=${3:-onnx_archive.done}-${digest:0:16}-$mutations
touch "$finished"
for folder in "$archive"/*/[a-z]*; do
    [ -f "$folder/model.onnx" ] || continue
    grep -qF " $folder " "$finished" && continue
    count=$("$replay" --mutations "$mutations" "$folder/model.onnx" | sed -n 's/^ok.* \([0-9]*\) executions/\1/p')
    [ -n "$count" ] || { echo "not ok - $folder"; exit 1; }
    echo "$count $folder " >>"$finished"
done
[ -s "$finished" ] || { echo "not ok - no models in $archive"; exit 1; }
awk '{ n += $1 } END { print "ok - " NR " models, " n " executions" }' "$finished"
