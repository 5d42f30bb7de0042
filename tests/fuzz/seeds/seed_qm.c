/**
 * Writes the seeds of fuzz_qm. Every golden operator case (random numbers) of at most MOST_BYTES
 * becomes a one-op model. Models of pictures are written once more, from pixels and with all
 * metadata: preprocessing, labels, a known answer.
 *
 * usage: seed_qm GOLDEN-OPS-FOLDER OUT-FOLDER
 */
#include "golden/case_graph.h"
#include "qat/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 6000, PATH_BYTES = 1024, MOST_CHANNELS = 4 };

static int write_file(const char *folder, const char *name, const uint8_t *bytes, size_t count)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    int const ok = file && fwrite(bytes, 1, count, file) == count;
    return file && fclose(file) == 0 && ok;
}

/** Outputs of the model for one input; 0: it does not open. */
static int answer(const uint8_t *qm, size_t count, const void *input, void **output)
{
    qi_host *host = NULL;
    if (qi_host_open_bytes(&host, qm, count, "seed", NULL, NULL) != QAT_OK)
        return 0;
    *output =
        malloc(qi_tensor_at(qi_host_model(host), qi_output_at(qi_host_model(host), 0))->bytes);
    if (*output)
        qi_host_run(host, &input, output);
    qi_host_close(host);
    return *output != NULL;
}

/** Write the model again with a known answer: an input, and the engine's output for it. */
static int write_with_answer(const qat_qgraph *g, qat_qm_metadata *metadata, const char *folder,
                             const char *name)
{
    qat_error err;
    uint8_t *qm = NULL;
    size_t count = 0;
    void *output = NULL, *input = calloc(qat_qtensor_bytes(&g->tensors[g->inputs[0]]), 1);
    int ok = input && qat_qm_write(g, metadata, &qm, &count, &err) == QAT_OK &&
             answer(qm, count, input, &output);
    free(qm);
    qm = NULL;
    metadata->kat_inputs = (const void *const *)&input;
    metadata->kat_outputs = (const void *const *)&output;
    ok = ok && qat_qm_write(g, metadata, &qm, &count, &err) == QAT_OK &&
         write_file(folder, name, qm, count);
    free(qm);
    free(input);
    free(output);
    return ok;
}

/** The graph behind a table from pixels. */
static int write_picture(qat_qgraph *g, const char *folder, const char *name)
{
    static const char *const labels[] = {"cat", "dog", ""};
    static const float mean[MOST_CHANNELS] = {128, 120, 110, 1},
                       std[MOST_CHANNELS] = {64, 60, 50, 1};
    const qat_qtensor *x = &g->tensors[g->inputs[0]];
    qat_qm_metadata metadata = {.description = "a seed",
                                .labels = labels,
                                .n_labels = 3,
                                .digest = {1, 2, 3},
                                .preprocessing = {.kind = 1,
                                                  .height = x->dims[1],
                                                  .width = x->dims[2],
                                                  .channels = x->dims[3],
                                                  .resize_short = 40,
                                                  .channel_order = x->dims[3] == 3}};
    qat_error err;
    memcpy(metadata.preprocessing.mean_bits, mean, sizeof mean);
    memcpy(metadata.preprocessing.std_bits, std, sizeof std);
    return qat_qgraph_add_input_table(g, x->dims[3], mean, std, &err) == QAT_OK &&
           write_with_answer(g, &metadata, folder, name);
}

static int is_picture(const qat_qgraph *g)
{
    const qat_qtensor *x = &g->tensors[g->inputs[0]];
    return g->n_inputs == 1 && x->rank == 4 && x->dims[0] == 1 && x->dims[3] <= MOST_CHANNELS;
}

/** Write a graph in long records, which mutations know, or in compact ones; its bytes, 0: failed.
 */
static size_t write_form(qat_qgraph *g, bool fixed, const char *op, const char *folder,
                         const char *name)
{
    qat_qm_metadata const metadata = {.description = op};
    uint8_t *qm = NULL;
    size_t count = 0;
    qat_error err;
    g->form.fixed = fixed;
    bool const ok = qat_qm_write(g, &metadata, &qm, &count, &err) == QAT_OK &&
                    (count > MOST_BYTES || write_file(folder, name, qm, count));
    free(qm);
    return ok ? count : 0;
}

