/**
 * Row bands: the first layers of a network run band by band of the rows of the last of them. So of
 * the large tensors at the start of a network only some rows are in memory at a time. (Lin et al.,
 * MCUNetV2: Memory-efficient patch-based inference for tiny deep learning, 2021.)
 *
 *        rows of the input       layers of the stage       rows of the stage's output
 *     | --------- band 0 -- | ->  ..  ->  | -- | ->
 *            | -- band 1 --------- | ->  ..  ->  | -- | ->   concat  -> the layers after the stage
 *                   | --------- band 2 -- | ->  ..  ->  | -- | ->
 *
 * The rows that two bands need are computed twice. A band is a run of ops like any other: slices of
 * the input, the stage's ops with other pads, and one concat. Slices and concat copy nothing where
 * the planner makes their rows parts of the whole tensor (infer/model/share.c).
 *
 * Tensors of at most 4 bits can lie packed: two codes in a byte, or four of at most 2 bits
 * (pack.c). Then every op that makes or reads one is a stage. A band of such a tensor is unpacked
 * at a time. No row is computed twice, but rows that two bands need are unpacked twice.
 */
#ifndef QAT_BANDS_BANDS_H
#define QAT_BANDS_BANDS_H

#include "qat/export.h"
#include "qat/quant.h"

/** The rows first .. end-1 of a tensor [1, H, W, C]; first = end: none. */
typedef struct qat_rows {
    int32_t first, end;
} qat_rows;

/* ------------------------------------------------------------------ reach.c */

/** Can the op compute some rows of its output from some rows of its inputs? */
bool qat_op_has_rows(const qat_qgraph *graph, const qat_qop *op);
/** Is input i cut into rows, or does the op need all of it for any row? */
bool qat_input_has_rows(const qat_qgraph *graph, const qat_qop *op, int i);
/** The rows of such an input that the op needs for some rows of its output; none: only padding. */
qat_rows qat_rows_needed(const qat_qgraph *graph, const qat_qop *op, qat_rows output);
/** Change the parameters of the op so that it makes rows `output` of rows `input`. */
void qat_set_rows(const qat_qgraph *graph, qat_qop *op, qat_rows input, qat_rows output);

/* ------------------------------------------------------------------ stage.c */

/** The ops first .. last of a graph, run for so many rows of the last one's output at a time. */
typedef struct qat_stage {
    int first, last;
    int32_t rows;
} qat_stage;

/** The output of the stage, of which the bands are. */
int qat_stage_output(const qat_qgraph *graph, const qat_stage *stage);
int32_t qat_stage_bands(const qat_qgraph *graph, const qat_stage *stage);
/**
 * Can these ops be run in bands? All of them have rows, and only the last one's output is needed
 * outside.
 */
bool qat_stage_is_valid(const qat_qgraph *graph, int first, int last);
/** Does the tensor leave the ops: as an output, as what a state becomes, or to the epilogue? */
bool qat_is_result(const qat_qgraph *graph, int tensor);

/* ------------------------------------------------------------------ build.c */

/** A graph that computes the same, and what its tensors and ops were made of. */
typedef struct qat_banded {
    qat_qgraph *graph;
    int *tensor_from; /* for each tensor, the one of the first graph whose codes it has */
    int *op_from; /* for each op, the one of the first graph; -1: a slice, concat, pack or unpack */
} qat_banded;

/**
 * Can a valid stage be cut into bands: are they few enough, and does none need only padding?
 * @param need  room for the rows of each tensor
 */
bool qat_stage_has_bands(const qat_qgraph *graph, const qat_stage *stage, qat_rows *need);
/**
 * Make the graph. QAT_ERR_UNSUPPORTED: a stage has no bands, or there are too many ops.
 * @param stages  valid ones, from the first op to the last; they share no op
 */
qat_status qat_banded_build(qat_banded *banded, const qat_qgraph *graph, const qat_stage *stages,
                            int n_stages, qat_error *err);
void qat_banded_free(qat_banded *banded);

/* ------------------------------------------------------------------ pack.c */

/** Does the tensor take less if it is packed, and can it be: is it made by an op that has rows? */
bool qat_can_pack(const qat_qgraph *graph, int tensor);
/**
 * Make the graph in which the chosen tensors, which can be packed, are packed by op pack. The ops
 * that make or read one run in bands of so many rows.
 * @param chosen  by tensor
 */
qat_status qat_packed_build(qat_banded *packed, const qat_qgraph *graph, const bool *chosen,
                            int32_t rows, qat_error *err);

/* ------------------------------------------------------------------ measure.c */

/**
 * The RAM and the multiply-adds of a graph, without making a model of it.
 * @param device  the model of the first graph, as a device has it
 */
qat_status qat_banded_measure(const qat_banded *banded, const qi_model *device, size_t *ram,
                              int64_t *macs, qat_error *err);

/* ------------------------------------------------------------------ check.c */

/**
 * Open the bytes of a model in row bands, by the best loops of this processor and as a device does.
 * Its outputs must be those of the model, in runs of random inputs one after the other. On a device
 * it must take no more than `ram`.
 */
qat_status qat_banded_check(const qi_host *model, const uint8_t *bytes, size_t count, size_t ram,
                            const qi_kernel_list *kernels, qat_error *err);

#endif
