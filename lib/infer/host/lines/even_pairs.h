/** add and mul with rounding EVEN, pair by pair, by the core's functions of two codes. */
#ifndef QI_HOST_EVEN_PAIRS_H
#define QI_HOST_EVEN_PAIRS_H

#include "infer/kernels/parts/pairs_layer.h"
#include "infer/model/op.h"

/** What qk_add_even reads of an add, and qk_product_even of a mul. */
qk_pairs qi_even_sum_of(const qi_model *model, const qi_node *node);
qk_pairs qi_even_product_of(const qi_model *model, const qi_node *node);

/** The codes of n pairs of bytes. */
void qi_even_sums(const qi_model *model, const qi_node *node, const uint8_t *a, const uint8_t *b,
                  uint8_t *y, size_t n);
void qi_even_products(const qi_model *model, const qi_node *node, const uint8_t *a,
                      const uint8_t *b, uint8_t *y, size_t n);

#endif
