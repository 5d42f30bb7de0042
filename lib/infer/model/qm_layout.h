/**
 * Byte offsets and limits of a .qm file. The reader (qm_read.c) and the writer
 * (lib/convert/qm_write.c) share them. docs/qm-format.md describes each field.
 */
#ifndef QI_QM_LAYOUT_H
#define QI_QM_LAYOUT_H

#include "infer/kernels/parts/rows.h"

#include <stddef.h>
#include <stdint.h>

/** The first 8 bytes. They are not text, and a line-end conversion would damage them. */
#define QM_MAGIC "\x89QATQM\r\n"

enum {
    QM_MAGIC_BYTES = 8,
    QM_VERSION = 1,
    QM_ALIGNMENT = 16,
    QM_HEADER_BYTES = 192,
    QM_TENSOR_BYTES = 64,
    QM_NODE_BYTES = 48,
    QM_SHORT_TENSOR_BYTES = 32,
    QM_SHORT_NODE_BYTES = 24,
    QM_DIGEST_BYTES = 32
};

/** Fields of the header. */
enum {
    QM_AT_VERSION = 8,         /* u32 */
    QM_AT_CRC = 12,            /* u32: of all other bytes of the file */
    QM_AT_FILE_BYTES = 16,     /* u32 */
    QM_AT_FLAGS = 20,          /* u32: QM_FLAG_KAT .. */
    QM_AT_TENSORS = 24,        /* section: u32 offset, u32 count */
    QM_AT_NODES = 32,          /* section */
    QM_AT_INTS = 40,           /* section */
    QM_AT_STRINGS = 48,        /* section, counted in bytes */
    QM_AT_DATA = 56,           /* section, counted in bytes */
    QM_AT_INPUTS = 64,         /* range of ints: u32 first, u32 count */
    QM_AT_OUTPUTS = 72,        /* range of ints */
    QM_AT_LABELS = 80,         /* range of ints: offsets of strings */
    QM_AT_KAT = 88,            /* u32 first: offsets in data, inputs then outputs */
    QM_AT_DESCRIPTION = 92,    /* u32: offset of a string */
    QM_AT_DIGEST = 96,         /* 32 bytes */
    QM_AT_PREPROCESSING = 128, /* 6 i32, 4 + 4 float32 bits: as qi_preprocessing */
    QM_AT_EPILOGUE = 184       /* range of ints */
};

/** Bits 16 to 31: how many steps of the known-answer test follow its first. */
enum {
    QM_FLAG_KAT = 1,
    QM_FLAG_SHORT = 2,   /* short records */
    QM_FLAG_COMPACT = 4, /* compact records */
    QM_FLAGS = QM_FLAG_KAT | QM_FLAG_SHORT | QM_FLAG_COMPACT,
    QM_KAT_STEPS_SHIFT = 16,
    QM_MAX_KAT_STEPS = 1 << 16
};

/** Fields of a tensor. */
enum {
    QM_TENSOR_NAME = 0,            /* u32: offset of a string */
    QM_TENSOR_TYPE = 4,            /* u8 */
    QM_TENSOR_KIND = 5,            /* u8 */
    QM_TENSOR_RANK = 6,            /* u8 */
    QM_TENSOR_BITS = 7,            /* u8 */
    QM_TENSOR_DIMS = 8,            /* 4 i32 */
    QM_TENSOR_ZERO_POINT = 24,     /* i32 */
    QM_TENSOR_SCALE = 28,          /* float32 bits */
    QM_TENSOR_CHANNEL_SCALES = 32, /* i32: a tensor, or -1 */
    QM_TENSOR_SOURCE_INDEX = 36,   /* i32 */
    QM_TENSOR_DATA = 40,           /* u32: offset in data */
    QM_TENSOR_SIZE = 44,           /* u32: bytes */
    QM_TENSOR_RANGE_MIN = 48,      /* float32 bits */
    QM_TENSOR_RANGE_MAX = 52,      /* float32 bits */
    QM_TENSOR_BORDER = 56,         /* u8 */
    QM_TENSOR_PACKING = 57,        /* u8 */
    QM_TENSOR_LISTED = 58,         /* u8 */
    QM_TENSOR_RESERVED = 59,       /* a zero byte */
    QM_TENSOR_NEXT = 60            /* u32: of a state, a tensor; of others 0 */
};

/** Fields of a short tensor. */
enum {
    QM_SHORT_TENSOR_TYPE = 0,        /* u8 */
    QM_SHORT_TENSOR_KIND = 1,        /* u8: kind + 16 border */
    QM_SHORT_TENSOR_RANK = 2,        /* u8 */
    QM_SHORT_TENSOR_BITS = 3,        /* u8 */
    QM_SHORT_TENSOR_DIMS = 4,        /* 4 i32 */
    QM_SHORT_TENSOR_ZERO_POINT = 20, /* i16 */
    QM_SHORT_TENSOR_PACKING = 22,    /* u8 */
    QM_SHORT_TENSOR_LISTED = 23,     /* u8 */
    QM_SHORT_TENSOR_SCALE = 24,      /* float32 bits */
    QM_SHORT_TENSOR_DATA = 28        /* u32: of a state, next; of others data */
};

