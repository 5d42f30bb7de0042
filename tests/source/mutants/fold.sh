# Sourced by mutants.sh: batch norm folded into weights and biases wrongly, in the eval graph (fold.h,
# op_bn_fold.c, rewrite_layer.c) and before calibration (rewrite_fold.c).

export_mutant fold-mean-left-out lib/fold/fold.h 's/return beta - qat_fold_factor(.*;/return beta;/'
export_mutant fold-bias-without-gamma lib/fold/fold.h \
    's/return beta - qat_fold_factor(gamma,/return beta - qat_fold_factor(1,/'
export_mutant fold-bias-epsilon lib/fold/fold.h \
    's/return beta - qat_fold_factor(gamma, ema_variance, epsilon)/return beta - qat_fold_factor(gamma, ema_variance, 10 * epsilon)/'
export_mutant fold-weights-epsilon lib/fold/op_bn_fold.c \
    '/^static qat_real factor_of/,/^}/s/node->attrs\[FOLDW_EPSILON\]/10 * &/'
export_mutant fold-mean-sign lib/fold/fold.h 's/return beta - qat_fold_factor/return beta + qat_fold_factor/'
export_mutant fold-beta-left-out lib/fold/fold.h 's/return beta - qat_fold_factor/return -qat_fold_factor/'
export_mutant fold-no-root lib/fold/fold.h 's/return QAT_SQRT(ema_variance/return (ema_variance/'
export_mutant fold-epsilon-outside-the-root lib/fold/fold.h \
    's/return QAT_SQRT(ema_variance + (qat_real)epsilon);/return QAT_SQRT(ema_variance) + (qat_real)epsilon;/'
export_mutant fold-weights-next-channel lib/fold/op_bn_fold.c 's/factor_of(node, i % v.channels);/factor_of(node, (i + 1) % v.channels);/'
export_mutant fold-weights-one-variance lib/fold/op_bn_fold.c \
    '/^static qat_real factor_of/,/^}/s/EMA_VARIANCE\]->value\[channel\]/EMA_VARIANCE]->value[0]/'
export_mutant fold-bias-next-mean lib/fold/op_bn_fold.c \
    's/node->inputs\[FOLDB_EMA_MEAN\]->value\[c\]/node->inputs[FOLDB_EMA_MEAN]->value[(c + 1) % node->shape.dims[0]]/'
export_mutant fold-bias-not-scaled lib/fold/op_bn_fold.c \
    's/qat_fold_factor(gamma, variance, epsilon) \* node->inputs\[FOLDB_BIAS\]/node->inputs[FOLDB_BIAS]/'
export_mutant fold-bias-dropped lib/fold/op_bn_fold.c 's/return node->n_inputs > FOLDB_BIAS;/return false;/'
export_mutant fold-mean-is-beta lib/rewrite/rewrite_layer.c \
    's/\[FOLDB_EMA_MEAN\] = bn_param(m, layer, BN_EMA_MEAN)/[FOLDB_EMA_MEAN] = bn_param(m, layer, BN_BETA)/'
export_mutant fold-gamma-is-beta lib/rewrite/rewrite_layer.c \
    's/\[FOLDB_GAMMA\] = bn_param(m, layer, BN_GAMMA)/[FOLDB_GAMMA] = bn_param(m, layer, BN_BETA)/'
export_mutant fold-default-epsilon-bias lib/rewrite/rewrite_layer.c \
    's/\[FOLDB_EPSILON\] = qat_attr(layer->norm, "epsilon")/[FOLDB_EPSILON] = 1e-3/'
export_mutant fold-default-epsilon-weights lib/rewrite/rewrite_layer.c \
    's/\[FOLDW_EPSILON\] = qat_attr(layer->norm, "epsilon")/[FOLDW_EPSILON] = 1e-3/'
# Before calibration.
export_mutant fold-calibrated-channel lib/rewrite/rewrite_fold.c \
    's/factor_of(layer, qat_output_channel(layer->head, i)) \* w/factor_of(layer, 0) * w/'
export_mutant fold-calibrated-without-mean lib/rewrite/rewrite_fold.c 's/value_of(layer, BN_EMA_MEAN, c)/0/'
export_mutant fold-calibrated-bias-dropped lib/rewrite/rewrite_fold.c 's/^        if (layer->bias)$/        if (0)/'
export_mutant fold-calibrated-epsilon lib/rewrite/rewrite_fold.c \
    '/^static float factor_of/,/^}/s/qat_attr(layer->norm, "epsilon")/10 * &/'
# Averages of the parameters, and batch norm's averages anew, that do not arrive.
export_mutant averages-not-used lib/checkpoint/restore.c 's/^ *qat_checkpoint_swap_averages(r->checkpoint);//'
export_mutant averages-of-batch-norm-left lib/deploy/deploy_graphs.c 's/return !st && batches > 0 ?/return !st && batches > 1000 ?/'
