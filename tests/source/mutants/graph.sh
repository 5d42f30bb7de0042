# Sourced by mutants.sh: the graph that freeze makes of the eval graph.

export_mutant graph-inputs-reversed lib/convert/freeze.c \
    's/^        inputs\[i\] = f->tensor\[in->index\];/        inputs[qat_node_is_op(head, "sub") ? 1 - i : i] = f->tensor[in->index];/'
export_mutant graph-concat-reversed lib/integer/quant_concat.c \
    's/^        inputs\[i\] = e->inputs\[i\];/        inputs[i] = e->inputs[e->n_inputs - 1 - i];/'
export_mutant graph-outputs-reversed lib/convert/freeze.c 's/^        io\[n_inputs + i\] = /        io[n_inputs + n_outputs - 1 - i] = /'
export_mutant graph-bias-of-activation-left-out lib/convert/freeze.c 's/^    if (fused->bias) {/    if (fused->bias \&\& !fused->clamp) {/'
export_mutant graph-relu-forgets-relu6 lib/convert/freeze.c 's/\.act_max = fused->max,/.act_max = INFINITY,/'
export_mutant graph-ranges-for-people lib/convert/freeze.c 's/^        \.range_max = p->max,/        .range_max = 2 * p->max,/'
export_mutant graph-input-range-for-people lib/convert/input_table.c 's/\.range_max = 255\.0f,/.range_max = 1.0f,/'
export_mutant graph-bias-scale-for-people lib/integer/quant_weights.c 's/\.scale = (float)bias_scale(f, 0),/.scale = 1.0f,/'
export_mutant graph-weights-range-for-people lib/integer/quant_weights.c 's/t->range_min = first.min;/t->range_min = first.max;/'
export_mutant graph-profile lib/deploy/deploy_graphs.c 's/return o->has_profile ? o->profile : r->checkpoint->profile;/return QAT_PROFILE_PAPER;/'
export_mutant graph-layout lib/checkpoint/restore.c 's/c->quant.layout = (qat_layout)recipe->quant.layout;//'
export_mutant graph-weight-bits lib/checkpoint/restore.c 's/c->quant.weight_bits = (int)recipe->quant.weight_bits;//'
