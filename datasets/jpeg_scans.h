/**
 * Private to datasets: compares what the headers of a JPEG announce with what the file contains
 * (ITU T.81).
 */
#ifndef QAT_JPEG_SCANS_H
#define QAT_JPEG_SCANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Does a JPEG have all of its scans, up to the last restart interval, but no end marker after them?
 * If this is true, the decoder must check whether the data of the last interval are complete.
 */
bool qat_jpeg_lacks_end(const uint8_t *bytes, size_t count);

#endif
