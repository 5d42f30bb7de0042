/**
 * Reads what a .qm holds besides tensors and nodes: inputs and outputs of the model, labels, known
 * answers, preprocessing, borders, epilogue. It checks them as qm_read.c checks the rest.
 */
#include "infer/model/model.h"

#include "qat/sound.h"

static qi_status read_labels(qi_model *m, qi_error *err)
{
    qi_status st = qm_read_range(m, m->qm + QM_AT_LABELS, 0, QM_MAX_LABELS, "labels", -1,
                                 &m->labels, &m->n_labels, err);
    const char *text;
    for (int32_t i = 0; !st && i < m->n_labels; i++)
        st = qm_read_string(m, (uint32_t)m->labels[i], &text, err);
    return st;
}

/** Read the offsets of the known answers, one for each model input and output. */
static qi_status read_kat(qi_model *m, qi_error *err)
{
    uint32_t const flags = qm_u32(m->qm + QM_AT_FLAGS), first = qm_u32(m->qm + QM_AT_KAT);
    uint32_t const count = (uint32_t)(m->n_inputs + m->n_outputs);
    uint32_t const steps = (flags >> QM_KAT_STEPS_SHIFT) + 1;
    if (steps > 1 && (!(flags & QM_FLAG_KAT) || !m->n_states))
        return qi_fail(err, QI_ERR_FORMAT, "steps of a known-answer test without states", -1, steps,
                       1);
    if (!(flags & QM_FLAG_KAT))
        return first ? qi_fail(err, QI_ERR_FORMAT, "kat without its flag", -1, first, 0) : QI_OK;
    if (first > m->n_ints || count > m->n_ints - first)
        return qi_fail(err, QI_ERR_FORMAT, "kat", -1, (int64_t)first + count, m->n_ints);
    m->kat = m->ints + first;
    m->kat_steps = (int32_t)steps;
    for (int32_t i = 0; i < (int32_t)count; i++) {
        int32_t const t = i < m->n_inputs ? m->inputs[i] : m->outputs[i - m->n_inputs];
        qi_status const st =
            qm_check_data(m, (uint32_t)m->kat[i], (uint64_t)m->tensors[t].bytes * steps,
                          QM_ALIGNMENT, "data of the known-answer test", i, err);
        if (st)
            return st;
    }
    return QI_OK;
}

/** Are these the bits of a finite float32? */
static int is_finite(uint32_t bits)
{
    return (bits & UINT32_C(0x7f800000)) != UINT32_C(0x7f800000);
}

static qi_status check_statistics(const qi_preprocessing *pre, qi_error *err)
{
    int32_t const channels = pre->channels < 4 ? pre->channels : 4;
    for (int32_t c = 0; c < channels; c++)
        if (!is_finite(pre->mean_bits[c]) || !qm_is_scale(pre->std_bits[c]) || !pre->std_bits[c])
            return qi_fail(err, QI_ERR_FORMAT,
                           is_finite(pre->mean_bits[c]) ? "preprocessing: bits of a channel's std"
                                                        : "preprocessing: bits of a channel's mean",
                           -1, is_finite(pre->mean_bits[c]) ? pre->std_bits[c] : pre->mean_bits[c],
                           0x7f7fffff);
    return QI_OK;
}

/** Input 0 takes bytes [1, height, width, channels]. */
static qi_status check_bytes(const qi_model *m, int32_t channels, qi_error *err)
{
    const qi_preprocessing *pre = &m->preprocessing;
    const qi_tensor *x = &m->tensors[m->inputs[0]];
    int32_t const dims[] = {1, pre->height, pre->width, channels};
    if (x->type != QI_U8)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: type of input 0", m->inputs[0], x->type,
                       QI_U8);
    if (x->rank != 4)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: rank of input 0", m->inputs[0], x->rank,
                       4);
    for (int i = 0; i < 4; i++)
        if (x->dims[i] != dims[i])
            return qi_fail(err, QI_ERR_FORMAT, "preprocessing: a dimension of input 0",
                           m->inputs[0], x->dims[i], dims[i]);
    return QI_OK;
}

