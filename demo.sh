#!/usr/bin/env bash
# From nothing to an integer model: installs what is missing, builds, trains a small network on
# procedurally drawn digits with fake quantization, exports it, and compares the integer engine
# with the training side byte for byte. Ends with a table of what came out.
set -eu
cd "$(dirname "$0")"
. .ci/packages.sh
# shellcheck disable=SC2086
ensure_packages $BUILD_PACKAGES

mkdir -p build
[ -f build/build.ninja ] || meson setup build -Dtests=disabled >build/setup.log || { cat build/setup.log; exit 1; }
echo "building (build/build.log)"
ninja -C build >build/build.log || { tail -n 40 build/build.log; exit 1; }

out=${1:-runs/quickstart}
build/tools/qat-train recipes/quickstart.ini --out "$out" --overwrite
build/tools/qat-export "$out/last.ckpt" "$out/digits.qm" --summary
