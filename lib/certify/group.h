/** Weights that share a scale, for the files that check their codes: weights.c, normalized.c. */
#ifndef QAT_CERTIFY_GROUP_H
#define QAT_CERTIFY_GROUP_H

#include "certify/certify.h"

/* What a code, and a folded weight relative to itself, may be away (weights.c). */
#define CERT_CODE_SLACK 0x1p-12
#define CERT_FOLD_SLACK (5 * CERT_U)

/** Values that share a scale: one output channel, or all. */
typedef struct cert_group {
    cert *c;
    const cert_weights *w;
    const qi_tensor *t;
    const char *layer;
    const double *values;
    size_t count; /* of all values */
    bool per_channel;
    int channel;
    char name[2 * QAT_NAME_MAX]; /* for messages */
    float scale;
    int32_t lo, hi;
} cert_group;

static inline size_t cert_group_size(const cert_group *g)
{
    return g->per_channel ? g->count / (size_t)g->w->channels : g->count;
}

/** Where value i of the group lies. */
static inline size_t cert_group_place(const cert_group *g, size_t i)
{
    if (!g->per_channel)
        return i;
    return g->w->axis == 0 ? (size_t)g->channel * cert_group_size(g) + i
                           : i * (size_t)g->w->channels + (size_t)g->channel;
}

static inline double cert_group_value(const cert_group *g, size_t i)
{
    return g->values[cert_group_place(g, i)];
}

static inline int32_t cert_group_code(const cert_group *g, size_t i)
{
    return cert_code(g->t, cert_group_place(g, i));
}

/** The error of code i of a group, or of its scale, with what was expected. */
qat_status cert_refuse_code(const cert_group *g, size_t i, double expected);
qat_status cert_refuse_scale(const cert_group *g, double expected);

/** Scale and codes of weights by dorefa, and by weight_norm or apot. */
qat_status cert_check_dorefa(const cert_group *g);
qat_status cert_check_weight_norm(const cert_group *g);

#endif
