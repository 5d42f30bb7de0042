/** SHA-256 (FIPS 180-4), for the digest that ties a model to the checkpoint it came from. */
#ifndef QAT_BASE_SHA256_H
#define QAT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void qat_sha256(const void *bytes, size_t count, uint8_t digest[32]);

#endif
