/**
 * Custom layers from C, from training to the exported model.
 *
 *     custom_net libswish.so libposition_scale.so
 *
 * A small network with both layers learns which half of a picture is brighter. It is trained and
 * exported once for each layout and profile. The export compares every byte of every tensor, on the
 * engine and in the exact evaluation, for 64 pictures.
 */
#include "qat/convert.h"
#include "qat/plugin.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 32, SIDE = 8, STEPS = 60, SAMPLES = 64 };

static const float mean[] = {127.5f}, std[] = {127.5f};

/** Draw a picture whose left half (label 0) or right half (label 1) is brighter. Return the label.
 */
static int draw(uint8_t *pixels, unsigned index)
{
    int const label = (int)(index % 2);
    for (unsigned i = 0; i < SIDE * SIDE; i++) {
        int const right = i % SIDE >= SIDE / 2;
        pixels[i] = (uint8_t)((index * 2654435761u + i * 40503u) % 160 + (right == label ? 80 : 0));
    }
    return label;
}

static qat_node *build(qat_graph *g)
{
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, SIDE, SIDE, 1));
    x = qat_apply1(g, "position_scale", "vignette", "", x);
    x = qat_apply1(g, "conv2d", "conv", "filters=8 kernel=3 stride=2", x);
    x = qat_apply1(g, "batch_norm", "conv/bn", "", x);
    x = qat_apply1(g, "swish", "conv/swish", "beta=1.5", x);
    x = qat_apply1(g, "flatten", "flat", "", x);
    x = qat_apply1(g, "fully_connected", "logits", "units=2", x);
    qat_graph_output(g, x);
    qat_node *label = qat_graph_input(g, "label", QAT_SHAPE(1));
    return qat_apply2(g, "softmax_cross_entropy", "loss", "", x, label);
}

static qat_status train(qat_graph *g, float *last_loss, qat_error *err)
{
    qat_optimizer_options const options = qat_optimizer_defaults(QAT_OPTIMIZER_SGD);
    qat_optimizer *optimizer = NULL;
    qat_node *image = qat_graph_find(g, "image"), *label = qat_graph_find(g, "label");
    qat_node *loss = qat_graph_find(g, "loss");
    float values[256];
    qat_pixel_values(1, mean, std, values);
    qat_graph_init_params(g, 1);
    qat_status st = qat_optimizer_create(&optimizer, g, &options, err);
    for (int step = 0; !st && step < STEPS; step++) {
        qat_run const run = {.mode = QAT_MODE_TRAIN, .step = step, .seed = 1};
        for (unsigned n = 0; n < BATCH; n++) {
            uint8_t pixels[SIDE * SIDE];
            label->value[n] = (float)draw(pixels, (unsigned)step * BATCH + n);
            for (unsigned i = 0; i < SIDE * SIDE; i++)
                image->value[n * SIDE * SIDE + i] = values[pixels[i]];
        }
        qat_graph_forward(g, &run);
        *last_loss = loss->value[0];
        qat_graph_backward(g, loss, &run);
        qat_optimizer_step(optimizer, 0.05);
        qat_graph_update(g, &run);
    }
    qat_optimizer_free(optimizer);
    return st;
}

struct pictures {
    unsigned done;
    uint8_t pixels[BATCH * SIDE * SIDE];
    const void *inputs[1];
};

static qat_status next_pictures(void *context, int max_batch, qat_export_batch *batch,
                                qat_error *err)
{
    (void)err;
    struct pictures *p = context;
    batch->count = p->done < SAMPLES ? (max_batch < BATCH ? max_batch : BATCH) : 0;
    for (int n = 0; n < batch->count; n++)
        draw(p->pixels + n * SIDE * SIDE, 100000 + p->done++);
    p->inputs[0] = p->pixels;
    batch->inputs = p->inputs;
    return QAT_OK;
}

/** Train and export in one scheme; prints a line. */
static qat_status try_scheme(const qat_registry *registry, const qi_kernel_list *kernels,
                             qat_layout layout, qat_profile profile, qat_error *err)
{
    qat_graph *g = NULL, *training = NULL, *eval = NULL;
    qat_quant_options options = qat_quant_defaults();
    qat_export_result result = {0};
    struct pictures pictures = {0};
    qat_export_options export = {.profile = profile,
                                 .channels = 1,
                                 .mean = mean,
                                 .std = std,
                                 .kernels = kernels,
                                 .max_batch = BATCH,
                                 .next = next_pictures,
                                 .next_context = &pictures,
                                 .metadata = {.description = "custom layers"}};
    float loss = 0;
    options.layout = layout;
    qat_status st = qat_graph_create(&g, registry, err);
    if (!st) {
        build(g);
        st = qat_graph_check(g, err);
    }
    if (!st)
        st = qat_create_training_graph(&training, g, &options, err);
    if (!st)
        st = qat_graph_plan(training, BATCH, QAT_PLAN_TRAIN, err);
    if (!st)
        st = qat_graph_set_batch(training, BATCH, err);
    if (!st)
        st = train(training, &loss, err);
    if (!st)
        st = qat_create_eval_graph(&eval, g, &options, err);
    if (!st)
        st = qat_graph_plan(eval, BATCH, QAT_PLAN_KEEP, err);
    if (!st) {
        qat_graph_copy_params(eval, training);
        st = qat_export(&result, eval, &export, err);
    }
    if (!st)
        printf("%s, %s: loss %.3f, %zu bytes of .qm, %lld bytes compared, %lld differ\n",
               layout == QAT_LAYOUT_INT8 ? "int8" : "uint8",
               profile == QAT_PROFILE_TFLITE ? "tflite" : "paper", (double)loss, result.qm_bytes,
               (long long)result.compare.bytes, (long long)result.compare.differing);
    free(result.qm);
    qat_graph_free(eval);
    qat_graph_free(training);
    qat_graph_free(g);
    return st;
}

int main(int argc, char **argv)
{
    qat_error err = {0};
    qat_registry *registry = NULL;
    qat_plugins *plugins = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: custom_net libswish.so libposition_scale.so\n");
        return 2;
    }
    qat_status st = qat_registry_create(&registry, &err);
    if (!st)
        st = qat_plugins_create(&plugins, &err);
    for (int i = 1; !st && i < argc; i++)
        st = qat_plugins_open(plugins, argv[i], registry, &err);
    for (int scheme = 0; !st && scheme < 4; scheme++)
        st = try_scheme(registry, qat_plugins_kernels(plugins), (qat_layout)(scheme & 1),
                        (qat_profile)(scheme >> 1), &err);
    if (st)
        fprintf(stderr, "custom_net: %s\n", err.message);
    qat_registry_free(registry);
    qat_plugins_free(plugins);
    return st ? EXIT_FAILURE : EXIT_SUCCESS;
}