/** The case as two seeds, or as three; 1 unless something failed. */
static int write_case(const char *golden, const char *name, const char *op, const char *folder)
{
    char path[PATH_BYTES];
    struct case_graph c;
    qat_error err;
    snprintf(path, sizeof path, "%s/%s", golden, name);
    qat_status const st = case_graph_load(&c, path, op, &err);
    size_t bytes = 0;
    if (st == QAT_OK) {
        snprintf(path, sizeof path, "%s_compact", name);
        bytes = write_form(c.graph, false, op, folder, path);
    }
    if (bytes)
        bytes = write_form(c.graph, true, op, folder, name);
    int ok = bytes != 0;
    if (ok && bytes <= MOST_BYTES && is_picture(c.graph)) {
        snprintf(path, sizeof path, "%s_picture", name);
        ok = write_picture(c.graph, folder, path);
    }
    case_graph_free(&c);
    return ok || st == QAT_ERR_UNSUPPORTED;
}

/* ------------------------------------------------------------------ ops that no case holds */

/** One activation of shape [2, 6, 6, 4]. */
static int activation(qat_qgraph *g, int32_t zero_point)
{
    qat_error err;
    qat_qtensor const t = {.name = "t",
                           .type = QI_S8,
                           .bits = 8,
                           .rank = 4,
                           .dims = {2, 6, 6, 4},
                           .scale = 0.0078125f,
                           .zero_point = zero_point,
                           .source_index = -1};
    return qat_qgraph_tensor(g, &t, &err);
}

/** logistic or tanh, as training's own profile has them. */
static int write_sigmoid(const char *op, int32_t y_zero_point, const char *folder)
{
    static const int32_t params[] = {1 << 30, 20, 127}; /* mult, shift, radius */
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    if (!g)
        return 0;
    g->form.fixed = true;
    int const x = activation(g, 3), y = activation(g, y_zero_point);
    qat_qm_metadata metadata = {.description = op};
    int const ok =
        x >= 0 && y >= 0 &&
        qat_qgraph_op(g, op, "layer", QI_ROUND_NONE, 1, &x, 1, &y, 3, params, 0, &err) >= 0 &&
        qat_qgraph_set_io(g, 1, &x, 1, &y, &err) == QAT_OK &&
        write_with_answer(g, &metadata, folder, op);
    qat_qgraph_free(g);
    return ok;
}

/** pack and unpack: 4-bit codes, two to a byte and back. */
static int write_shared_bytes(const char *folder)
{
    qat_error err;
    qat_qgraph *g = qat_qgraph_new();
    if (!g)
        return 0;
    g->form.fixed = true;
    int const x = activation(g, -1), bytes = activation(g, 0), y = activation(g, -1);
    qat_qm_metadata metadata = {.description = "pack, unpack"};
    int ok = x >= 0 && bytes >= 0 && y >= 0;
    if (ok) {
        g->tensors[x].bits = g->tensors[y].bits = 4;
        g->tensors[bytes].type = QI_U8;
        g->tensors[bytes].dims[3] /= 2;
        ok = qat_qgraph_op(g, "pack", "pack", QI_ROUND_NONE, 1, &x, 1, &bytes, 0, NULL, 0, &err) >=
                 0 &&
             qat_qgraph_op(g, "unpack", "unpack", QI_ROUND_NONE, 1, &bytes, 1, &y, 0, NULL, 0,
                           &err) >= 0 &&
             qat_qgraph_set_io(g, 1, &x, 1, &y, &err) == QAT_OK &&
             write_with_answer(g, &metadata, folder, "pack_unpack");
    }
    qat_qgraph_free(g);
    return ok;
}

/* ------------------------------------------------------------------ packed weights */

enum { INPUTS = 23, OUTPUTS = 4 };

/** Codes of so many bits: `different` of them, in turn. scales: of outputs, or NULL */
static int weights(qat_qgraph *g, int bits, int different, float *scales, int64_t *largest)
{
    qat_error err;
    uint8_t codes[OUTPUTS * INPUTS];
    qat_qtensor const t = {.name = "w",
                           .type = QI_S8,
                           .bits = bits,
                           .rank = 2,
                           .dims = {OUTPUTS, INPUTS},
                           .scale = scales ? scales[0] : 0.0078125f,
                           .channel_scales = scales,
                           .n_channels = scales ? OUTPUTS : 0,
                           .data = codes,
                           .source_index = -1};
    *largest = 0;
    for (int o = 0; o < OUTPUTS; o++) {
        int64_t sum = 0;
        for (int i = 0; i < INPUTS; i++) {
            int const code = (i + o) % different - different / 2;
            codes[o * INPUTS + i] = (uint8_t)code;
            sum += 131 * abs(code);
        }
        *largest = sum > *largest ? sum : *largest;
    }
    return qat_qgraph_tensor(g, &t, &err);
}