/** Fields of a short node. Its ints follow each other: inputs, outputs, params. */
enum {
    QM_SHORT_NODE_OP = 0,              /* u32: offset of a string */
    QM_SHORT_NODE_FIRST = 4,           /* u32: of its ints */
    QM_SHORT_NODE_N_INPUTS = 8,        /* u16 */
    QM_SHORT_NODE_N_OUTPUTS = 10,      /* u8 */
    QM_SHORT_NODE_N_PARAMS = 11,       /* u8 */
    QM_SHORT_NODE_ROUNDING = 12,       /* u8 */
    QM_SHORT_NODE_FRACTION = 13,       /* u8 */
    QM_SHORT_NODE_RESERVED = 14,       /* 2 zero bytes */
    QM_SHORT_NODE_MAX_ACCUMULATOR = 16 /* i64 */
};

/** The first byte of a compact tensor: type + 8 kind + 32 (rank - 1) + QM_COMPACT_NAMED. */
enum { QM_COMPACT_KIND_AT = 3, QM_COMPACT_RANK_AT = 5, QM_COMPACT_NAMED = 128 };

/** The second byte of a compact tensor: which of these follow, in this order. */
enum {
    QM_COMPACT_SCALE = 1, /* float32 bits, of a tensor of integers; codes always have them */
    QM_COMPACT_RANGE = 2, /* float32 bits of min and max */
    QM_COMPACT_CHANNEL_SCALES = 4, /* number */
    QM_COMPACT_SOURCE_INDEX = 8,   /* number */
    QM_COMPACT_BORDER = 16,        /* u8 */
    QM_COMPACT_PACKING = 32,       /* u8 packing, u8 listed */
    QM_COMPACT_FIELDS = 63
};

/** A byte of a compact node: rounding + 8 fraction + QM_COMPACT_ACCUMULATES. */
enum { QM_COMPACT_FRACTION_AT = 3, QM_COMPACT_ACCUMULATES = 128 };

/** The fewest bytes of a compact tensor and of a compact node. */
enum { QM_COMPACT_TENSOR_BYTES = 3, QM_COMPACT_NODE_BYTES = 6 };

/** The bits of 1: the scale of a tensor of integers whose compact record has none. */
#define QM_COMPACT_NO_SCALE UINT32_C(0x3f800000)

/** Fields of a node. */
enum {
    QM_NODE_OP = 0,              /* u32: offset of a string */
    QM_NODE_NAME = 4,            /* u32: offset of a string */
    QM_NODE_INPUTS = 8,          /* range of ints: u32 first, u32 count */
    QM_NODE_OUTPUTS = 16,        /* range of ints */
    QM_NODE_PARAMS = 24,         /* range of ints */
    QM_NODE_ROUNDING = 32,       /* u32 */
    QM_NODE_FRACTION = 36,       /* u32 */
    QM_NODE_MAX_ACCUMULATOR = 40 /* i64 */
};

/** Limits. */
enum {
    QM_MAX_FILE_BYTES = INT32_MAX,
    QM_MAX_TENSORS = 16384,
    QM_MAX_NODES = 4096,
    QM_MAX_INTS = 1 << 24,
    QM_MAX_IO = 64, /* limit of model inputs and of model outputs */
    QM_MAX_NODE_INPUTS = 256,
    QM_MAX_NODE_OUTPUTS = 16,
    QM_MAX_LABELS = 65536,
    QM_MAX_BIASES = 256, /* different ones in turn, for the same weights */
    QM_MAX_EPILOGUE_INPUTS = 8,
    QM_MAX_EPILOGUE_PARAMS = 24,
    QM_MAX_TENSOR_VALUES = 1 << 28,
    QM_MILLION = 1000000, /* a central crop of the whole */
    QM_MAX_SIDE =
        65535, /* limit for the side of a picture, a kernel, a stride, a dilation, a pad */
    QM_MAX_ARENA_BYTES = INT32_MAX
};

/** Packed codes: five of three values in a byte, 3^5 = 243; or some bits each. */
enum { QM_MOST_TRITS = 3, QM_TRITS_BYTES = 243 };

/** Other packings: integers of a byte each, and scales that follow from multipliers, of no byte. */
enum { QM_NARROW = 9, QM_DERIVED = 10 };

/** The bytes of a row of so many packed codes, at most 2^28. */
static inline size_t qm_packed_row_bytes(int packing, size_t values)
{
    return packing == QI_TRITS ? (values + QI_TRITS_OF_BYTE - 1) / QI_TRITS_OF_BYTE
                               : (values * (size_t)packing + 7) / 8;
}

/**
 * CRC-32 as in PNG, zlib and Ethernet (polynomial 0xedb88320, reflected), four bits at a time.
 * Start with crc = 0; pass the result to the next call to continue. The file's checksum is
 * qm_crc32(qm_crc32(0, file, QM_AT_CRC), file + QM_AT_CRC + 4, file_bytes - QM_AT_CRC - 4).
 */
static inline uint32_t qm_crc32(uint32_t crc, const void *bytes, size_t count)
{
    static const uint32_t table[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                       0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                       0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    const uint8_t *p = bytes;
    crc = ~crc;
    for (size_t i = 0; i < count; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

#endif