static qi_status check_pixels(const qi_model *m, qi_error *err)
{
    const qi_preprocessing *pre = &m->preprocessing;
    if (pre->height < 1 || pre->height > QM_MAX_SIDE)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: height", -1, pre->height, QM_MAX_SIDE);
    if (pre->width < 1 || pre->width > QM_MAX_SIDE)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: width", -1, pre->width, QM_MAX_SIDE);
    if (pre->channels < 1 || pre->channels > 4)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: channels", -1, pre->channels, 4);
    if (pre->central_crop > QM_MILLION)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: central crop", -1, pre->central_crop,
                       QM_MILLION);
    if (pre->resize_short > QM_MAX_SIDE)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: resize_short", -1, pre->resize_short,
                       QM_MAX_SIDE);
    if (pre->channel_order < 0 || pre->channel_order > 2)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: channel_order", -1, pre->channel_order,
                       2);
    qi_status const st = check_bytes(m, pre->channels, err);
    return st ? st : check_statistics(pre, err);
}

/** Real numbers have mean and std, but no settings for pictures. */
static qi_status check_reals(const qi_model *m, qi_error *err)
{
    const qi_preprocessing *pre = &m->preprocessing;
    const qi_tensor *x = &m->tensors[m->inputs[0]];
    if (!qi_type_has_codes(x->type) || x->border != QI_BORDER_NONE)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: real numbers for input 0", m->inputs[0],
                       x->type, QI_S8);
    if (pre->channels != x->dims[x->rank - 1])
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: channels", -1, pre->channels,
                       x->dims[x->rank - 1]);
    if (pre->height || pre->width || pre->resize_short || pre->central_crop || pre->channel_order)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: a picture's size for real numbers", -1,
                       pre->height, 0);
    return check_statistics(pre, err);
}

/** The bytes of qi_sound_frame, a frame a row. */
static qi_status check_sound(const qi_model *m, qi_error *err)
{
    const qi_preprocessing *pre = &m->preprocessing;
    if (pre->height < 1 || pre->height > QM_MAX_SIDE)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: frames of a sound", -1, pre->height,
                       QM_MAX_SIDE);
    if (pre->width != QI_SOUND_BANDS)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: bands of a sound", -1, pre->width,
                       QI_SOUND_BANDS);
    if (pre->channels != 1)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: channels of a sound", -1, pre->channels,
                       1);
    if (pre->resize_short || pre->central_crop || pre->channel_order)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: a picture's settings for sounds", -1,
                       pre->resize_short, 0);
    qi_status const st = check_bytes(m, 1, err);
    return st ? st : check_statistics(pre, err);
}

static qi_status read_preprocessing(qi_model *m, qi_error *err)
{
    const uint8_t *p = m->qm + QM_AT_PREPROCESSING;
    qi_preprocessing *pre = &m->preprocessing;
    pre->kind = qm_i32(p);
    pre->height = qm_i32(p + 4);
    pre->width = qm_i32(p + 8);
    pre->channels = qm_i32(p + 12);
    int32_t const resizing = qm_i32(p + 16); /* below 0: a central crop */
    pre->resize_short = resizing > 0 ? resizing : 0;
    pre->central_crop = resizing >= 0            ? 0
                        : resizing < -QM_MILLION ? QM_MILLION + 1 /* refused */
                                                 : -resizing;
    pre->channel_order = qm_i32(p + 20);
    for (int c = 0; c < 4; c++) {
        pre->mean_bits[c] = qm_u32(p + 24 + 4 * c);
        pre->std_bits[c] = qm_u32(p + 40 + 4 * c);
    }
    if (pre->kind < 0 || pre->kind > 3)
        return qi_fail(err, QI_ERR_FORMAT, "preprocessing: kind", -1, pre->kind, 3);
    if (pre->kind == 3)
        return check_sound(m, err);
    if (pre->kind == 2)
        return check_reals(m, err);
    return pre->kind ? check_pixels(m, err) : QI_OK;
}

