/** CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected): the checksum of TFRecords, which event
 * files of TensorBoard are, too. */
#ifndef QAT_BASE_CRC32C_H
#define QAT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t qat_crc32c(const void *bytes, size_t count);
/** What a record holds instead of the checksum itself: turned right by 15 bits, plus a constant. */
uint32_t qat_masked_crc32c(const void *bytes, size_t count);

#endif
