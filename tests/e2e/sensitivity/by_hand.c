/**
 * What qat-debug --sensitivity prints, by hand: for each layer named, the main figure with this
 * layer alone in float, of the graph that simulates; and with this layer alone at fewer bits, of
 * the exact evaluation, which is not the engine.
 *
 *     by_hand CKPT BITS SAMPLES none|LAYER...
 */
#include "checkpoint/restore.h"
#include "qat/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 50 };

static qat_error err;

static void must(qat_status st)
{
    if (!st)
        return;
    fprintf(stderr, "by_hand: %s\n", err.message);
    exit(1);
}

static double figure_of(qat_restored *r, const qat_dataset *data, const char *layer, int bits,
                        int64_t samples)
{
    qat_deploy_options const none = {0};
    const qat_input_info *input = &r->checkpoint->input;
    qat_quant_options *quant = &r->checkpoint->quant;
    int const layers = quant->n_layers;
    qat_accuracy a;
    qat_graph *eval;
    qat_qgraph *graph = NULL;
    if (strcmp(layer, "none") != 0) {
        qat_quant_layer *own = &quant->layers[quant->n_layers++];
        *own = qat_quant_layer_defaults(layer);
        own->weight_bits = own->activation_bits = bits;
        own->is_float = bits == 0;
    }
    must(qat_restored_eval_graph(r, &none, BATCH, &eval, &err));
    if (bits) {
        must(qat_restored_freeze(r, &none, eval, &graph, &err));
        must(qat_evaluate_exact(graph, r->registry, input, data, BATCH, samples, NULL, NULL, &a,
                                &err));
    } else
        must(qat_evaluate_graph(eval, input, data, BATCH, samples, NULL, NULL, &a, &err));
    qat_qgraph_free(graph);
    qat_graph_free(eval);
    quant->n_layers = layers;
    return qat_main_figure(&a);
}

int main(int argc, char **argv)
{
    qat_restored *r;
    qat_dataset *data;
    if (argc < 5) {
        fprintf(stderr, "usage: by_hand CKPT BITS SAMPLES none|LAYER...\n");
        return 2;
    }
    int const bits = atoi(argv[2]), samples = atoi(argv[3]);
    must(qat_restore(&r, argv[1], NULL, 0, &err));
    must(qat_recipe_open_data(&data, qat_restored_recipe(r), NULL, QAT_SPLIT_TEST, &err));
    for (int i = 4; i < argc; i++)
        printf("%s,%.9g,%.9g\n", argv[i], figure_of(r, data, argv[i], 0, samples),
               figure_of(r, data, argv[i], bits, samples));
    qat_dataset_close(data);
    qat_restored_free(r);
    return 0;
}
