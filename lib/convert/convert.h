/** Private to lib/convert. */
#ifndef QAT_CONVERT_CONVERT_H
#define QAT_CONVERT_CONVERT_H

#include "qat/convert.h"

/**
 * Check every limit that docs/qm-format.md sets for header, tensors and nodes. The error names the
 * value that breaks it. (Each op's kernel checks the limits of the op when the file is opened.)
 */
qat_status qat_qm_check(const qat_qgraph *graph, const qat_qm_metadata *metadata, qat_error *err);

/**
 * Like qat_qm_write_again, but the file has another graph (NULL: the model's own), whose inputs and
 * outputs are the model's. The graph gets this form.
 */
qat_status qat_qm_write_graph(const qi_host *host, qat_qgraph *graph, const qat_qm_form *form,
                              uint8_t **bytes, size_t *count, qat_error *err);

/**
 * Open bytes in the engine. isa NULL: the best of this processor; "scalar": as a device does,
 * packed codes stay packed. If the engine refuses them, the caller fails.
 */
qat_status qat_engine_open(qi_host **host, const void *qm, size_t count,
                           const qi_kernel_list *kernels, const char *isa, qat_error *err);

/**
 * A model opened with every instruction set that runs here, on one and on two threads, except the
 * best one on one thread, which qat_engine_open gives. The scalar one reads packed codes as a
 * device does.
 */
typedef struct qat_other_hosts qat_other_hosts;
qat_status qat_other_hosts_open(qat_other_hosts **hosts, const void *qm, size_t count,
                                const qi_kernel_list *kernels, qat_error *err);
void qat_other_hosts_close(qat_other_hosts *hosts);
/** Host number i; NULL after the last. */
const qi_host *qat_other_host(const qat_other_hosts *hosts, int i);

/**
 * Like qat_qm_write, with a known-answer test: the engine's outputs for these inputs (one pointer
 * per graph input, to its codes) are stored with the inputs. The file is then opened and tested.
 * bytes is set even if that test fails: free() it.
 */
qat_status qat_qm_write_answered(const qat_qgraph *graph, const qat_qm_metadata *metadata,
                                 const qi_kernel_list *kernels, const void *const *inputs,
                                 uint8_t **bytes, size_t *count, size_t *arena_bytes,
                                 qat_error *err);

/**
 * The fake_quant that gives a node of an eval graph its parameters: the node itself, or one before
 * ops that pass codes on; or NULL.
 */
const qat_node *qat_quantizer_of(const qat_node *node);

/** The layers of an integer graph, each compared with its float original (layers.c). */
typedef struct qat_layers qat_layers;
/** Borrows both graphs; eval is planned QAT_PLAN_KEEP. */
qat_status qat_layers_create(qat_layers **layers, const qat_qgraph *graph, qat_graph *eval,
                             qat_error *err);
void qat_layers_free(qat_layers *layers);
/** Compare a batch. exact has run on it; eval has its batch size set and its inputs written. */
void qat_layers_batch(qat_layers *layers, const qat_exact *exact, int batch);
int qat_layers_count(const qat_layers *layers);
const qat_layer_check *qat_layers_at(const qat_layers *layers, int i);
/** Add what was found in other samples of this layer. */
void qat_layers_join(qat_layers *layers, int i, const qat_layer_check *other);

#endif
