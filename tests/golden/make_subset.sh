#!/bin/sh
# Makes tests/golden/data: a subset of at most 1 MB of the golden data's fixedpoint, ops, ops2 and fakequant. With it, the
# golden tests run in a clone that has nothing else. For developers (needs python3). The choice depends only on the
# golden data.
#
# usage: [QAT_DATA=DIR] tests/golden/make_subset.sh      DIR holds golden/; default ../shared/data
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${QAT_DATA:-$here/../../../shared/data}
target=$here/data

rm -rf "$target/fixedpoint" "$target/ops" "$target/ops2" "$target/fakequant"
python3 "$here/make_subset.py" "$data/golden" "$target"
for part in fixedpoint ops ops2 fakequant; do
    printf '%-10s %7d bytes\n' $part "$(find "$target/$part" -type f -exec cat {} + | wc -c)"
done
total=$(find "$target" -type f -exec cat {} + | wc -c)
printf '%-10s %7d bytes, at most 1000000\n' total "$total"
test "$total" -le 1000000