static int is_listed(const int32_t *tensors, int32_t count, int32_t tensor)
{
    for (int32_t i = 0; i < count; i++)
        if (tensors[i] == tensor)
            return 1;
    return 0;
}

/** Only tensors that enter or leave the model may have a border. */
static qi_status check_borders(const qi_model *m, qi_error *err)
{
    for (int32_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].border && !is_listed(m->inputs, m->n_inputs, i) &&
            !is_listed(m->outputs, m->n_outputs, i))
            return qi_fail(err, QI_ERR_FORMAT, "border of a tensor inside the model", i,
                           m->tensors[i].border, QI_BORDER_NONE);
    return QI_OK;
}

/** The ints are: offset of the name, n_inputs, that many tensors, parameters. */
static qi_status read_epilogue(qi_model *m, qi_error *err)
{
    enum { HEAD = 2, MOST = HEAD + QM_MAX_EPILOGUE_INPUTS + QM_MAX_EPILOGUE_PARAMS };
    qi_epilogue *e = &m->epilogue;
    const int32_t *ints;
    int32_t count;
    qi_status st =
        qm_read_range(m, m->qm + QM_AT_EPILOGUE, 0, MOST, "epilogue", -1, &ints, &count, err);
    if (st || count == 0)
        return st;
    if (count < HEAD)
        return qi_fail(err, QI_ERR_FORMAT, "ints of the epilogue", -1, count, HEAD);
    int32_t const most =
        count - HEAD < QM_MAX_EPILOGUE_INPUTS ? count - HEAD : QM_MAX_EPILOGUE_INPUTS;
    if (ints[1] < 1 || ints[1] > most)
        return qi_fail(err, QI_ERR_FORMAT, "inputs of the epilogue", -1, ints[1], most);
    *e = (qi_epilogue){.inputs = ints + HEAD,
                       .params = ints + HEAD + ints[1],
                       .n_inputs = ints[1],
                       .n_params = count - HEAD - ints[1]};
    if (e->n_params > QM_MAX_EPILOGUE_PARAMS)
        return qi_fail(err, QI_ERR_FORMAT, "params of the epilogue", -1, e->n_params,
                       QM_MAX_EPILOGUE_PARAMS);
    st = qm_check_indices(m, e->inputs, e->n_inputs, 0, "input of the epilogue", -1, err);
    for (int32_t i = 0; !st && i < e->n_inputs; i++)
        if (m->tensors[e->inputs[i]].kind != QI_CONSTANT &&
            !is_listed(m->outputs, m->n_outputs, e->inputs[i]))
            st = qi_fail(err, QI_ERR_FORMAT, "input of the epilogue, neither output nor constant",
                         -1, e->inputs[i], m->n_tensors - 1);
    if (!st)
        st = qm_read_string(m, (uint32_t)ints[0], &e->name, err);
    if (!st && !*e->name)
        st = qi_fail(err, QI_ERR_FORMAT, "name of the epilogue, empty", -1, ints[0], 0);
    return st;
}

qi_status qm_read_metadata(qi_model *m, qi_error *err)
{
    qi_status st = qm_read_range(m, m->qm + QM_AT_INPUTS, 1, QM_MAX_IO, "inputs of the model", -1,
                                 &m->inputs, &m->n_inputs, err);
    if (!st)
        st = qm_read_range(m, m->qm + QM_AT_OUTPUTS, 1, QM_MAX_IO, "outputs of the model", -1,
                           &m->outputs, &m->n_outputs, err);
    if (!st)
        st = qm_check_indices(m, m->inputs, m->n_inputs, 1, "input of the model", -1, err);
    if (!st)
        st = qm_check_indices(m, m->outputs, m->n_outputs, 1, "output of the model", -1, err);
    if (!st)
        st = qm_read_string(m, qm_u32(m->qm + QM_AT_DESCRIPTION), &m->description, err);
    if (!st)
        st = read_labels(m, err);
    if (!st)
        st = read_kat(m, err);
    if (!st)
        st = read_preprocessing(m, err);
    if (!st)
        st = check_borders(m, err);
    if (!st)
        st = read_epilogue(m, err);
    return st;
}
