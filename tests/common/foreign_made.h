/** Foreign networks for tests, made node by node, built and run. */
#ifndef QAT_TESTS_FOREIGN_MADE_H
#define QAT_TESTS_FOREIGN_MADE_H

#include "foreign/foreign.h"

enum { MADE_MOST = 16 };

/** A network of value 0, its input, and nodes one after the other; the last one is the output. */
typedef struct made_network {
    qat_foreign_graph graph;
    qat_foreign_node nodes[MADE_MOST];
    qat_foreign_value values[MADE_MOST];
    qat_foreign_tensor constants[MADE_MOST];
    qat_foreign_attr attrs[MADE_MOST][6];
    int64_t cuts[MADE_MOST][4]; /* of a Slice: start, end, axis, step */
    int wires[MADE_MOST][4];    /* of a node: up to three inputs, an output */
    int input, output;
} made_network;

void made_begin(made_network *n, int rank, const int64_t *dims);

/** A constant, of floats or of ints, which must outlive the network. Returns its value. */
int made_constant(made_network *n, int rank, const int64_t *dims, const float *floats,
                  const int64_t *ints);
int made_list(made_network *n, int64_t count, const int64_t *ints);
/** A node; the value of its output. -1: no input. */
int made_node(made_network *n, const char *op, int a, int b, int c);

/** Add an attribute to the last node. */
void made_attr(made_network *n, qat_foreign_attr a);
void made_int(made_network *n, const char *name, int64_t i);
void made_text(made_network *n, const char *name, const char *text);
void made_ints(made_network *n, const char *name, size_t count, const int64_t *ints);

/** Building it for data of h, w, c is refused with these words. */
void made_refuses(made_network *n, int h, int w, int c, const char *words);
/**
 * Run it on two samples of data, x and x + 1: `want` is the answer for x, `more` what x + 1 adds to
 * it (NAN: sample 1 is not looked at).
 */
void made_gives(made_network *n, int h, int w, int c, const float *x, int count, const float *want,
                float more);

/** 1 to 32 */
extern const float made_counted[32];

#endif
