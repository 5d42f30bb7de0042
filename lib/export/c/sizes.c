/**
 * What a C file takes on a processor of 32 bits. Data are counted to the byte. Code is added up: of
 * each function of the kernels that the network needs, the bytes that tests/c_source/code_bytes.sh
 * has measured, and a few bytes for each layer.
 */
#include "export/c/out.h"

#include <string.h>

const char *const qat_c_core_names[QAT_C_CORES] = {"cortex-m0plus", "cortex-m3",  "cortex-m4",
                                                   "cortex-m7",     "cortex-m55", "riscv32"};
const char *const co_features[CO_FEATURES] = {"QK_FRACTION",     "QK_WIDE",        "QK_PACKED",
                                              "QK_NARROW_SHIFT", "QK_DOUBLE",      "QK_EVEN",
                                              "QK_ONCE",         "QK_FEW_CHANNELS"};

/* the deepest stack of the networks of tests/c_source/ten_networks.sh, rounded up */
static const size_t stacks[QAT_C_CORES] = {1200, 900, 800, 800, 1000, 1000};

/* ------------------------------------------------------------------ code */

static int features_of(const co *o)
{
    int features = 0;
    for (int i = 0; i < CO_FEATURES; i++)
        features |= co_needs_feature(o, co_features[i]) << i;
    return features;
}

static int differences(int a, int b)
{
    int n = 0;
    for (int bits = a ^ b; bits; bits &= bits - 1)
        n++;
    return n;
}

/** The row of a function with these features, or with the most similar ones. */
static const co_code_row *row_of(co_span name, int features)
{
    const co_code_row *found = NULL;
    int least = CO_FEATURES + 1;
    for (const co_code_row *row = co_code_rows; row->name; row++) {
        int const distance = row->features == CO_ANY ? 1 : differences(row->features, features);
        if (co_span_is(name, row->name) && distance < least) {
            least = distance;
            found = row;
        }
    }
    return found;
}

/** The functions among the needed pieces. */
static void add_kernels(const co *o, size_t code[QAT_C_CORES])
{
    int const features = features_of(o);
    for (int i = 0; i < o->pieces.n_names; i++) {
        const co_name *name = &o->pieces.names[i];
        const co_code_row *row =
            o->pieces.pieces[name->piece].is_needed ? row_of(name->name, features) : NULL;
        for (int core = 0; row && core < QAT_C_CORES; core++)
            code[core] += row->bytes[core];
    }
}

static void add_rest(const co *o, size_t code[QAT_C_CORES])
{
    float const counts[CO_TERMS] = {
        1,
        (float)qi_node_count(o->model),
        (float)o->places,
        (float)o->parts,
        (float)(qi_input_count(o->model) + qi_output_count(o->model)),
        (float)qi_state_count(o->model),
        o->digests ? 1 : 0,
    };
    for (int core = 0; core < QAT_C_CORES; core++) {
        float sum = 0;
        for (int i = 0; i < CO_TERMS; i++)
            sum += counts[i] * co_code_terms[core][i];
        code[core] += sum > 0 ? (size_t)sum : 0;
    }
}

/* ------------------------------------------------------------------ data */

static size_t constants_of(const co *o)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < qi_tensor_count(o->model); i++)
        bytes += o->constants[i].name[0] ? qi_tensor_at(o->model, i)->bytes : 0;
    return o->options.separate_weights ? o->weights.count : bytes;
}

static size_t parameters_of(const co *o)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < qi_node_count(o->model); i++)
        if (!o->layers[i].is_nothing && o->layers[i].same == i)
            bytes += (size_t)co_structs_of(&o->layers[i]) *
                     co_device_bytes(&o->pieces, o->layers[i].code->type);
    return bytes;
}

static size_t test_of(const co *o)
{
    size_t bytes = (size_t)qi_node_count(o->model) * sizeof *o->digests;
    for (int32_t i = 0; i < qi_input_count(o->model); i++)
        bytes += qi_tensor_at(o->model, qi_input_at(o->model, i))->bytes;
    return o->digests ? bytes * (size_t)o->steps : 0;
}

void co_measure(co *o)
{
    qat_c_sizes *s = &o->sizes;
    *s = (qat_c_sizes){.constants = constants_of(o),
                       .parameters = parameters_of(o),
                       .test = test_of(o),
                       .arena = o->arena_bytes};
    memcpy(s->stack, stacks, sizeof stacks);
    add_kernels(o, s->code);
    add_rest(o, s->code);
}
