#!/bin/sh
# The certificate computes everything by itself. lib/certify may include the public headers, lib/base, lib/autograd
# and its own headers. It may include nothing of the converter, of lib/fakequant, lib/integer or of the inside of the engine. And it
# may not call those functions of the public headers of which the converter is made.
set -eu
root=${QAT_SOURCE_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
cd "$root/lib/certify"
bad=$(grep -n '#include "' ./*.[ch] calibration/*.[ch] |
    grep -vE '#include "(certify/(calibration/)?[a-z]+|qat/(certify|quant|graph|infer|status)|base/[a-z0-9_/]+|autograd/[a-z0-9_/]+)\.h"' || true)
if [ -n "$bad" ]; then
    echo "lib/certify includes what it must not:"
    echo "$bad"
    exit 1
fi
shared='qat_freeze|qat_emit|qat_choose_|qat_given_qparams|qat_fixed_qparams|qat_code\(|qat_code_|qat_real_of|qat_quantize_multiplier|qat_split_multiplier|qat_node_qparams|qat_clamp_codes|qat_create_|qat_fold|qi_requantize|qi_srdhm|qi_rdbp'
bad=$(grep -nE "\\b($shared)" ./*.[ch] calibration/*.[ch] || true)
if [ -n "$bad" ]; then
    echo "lib/certify calls what the converter is made of:"
    echo "$bad"
    exit 1
fi
echo "lib/certify shares nothing with the converter"
