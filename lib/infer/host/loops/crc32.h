/** A faster qm_crc32. Checking a file of 4 MB must not take longer than running a network. */
#ifndef QI_HOST_CRC32_H
#define QI_HOST_CRC32_H

#include "infer/model/model.h"

/** The first of the following functions that runs on this processor. */
uint32_t qi_crc32(uint32_t crc, const void *bytes, size_t count);

/** One implementation; it equals qm_crc32 for all arguments. */
typedef struct qi_crc32_way {
    const char *name;
    int (*runs_here)(void);
    qm_crc32_fn *crc32;
} qi_crc32_way;

/**
 * The implementations of this build, the fastest first; the last runs on any processor. NULL after
 * it.
 */
const qi_crc32_way *qi_crc32_way_at(int i);

/**
 * Carry-less multiplication of 512 bits, and of 128 bits; the CRC instructions of ARMv8; tables
 * with sixteen bytes per step.
 */
uint32_t qi_crc32_vpclmul(uint32_t crc, const void *bytes, size_t count);
uint32_t qi_crc32_pclmul(uint32_t crc, const void *bytes, size_t count);
uint32_t qi_crc32_arm(uint32_t crc, const void *bytes, size_t count);
uint32_t qi_crc32_tables(uint32_t crc, const void *bytes, size_t count);

#endif
