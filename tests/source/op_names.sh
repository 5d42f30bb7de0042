#!/bin/sh
# What is known of an integer op stands in its kernel (lib/infer/ops/op_*.c), its driver (lib/infer/host/drivers/fast_*.c), its
# quantization (lib/integer/quant_*.c, exact_conv.c) and the tables of ops. No other file compares names or kernels of
# integer ops, so that an op that is added need not be found in it. lib/certify has tables of its own, because it shares
# nothing with the converter; lib/export has tables of what other tools call the ops; lib/foreign and lib/convert/onnx compare names of
# foreign operators; lib/debug/real_graph.c has a table of what ops mean in reals, lib/bands/reach.c one of the rows that ops need.
set -eu
root=${QAT_SOURCE_ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

families='lib/infer/ops/op_[a-z0-9_]*\.c|lib/infer/host/drivers/fast_[a-z_]*\.c|lib/infer/host/loops/fast\.h|lib/integer/quant_[a-z_]*\.c|lib/integer/exact_conv\.c'
tables='lib/infer/model/qm_read\.c|lib/infer/host/ops\.c|lib/integer/exact_eval\.c|lib/certify/(walk|signal)\.c|lib/export/([a-z]*/)?[a-z_]*\.c|lib/(foreign(/ops)?|convert/onnx)/[a-z_]*\.c|lib/debug/real_graph\.c|lib/bands/reach\.c'
# names that only integer ops have; what appends them to a graph says so with qat_emit or emit_move
only='requantize|maximum|minimum|prelu|l2_normalization|arg_max'

# comparisons FOLDER: lines below it that compare an integer op
comparisons() (
    cd "$1"
    # shellcheck disable=SC2016 # awk's own $
    find lib tools examples include -name '*.[ch]' | sort | xargs awk -v only="\"($only)\"" '
        FNR == 1 { line = "" }
        # a statement may take several lines
        { line = line $0; if ($0 !~ /[;{}]$/ && length(line) < 1000) next }
        line ~ /strn?cmp\([^;]*(kernel->name|[>.]op[,)])/ && line !~ /op->name[,)]/ ||
        line ~ /[!=]= *&qi_kernel_[a-z]|&qi_kernel_[a-z0-9_]* *[!=]=/ ||
        line ~ only && line !~ /emit|require_same_grid/ {
            gsub(/  +/, " ", line)
            print FILENAME ":" FNR ": " line
        }
        { line = "" }' | grep -vE "^($families|$tables):" || true
)

bad=$(comparisons "$root")
if [ -n "$bad" ]; then
    echo "integer ops are compared outside of their files and the tables of ops:"
    echo "$bad"
    exit 1
fi

# that it can fail
mkdir -p "$work/lib/a" "$work/tools" "$work/examples" "$work/include"
cat > "$work/lib/a/a.c" <<'END'
bool accumulates(const qat_qop *op)
{
    return strcmp(op->op, "conv2d") == 0;
}
bool is_pool(const qi_node *node)
{
    return other(node) &&
           strcmp(node->kernel->name, "mean") == 0;
}
bool is_table(const qi_node *node)
{
    return node->kernel == &qi_kernel_table;
}
static const char *const ops[] = {"prelu", "add"};
END
found=$(comparisons "$work" | wc -l)
[ "$found" -eq 4 ] || { echo "$found of 4 comparisons are noticed"; exit 1; }
echo "integer ops are compared in the files of their families and in the tables of ops alone"
