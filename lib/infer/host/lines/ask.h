/**
 * Answers of the core. A driver that replaces an op by tables or lines asks the core's kernel for
 * the codes that it must give.
 */
#ifndef QI_HOST_ASK_H
#define QI_HOST_ASK_H

#include "infer/host/loops/elementwise.h"

enum { QI_CHUNK = 16 };

/**
 * Run the kernel of a node on other tensors. Its scratch is that of add, sub and mul, which is
 * enough for QI_TABLE codes; kernels without scratch may have any size.
 * @param tensors  its inputs in order, then its only output: types and codes of the node's, any
 *                 dims
 * @param in       the bytes of each input
 */
void qi_ask(const qi_model *model, const qi_node *node, qi_tensor *tensors, const void *const *in,
            uint8_t *answers);

/**
 * The answers of a node to all 256 bytes: its inputs and its output have QI_TABLE codes, but for
 * inputs of a single value, which stay so.
 */
void qi_ask_bytes(const qi_model *model, const qi_node *node, const void *const *in,
                  uint8_t answers[QI_TABLE]);

/**
 * answers[u][i] of add, sub or mul for the byte first + i of input `row` and the code u (0..255, as
 * unsigned) of the other input.
 */
void qi_ask_pairs(const qi_model *model, const qi_node *node, int row, int first,
                  uint8_t answers[QI_TABLE][QI_CHUNK]);

#endif
