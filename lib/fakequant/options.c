#include "fakequant/options.h"

#include <inttypes.h>
#include <math.h>

qat_quant_options qat_quant_defaults(void)
{
    return (qat_quant_options){.layout = QAT_LAYOUT_UINT8,
                               .weight_bits = 8,
                               .activation_bits = 8,
                               .ema_decay = 0.99,
                               .bn_freeze_delay = INT64_MAX,
                               .bn_fold = QAT_FOLD_TWO_PASS,
                               .input_min = -1,
                               .input_max = 1};
}

static qat_status check_bits(const char *what, int bits, qat_error *err)
{
    if (bits >= 2 && bits <= 8)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s is %d, not 2..8", what, bits);
}

static qat_status check_delay(const char *what, int64_t delay, qat_error *err)
{
    if (delay >= 0)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s is %" PRId64 ", below 0", what, delay);
}

static qat_status check_delays(const qat_quant_options *o, qat_error *err)
{
    qat_status st = check_delay("weight_delay", o->weight_delay, err);
    if (!st)
        st = check_delay("activation_delay", o->activation_delay, err);
    if (!st && o->bn_freeze_delay < o->weight_delay)
        st = qat_fail(err, QAT_ERR_ARGUMENT,
                      "bn_freeze_delay %" PRId64 " is before weight_delay %" PRId64
                      ": batch norm cannot freeze before it is folded",
                      o->bn_freeze_delay, o->weight_delay);
    return st;
}

qat_status qat_quant_check(const qat_quant_options *o, qat_error *err)
{
    qat_status st = check_bits("weight_bits", o->weight_bits, err);
    if (!st)
        st = check_bits("activation_bits", o->activation_bits, err);
    if (!st && !(o->ema_decay >= 0 && o->ema_decay < 1))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "ema_decay %g is not in [0, 1)", o->ema_decay);
    if (!st && ((unsigned)o->layout > QAT_LAYOUT_INT8 || (unsigned)o->bn_fold > QAT_FOLD_ONE_PASS))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "unknown layout %d or bn_fold %d", (int)o->layout,
                      (int)o->bn_fold);
    if (!st && !(isfinite(o->input_min) && isfinite(o->input_max) && o->input_min <= o->input_max))
        st = qat_fail(err, QAT_ERR_ARGUMENT, "input range [%g, %g] is no range",
                      (double)o->input_min, (double)o->input_max);
    return st ? st : check_delays(o, err);
}

const qat_quant_options *qat_graph_quant_options(const qat_graph *graph)
{
    return qat_graph_annotation(graph);
}
