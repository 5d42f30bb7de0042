/**
 * A network's name sets other keys: mobilenet_v1_0.25_128 is mobilenet_v1 with multiplier = 0.25 on
 * pictures of 128 x 128. A recipe may leave these keys out. Other values are an error.
 */
#include "recipe/archs.h"
#include "recipe/reader.h"

#include <stdio.h>
#include <string.h>

/** Set one key that the name sets. Another value in the recipe is an error. */
static qat_status decide_text(qat_recipe *r, const char *section, const char *name,
                              const char *wanted, qat_error *err)
{
    char now[32], where[QAT_RECIPE_WHERE_MAX];
    int n;
    int const index = qat_recipe_find_key(section, name);
    const qat_key *key = &qat_recipe_keys(&n)[index];
    qat_recipe_get_text(r, key, now, sizeof now);
    if (!r->private_->given[index] || !strcmp(now, wanted))
        return qat_recipe_set_value(r, key, wanted, "model.arch", err);
    qat_recipe_where(r, section, name, where);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: %s.%s = %s contradicts model.arch = %s, which sets %s", where, section,
                    name, now, qat_net_arch_of(r)->name, wanted);
}

static qat_status decide(qat_recipe *r, const char *section, const char *name, double value,
                         qat_error *err)
{
    char wanted[32];
    qat_real_text(value, wanted, sizeof wanted);
    return decide_text(r, section, name, wanted, err);
}

/** Set one key to a default that the name suggests; the recipe may change it. */
static qat_status suggest(qat_recipe *r, const char *section, const char *name, const char *value,
                          qat_error *err)
{
    return r->private_->given[qat_recipe_find_key(section, name)]
               ? QAT_OK
               : decide_text(r, section, name, value, err);
}

/** Set PyTorch's defaults, and those of the torchvision network with this name. */
static qat_status apply_convention(qat_recipe *r, qat_error *err)
{
    const qat_net_arch *a = qat_net_arch_of(r);
    char where[QAT_RECIPE_WHERE_MAX];
    if (a->tensorflow_only && r->model.convention == QAT_CONVENTION_PYTORCH) {
        qat_recipe_where(r, "model", "convention", where);
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.convention = pytorch cannot be combined with model.arch = %s, "
                        "which follows TensorFlow's conventions",
                        where, a->name);
    }
    if (!qat_net_follows_pytorch(r))
        return QAT_OK;
    qat_status st = suggest(r, "model", "bn_epsilon", "1e-05", err);
    if (!st)
        st = suggest(r, "model", "bn_momentum", "0.9", err);
    if (!st && !strcmp(a->name, "mobilenet_v2"))
        st = suggest(r, "model", "activation", "relu6", err);
    if (!st && !strcmp(a->name, "mobilenet_v2"))
        st = suggest(r, "model", "multiplier", "1", err);
    return st;
}

/** Can the data have any size? Pictures in files can. For others, the data show it later. */
static bool is_resized(const qat_recipe *r)
{
    return qat_dataset_kind_resizes(r->data.kind);
}

static qat_status check_depth(const qat_recipe *r, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    if (r->model.arch != QAT_ARCH_RESNET || (r->model.depth - 2) % 6 == 0)
        return QAT_OK;
    qat_recipe_where(r, "model", "depth", where);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: model.depth = %lld: arch = resnet has 6n + 2 layers: 8, 14, 20, 32, 56 "
                    "...; for ImageNet's networks use arch = resnet18, resnet34, resnet50, "
                    "resnet101, resnet152",
                    where, (long long)r->model.depth);
}

static qat_status check_auxiliary(const qat_recipe *r, qat_error *err)
{
    const qat_net_arch *a = qat_net_arch_of(r);
    char where[QAT_RECIPE_WHERE_MAX], weight[32];
    if (a->has_auxiliary || r->model.auxiliary == 0)
        return QAT_OK;
    qat_recipe_where(r, "model", "auxiliary", where);
    qat_real_text(r->model.auxiliary, weight, sizeof weight);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: model.auxiliary = %s: model.arch = %s has no auxiliary classifier; "
                    "inception_v3 has one",
                    where, weight, a->name);
}

/** model.onnx and model.tflite set model.arch; and model.head is a number for such a network, else
 * a word. */
static qat_status apply_file(qat_recipe *r, qat_error *err)
{
    char where[QAT_RECIPE_WHERE_MAX];
    const char *head = r->model.head;
    bool const named = r->private_->given[qat_recipe_find_key("model", "arch")];
    bool const file = *qat_net_file(r) != 0;
    qat_recipe_where(r, "model", qat_net_file_key(r), where);
    if (*r->model.onnx && *r->model.tflite)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.tflite cannot be combined with model.onnx: each is a network",
                        where);
    if (file && named && !qat_net_is_imported(r))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.%s cannot be combined with model.arch = %s: the file is the "
                        "network",
                        where, qat_net_file_key(r), qat_net_arch_of(r)->name);
    qat_status const st = file ? suggest(r, "model", "arch", "imported", err) : QAT_OK;
    if (st)
        return st;
    qat_recipe_where(r, "model", "head", where);
    bool const number = qat_head_outputs(head) > 0;
    if (!number && strcmp(head, "average") != 0 && strcmp(head, "flatten") != 0)
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.head = %.60s: expected average, flatten, or a number of outputs "
                        "in 1..65536",
                        where, head);
    if (qat_net_is_imported(r) && !strcmp(head, "flatten"))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.head = flatten cannot be combined with model.%s: give the "
                        "number of outputs",
                        where, qat_net_file_key(r));
    if (number && !qat_net_is_imported(r))
        return qat_fail(err, QAT_ERR_ARGUMENT,
                        "%s: model.head = %s needs model.onnx or model.tflite; other networks have "
                        "as many outputs "
                        "as the data have classes",
                        where, head);
    if (!qat_net_is_imported(r) || file)
        return QAT_OK;
    qat_recipe_where(r, "model", "arch", where);
    return qat_fail(err, QAT_ERR_ARGUMENT,
                    "%s: model.arch = imported needs model.onnx or model.tflite", where);
}

qat_status qat_recipe_apply_arch(qat_recipe *r, qat_error *err)
{
    qat_status st = apply_file(r, err);
    const qat_net_arch *a = qat_net_arch_of(r);
    if (!st && a->multiplier > 0)
        st = decide(r, "model", "multiplier", a->multiplier, err);
    if (!st && a->depth)
        st = decide(r, "model", "depth", a->depth, err);
    if (!st && a->width) {
        char width[32];
        qat_real_text(a->width, width, sizeof width);
        st = suggest(r, "model", "width", width, err);
    }
    if (!st)
        st = apply_convention(r, err);
    if (!st && a->resolution)
        st = decide(r, "model", "first_stride", 2, err);
    if (!st && a->resolution && is_resized(r))
        st = decide(r, "data", "height", a->resolution, err);
    if (!st && a->resolution && is_resized(r))
        st = decide(r, "data", "width", a->resolution, err);
    if (!st)
        st = check_auxiliary(r, err);
    return st ? st : check_depth(r, err);
}
