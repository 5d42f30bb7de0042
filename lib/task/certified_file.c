/** Fields of a file beside their expected values. */
#include "task/certified_file.h"

#include <stdio.h>
#include <string.h>

qat_status qat_certify_refuse(const qat_certified_file *f, const char *field, double in_file,
                              double expected)
{
    return qat_fail(f->err, QAT_ERR_MISMATCH,
                    "%s is %.9g in the file, but the checkpoint gives %.9g", field, in_file,
                    expected);
}

qat_status qat_certify_equal(const qat_certified_file *f, const char *field, double in_file,
                             double expected)
{
    return in_file == expected ? QAT_OK : qat_certify_refuse(f, field, in_file, expected);
}

qat_status qat_certify_text(const qat_certified_file *f, const char *field, int number,
                            const char *in_file, const char *expected)
{
    if (in_file && strcmp(in_file, expected) == 0)
        return QAT_OK;
    return qat_fail(f->err, QAT_ERR_MISMATCH,
                    "%s %d is \"%s\" in the file, but the checkpoint gives \"%s\"", field, number,
                    in_file ? in_file : "", expected);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

qat_status qat_certify_params(const qat_certified_file *f, const qi_epilogue *e,
                              const double *expected, int n_ints, int n_floats, int n_last)
{
    char field[64];
    qat_status st = qat_certify_equal(f, "epilogue: the number of parameters", e->n_params,
                                      n_ints + n_floats + n_last);
    for (int i = 0; !st && i < e->n_params; i++) {
        bool const real = i >= n_ints && i < n_ints + n_floats;
        double const there = real ? (double)float_of((uint32_t)e->params[i]) : (double)e->params[i];
        snprintf(field, sizeof field, "epilogue: parameter %d", i);
        st = qat_certify_equal(f, field, there, expected[i]);
    }
    return st;
}

qat_status qat_certify_outputs(const qat_certified_file *f, const qi_epilogue *e, int n_inputs,
                               int n_outputs)
{
    qat_status st = qat_certify_equal(f, "epilogue: the number of tensors", e->n_inputs, n_inputs);
    for (int i = 0; !st && i < n_outputs; i++)
        st = qat_certify_equal(f, "epilogue: a tensor", e->inputs[i], qi_output_at(f->model, i));
    return st;
}
