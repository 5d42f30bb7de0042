/** Small integer networks for the engine's tests: built as a qat_qgraph, written, opened. */
#ifndef QAT_TESTS_INFER_BUILD_H
#define QAT_TESTS_INFER_BUILD_H

#include "qat/convert.h"

#include <stdbool.h>
#include <stdint.h>

/** Random numbers that are the same everywhere. */
uint32_t test_random(uint64_t *seed);
/** lo..hi */
int32_t test_random_in(uint64_t *seed, int32_t lo, int32_t hi);

/** Type, bits and zero_point of codes. */
typedef struct codes_of {
    qi_type type;
    int bits;
    int32_t zero_point;
} codes_of;

int32_t codes_lo(codes_of c);
int32_t codes_hi(codes_of c);
codes_of random_codes(uint64_t *seed);

/** Append an activation; its index. */
int net_activation(qat_qgraph *g, codes_of c, int rank, const int32_t *dims);
/** Append a constant of random codes; data (may be NULL) gets a pointer to them. */
int net_constant(qat_qgraph *g, codes_of c, int rank, const int32_t *dims, uint64_t *seed,
                 const uint8_t **data);
int net_s32(qat_qgraph *g, int rows, int columns, const int32_t *values);
void net_op(qat_qgraph *g, const char *op, qi_rounding rounding, int n_inputs, const int *inputs,
            int output, int n_params, const int32_t *params, int64_t max_accumulator);
void net_io(qat_qgraph *g, int input, int output);

/** The bytes of g as a .qm, with a label and, if kat_input, a known answer; free() them. */
uint8_t *net_write(const qat_qgraph *g, const void *kat_input, const void *kat_output,
                   size_t *count);
/** What the core alone says of a .qm. */
qi_status net_status(const uint8_t *qm, size_t count);
/** Written and opened; aborts the test with the engine's message unless that gives expected. */
void net_open(qi_host **host, const qat_qgraph *g, qi_status expected);

/** Open, run once in an arena of noise, close. One pointer for each input and output. */
void net_run(const qat_qgraph *g, const void *const *inputs, void *const *outputs);
/** The same. The model is kept with these answers, which the test then checks, as <name>_<number>.
 */
void net_run_kept(const qat_qgraph *g, const void *const *inputs, void *const *outputs,
                  const char *name, int number);

/** An op tried on random networks; each number seeds one. */
typedef struct net_trial {
    const char *op;
    void (*trial)(int number);
} net_trial;
/** Numbers 0 .. count - 1; prints how many. */
void net_try(const net_trial *of, int count);

/** Recompute the checksum of changed bytes. */
void net_reseal(uint8_t *qm, size_t count);

/** Values of a shape. */
size_t product_of(const int32_t *dims, int rank);
/** Code i of a tensor's bytes. */
int32_t code_at(const void *codes, size_t i, codes_of c);
/** A byte for each value: random codes, or all lowest, or all highest. */
void fill_codes(uint8_t *bytes, size_t n, codes_of c, uint64_t *seed);

#endif
