#!/usr/bin/env bash
# Figures of random cases beside scikit-learn's, within 1e-9. PEERS_LEARN names a Python with scikit-learn.
set -u
cases=$(realpath "$1")
. "${QAT_SOURCE_ROOT:?}/tests/common/checks.sh"
python=${PEERS_LEARN:-python3}
if ! "$python" -c 'import sklearn' 2>/dev/null; then
    echo "SKIP figures beside scikit-learn's: $python has none (PEERS_LEARN names another Python)"
    exit 0
fi
"$python" "$QAT_SOURCE_ROOT/tests/foreign/figures/compare.py" "$cases" "${FIGURES_CASES:-24}" || failed=1
exit $failed
