/** Inside datasets: what a JPEG's headers announce, and what of it the file holds (ITU T.81). */
#ifndef QAT_JPEG_SCANS_H
#define QAT_JPEG_SCANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A JPEG that has all of its scans, to the last restart interval, and after them no end marker? Of
 * a true one the decoder has to say whether the last interval's data are all there.
 */
bool qat_jpeg_lacks_end(const uint8_t *bytes, size_t count);

#endif