static int row(qat_qgraph *g, int values)
{
    qat_error err;
    qat_qtensor const t = {.name = "t",
                           .type = QI_S8,
                           .bits = 8,
                           .rank = 2,
                           .dims = {1, values},
                           .scale = 0.0078125f,
                           .zero_point = 3,
                           .source_index = -1};
    return qat_qgraph_tensor(g, &t, &err);
}

/** A constant of one int32 for each output. */
static int of_channels(qat_qgraph *g, const char *name, const int32_t values[OUTPUTS])
{
    qat_error err;
    return qat_qgraph_constant_s32(g, name, OUTPUTS, 1, values, &err);
}

/** fully_connected with packed weights; per channel in the compact form. */
static int write_packed(int bits, int different, qat_qm_form form, const char *folder)
{
    static const int32_t clamp[] = {-128, 127}, zeros[OUTPUTS] = {0}, one = 1 << 30, by = -6;
    static const int32_t mult[OUTPUTS] = {1 << 30, 3 << 29, 5 << 28, 7 << 28},
                         shift[OUTPUTS] = {-6, -6, -7, -8};
    char name[32];
    float scales[OUTPUTS]; /* follow from the multipliers: x and y have equal scales */
    qat_error err;
    int64_t largest = 0;
    for (int o = 0; o < OUTPUTS; o++)
        scales[o] = ldexpf((float)mult[o], shift[o] - 31);
    qat_qgraph *g = qat_qgraph_new();
    if (!g)
        return 0;
    qat_qm_metadata metadata = {.description = "packed"};
    snprintf(name, sizeof name, "packed_%d_%d%s", bits, different,
             !form.fixed    ? "_compact"
             : form.without ? "_short"
                            : "");
    g->form = form;
    int const in[] = {row(g, INPUTS),
                      weights(g, bits, different, form.fixed ? NULL : scales, &largest),
                      of_channels(g, "bias", zeros),
                      form.fixed ? qat_qgraph_constant_s32(g, "mult", 1, 1, &one, &err)
                                 : of_channels(g, "mult", mult),
                      form.fixed ? qat_qgraph_constant_s32(g, "shift", 1, 1, &by, &err)
                                 : of_channels(g, "shift", shift)};
    int const y = row(g, OUTPUTS);
    int const ok = qat_qgraph_op(g, "fully_connected", "layer", QI_ROUND_TWICE, 5, in, 1, &y, 2,
                                 clamp, largest, &err) >= 0 &&
                   qat_qgraph_set_io(g, 1, in, 1, &y, &err) == QAT_OK &&
                   write_with_answer(g, &metadata, folder, name);
    qat_qgraph_free(g);
    return ok;
}

/** Every packing: of all codes of some bits, of three codes, of two, of a list of nine. */
static int write_all_packed(const char *folder)
{
    qat_qm_form const fixed = {.fixed = true}, compact = {0};
    qat_qm_form const bare = {.fixed = true, .without = QAT_QM_NAMES | QAT_QM_SCALES};
    int failures = !write_packed(2, 3, fixed, folder) + !write_packed(2, 2, fixed, folder) +
                   !write_packed(6, 9, fixed, folder);
    failures += !write_packed(4, 16, bare, folder) + !write_packed(4, 16, compact, folder) +
                !write_packed(2, 3, compact, folder);
    for (int bits = 2; bits < 8; bits++)
        failures += !write_packed(bits, 1 << bits, fixed, folder);
    return failures;
}

int main(int argc, char **argv)
{
    char index[PATH_BYTES], name[128], op[64];
    int failures;
    if (argc != 3) {
        fprintf(stderr, "usage: seed_qm GOLDEN-OPS-FOLDER OUT-FOLDER\n");
        return 2;
    }
    failures = !write_sigmoid("logistic", -128, argv[2]) + !write_sigmoid("tanh", 0, argv[2]) +
               !write_shared_bytes(argv[2]) + write_all_packed(argv[2]);
    snprintf(index, sizeof index, "%s/index.txt", argv[1]);
    FILE *file = fopen(index, "r");
    if (!file) {
        fprintf(stderr, "%s: cannot be opened\n", index);
        return 1;
    }
    while (fscanf(file, "%127s %63s", name, op) == 2)
        if (case_graph_knows(op) && !write_case(argv[1], name, op, argv[2])) {
            fprintf(stderr, "%s: no seed\n", name);
            failures++;
        }
    fclose(file);
    return failures != 0;
}
