/** Functions of avx2_bytes_gemm.c that avx2_gemm.c calls. */
#ifndef QI_HOST_X86_AVX2_BYTES_GEMM_H
#define QI_HOST_X86_AVX2_BYTES_GEMM_H

#include "infer/host/x86/intrinsics.h"

#include "infer/host/loops/gemm.h"

#define qi_avx2_bytes_most_entries QI_VARIANT(qi_avx2_bytes_most_entries)
#define qi_avx2_bytes_entries      QI_VARIANT(qi_avx2_bytes_entries)
#define qi_avx2_bytes_packed       QI_VARIANT(qi_avx2_bytes_packed)
#define qi_avx2_bytes_pack         QI_VARIANT(qi_avx2_bytes_pack)
#define qi_avx2_bytes_run          QI_VARIANT(qi_avx2_bytes_run)

/** The most entries that the longest list of a layer has, whatever its weights are. */
int32_t qi_avx2_bytes_most_entries(const qi_gemm_layer *layer);

/** The entries of the longest list, or 0 if the layer runs faster with 16-bit products. */
int32_t qi_avx2_bytes_entries(const qi_gemm_layer *layer);
size_t qi_avx2_bytes_packed(const qi_gemm_layer *layer, int32_t entries);
void qi_avx2_bytes_pack(const qi_gemm_layer *layer, int32_t entries, void *packed);
void qi_avx2_bytes_run(const qi_gemm_run *run);

#endif
