#include "quantized.h"
#include "convert/onnx/import.h"

#include <stdlib.h>
#include <string.h>

bool quantized_is(const node_test *t)
{
    bool found = false;
    for (int i = 0; i < t->graph->n_nodes; i++)
        found = found || strstr(t->graph->nodes[i].op, "uantizeLinear") ||
                strstr(t->graph->nodes[i].op, "QLinear") ||
                strstr(t->graph->nodes[i].op, "Integer");
    return found;
}

static bool is_codes(const qat_foreign_tensor *t)
{
    return t && (t->stored == OQ_UINT8 || t->stored == OQ_INT8);
}

bool quantized_has_codes(const node_test *t)
{
    return t->n_inputs && t->n_outputs && is_codes(t->inputs[0]) && is_codes(t->outputs[0]);
}

/** Value i of a tensor in the file's order, from channels last if it is a picture. */
static double value_of(const qat_foreign_tensor *t, size_t i)
{
    return t->type == QAT_FOREIGN_FLOAT ? (double)t->floats[i] : (double)t->ints[i];
}

static size_t place(const qat_foreign_tensor *t, size_t i)
{
    size_t const c = t->rank == 4 ? (size_t)t->dims[1] : 1;
    size_t const pixels = t->rank == 4 ? (size_t)(t->dims[2] * t->dims[3]) : 1;
    return i / (c * pixels) * c * pixels + i % pixels * c + i / pixels % c;
}

/** Constants for the inputs behind the first, but for tensors of codes if `several`. Returns how
 *  many inputs are left; which: their numbers in the test. */
static int leave_inputs(node_test *t, bool several, int which[NODE_TEST_TENSORS])
{
    qat_foreign_graph *g = t->graph;
    int n = 0;
    for (int i = 0; i < t->n_inputs; i++) {
        if (i == 0 || (several && is_codes(t->inputs[i]) && t->inputs[i]->rank > 1)) {
            which[n] = i;
            g->inputs[n++] = g->inputs[i];
        } else if (t->inputs[i]) {
            g->values[g->inputs[i]].constant = t->inputs[i];
        }
    }
    g->n_inputs = n;
    return n;
}

enum { MOST = 1 << 16 };

/** Bytes of the model's input i, from a tensor of the archive. */
static uint8_t *input_codes(const qi_model *m, int i, const qat_foreign_tensor *x)
{
    const qi_tensor *t = qi_tensor_at(m, qi_input_at(m, i));
    uint8_t *codes = calloc(x->count + 1, 8);
    float *reals = calloc(x->count + 1, sizeof *reals);
    for (size_t k = 0; codes && reals && k < x->count; k++) {
        codes[place(x, k)] = (uint8_t)(int)value_of(x, k);
        reals[place(x, k)] = (float)value_of(x, k);
    }
    if (codes && reals && t->border)
        qat_border_quantize_at(m, qi_input_at(m, i), reals, codes);
    free(reals);
    return codes;
}

static size_t count_differing(const qi_model *m, const qat_foreign_tensor *want,
                              const uint8_t *answers)
{
    static float reals[MOST];
    int32_t const tensor = qi_output_at(m, 0);
    const qi_tensor *t = qi_tensor_at(m, tensor);
    size_t differing = qat_tensor_values(t) != want->count;
    if (t->border)
        qat_border_dequantize_at(m, tensor, answers, reals);
    for (size_t i = 0; !differing && i < want->count; i++) {
        size_t const at = place(want, i);
        double const is = t->border ? (double)reals[at] : (double)qi_value_at(t->type, answers, at);
        differing += is != value_of(want, i);
    }
    return differing;
}

static qat_status run(const node_test *t, const qat_qgraph *g, int n,
                      const int which[NODE_TEST_TENSORS], size_t *differing, qat_error *err)
{
    static uint8_t answers[MOST * 8];
    qat_qm_metadata const metadata = {0};
    uint8_t *qm = NULL, *codes[NODE_TEST_TENSORS] = {NULL};
    size_t count = 0;
    qi_host *host = NULL;
    if (t->outputs[0]->count > MOST)
        return qat_fail(err, QAT_ERR_LIMIT, "a test of %zu values", t->outputs[0]->count);
    qat_status st = qat_qm_write(g, &metadata, &qm, &count, err);
    if (!st)
        st = qi_host_open_bytes(&host, qm, count, t->folder, NULL, err);
    for (int i = 0; i < n && !st; i++) {
        codes[i] = input_codes(qi_host_model(host), i, t->inputs[which[i]]);
        st = codes[i] ? QAT_OK : qat_out_of_memory(err, t->folder);
    }
    if (!st) {
        qi_host_run(host, (const void *const *)codes, (void *[]){answers});
        *differing = count_differing(qi_host_model(host), t->outputs[0], answers);
    }
    for (int i = 0; i < n; i++)
        free(codes[i]);
    qi_host_close(host);
    free(qm);
    return st;
}

qat_status quantized_compare(const char *folder, int *inputs, size_t *differing, qat_error *err)
{
    qat_status st = QAT_ERR_UNSUPPORTED;
    for (int several = 1; several >= 0 && st; several--) {
        node_test t;
        int which[NODE_TEST_TENSORS];
        qat_qgraph *g = NULL;
        st = node_test_read(&t, folder, err);
        if (!st) {
            *inputs = leave_inputs(&t, several, which);
            st = oq_import(&g, t.graph, err);
        }
        if (!st)
            st = run(&t, g, *inputs, which, differing, err);
        qat_qgraph_free(g);
        node_test_free(&t);
    }
    return st;
}
