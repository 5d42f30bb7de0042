#include "tools/common/ptq.h"

#include <stdio.h>
#include <string.h>

tool_ptq tool_ptq_given;

void tool_ptq_check(const tool *t)
{
    const tool_ptq *p = &tool_ptq_given;
    const char *what = p->observer       ? "--observer"
                       : p->samples      ? "--ptq-samples"
                       : p->equalize     ? "--equalize"
                       : p->correct_bias ? "--correct-bias"
                                         : NULL;
    if (what && !p->data)
        tool_usage(t, "%s needs --ptq", what);
    size_t const n = p->data ? strlen(p->data) : 0;
    if (n > 4 && !strcmp(p->data + n - 4, ".ini") && !strchr(p->data, ':'))
        tool_usage(t,
                   "--ptq %s: a recipe file cannot be given here; the word recipe means the "
                   "training data of the checkpoint's own recipe",
                   p->data);
    tool_check_data(t, "--ptq", p->data, "recipe");
}

void tool_ptq_apply(const tool *t, qat_deploy_options *o)
{
    qat_error err;
    tool_ptq_check(t);
    o->calibrate = tool_ptq_given.data;
    o->calibration_samples = tool_ptq_given.samples;
    o->equalize = tool_ptq_given.equalize;
    o->correct_bias = tool_ptq_given.correct_bias;
    o->report = &tool_ptq_given.report;
    if (tool_ptq_given.observer &&
        qat_estimator_parse(tool_ptq_given.observer, &o->estimator, &o->estimator_parameter, &err))
        tool_usage(t, "%s", err.message);
}

void tool_ptq_print(void)
{
    const tool_ptq *p = &tool_ptq_given;
    const qat_ptq_report *r = &p->report;
    if (!p->data)
        return;
    printf("calibrated on %s: %lld samples, observer %s\n", tool_shown(r->data),
           (long long)r->samples, p->observer ? p->observer : "minmax");
    if (p->equalize)
        printf("equalized %d pairs of layers in %d rounds: ranges of a layer's output channels "
               "differed by a factor of up to %.4g, now by up to %.4g; %d pairs with ReLU6 between "
               "them were left unchanged\n",
               r->equalized.pairs, r->equalized.rounds, r->equalized.worst_ratio,
               r->equalized.worst_ratio_after, r->equalized.behind_bound);
    if (p->correct_bias)
        printf("corrected the biases of %d layers, by at most %.4g\n", r->corrected,
               r->largest_correction);
}
