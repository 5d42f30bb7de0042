/** Reads a checkpoint from bytes: first magic, size and CRC, then the sections in order. */
#include "checkpoint/checkpoint_read.h"

#include "base/checksums/sha256.h"
#include "base/files/file.h"
#include "checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

qat_status ckpt_bad_section(ckpt_reading *p, const char *what)
{
    return qat_fail(p->err, QAT_ERR_FORMAT, "%s: section %s: %s", p->name, p->tag, what);
}

qat_status ckpt_open_section(ckpt_reading *p, const char *tag, qat_reader *rest)
{
    p->tag = tag;
    *rest = p->r;
    const void *found = qat_read_bytes(&p->r, 4);
    uint64_t const size = qat_read_u64(&p->r);
    if (p->r.bad || memcmp(found, tag, 4))
        return qat_fail(p->err, QAT_ERR_FORMAT, "%s: section %s is not at its place", p->name, tag);
    if (size > (uint64_t)(p->r.end - p->r.at))
        return ckpt_bad_section(p, "longer than the file");
    *rest = p->r;
    rest->at += size;
    p->r.end = p->r.at + size;
    return QAT_OK;
}

qat_status ckpt_close_section(ckpt_reading *p, qat_reader rest)
{
    if (p->r.bad || p->r.at != p->r.end)
        return ckpt_bad_section(p, p->r.bad ? "ends too early" : "holds more than it should");
    p->r = rest;
    return QAT_OK;
}

bool qat_checkpoint_magic(const void *bytes, size_t count)
{
    return count >= 8 && !memcmp(bytes, QAT_CHECKPOINT_MAGIC, 8);
}

/**
 * Check magic, version, size and CRC. Afterwards the reader is at the first section and ends before
 * the CRC.
 */
static qat_status read_header(ckpt_reading *p, const uint8_t *bytes, size_t count)
{
    if (!qat_checkpoint_magic(bytes, count))
        return qat_fail(p->err, QAT_ERR_FORMAT,
                        "%s: not a checkpoint (it does not begin with %.7s)", p->name,
                        QAT_CHECKPOINT_MAGIC);
    if (count < QAT_CHECKPOINT_HEADER + QAT_CHECKPOINT_TRAILER)
        return qat_fail(p->err, QAT_ERR_FORMAT, "%s: cut short: %zu bytes", p->name, count);
    p->r = qat_reader_of(bytes, count - QAT_CHECKPOINT_TRAILER);
    qat_read_bytes(&p->r, 8);
    uint32_t const version = qat_read_u32(&p->r), sections = qat_read_u32(&p->r);
    uint64_t const size = qat_read_u64(&p->r);
    p->version = version;
    if (version < 1 || version > QAT_CHECKPOINT_VERSION)
        return qat_fail(p->err, QAT_ERR_FORMAT, "%s: version %u, but this program reads %d",
                        p->name, version, QAT_CHECKPOINT_VERSION);
    if (size != count)
        return qat_fail(p->err, QAT_ERR_FORMAT, "%s: %zu bytes long, but its header says %llu",
                        p->name, count, (unsigned long long)size);
    qat_reader trailer = qat_reader_of(bytes + count - 4, 4);
    uint32_t const stored = qat_read_u32(&trailer);
    uint32_t const computed = (uint32_t)crc32_z(0, bytes, count - 4);
    if (stored != computed)
        return qat_fail(p->err, QAT_ERR_FORMAT,
                        "%s: damaged: its CRC-32 is %08x, but the bytes give %08x", p->name, stored,
                        computed);
    uint32_t const expected = QAT_CHECKPOINT_SECTIONS - (version < 4) - (version < 3);
    if (sections != expected)
        return qat_fail(p->err, QAT_ERR_FORMAT, "%s: %u sections, but expected %u", p->name,
                        sections, expected);
    return QAT_OK;
}

static qat_status read_all(ckpt_reading *p, const uint8_t *bytes, size_t count)
{
    qat_status st = read_header(p, bytes, count);
    if (!st)
        st = ckpt_read_text(p, QAT_TAG_RECIPE, &p->c->recipe);
    if (!st)
        st = ckpt_read_text(p, QAT_TAG_GRAPH, &p->c->graph);
    if (!st)
        st = ckpt_read_input(p);
    if (!st)
        st = ckpt_read_quant(p);
    if (!st)
        st = ckpt_read_parameters(p);
    if (!st)
        st = ckpt_read_optimizer(p);
    if (!st)
        st = ckpt_read_progress(p);
    if (!st)
        st = ckpt_read_text(p, QAT_TAG_LOG, &p->c->log);
    if (!st && p->version >= 3)
        st = ckpt_read_digests(p);
    if (!st && p->version >= 4)
        st = ckpt_read_plugins(p);
    if (!st && p->r.at != p->r.end)
        st = ckpt_bad_section(p, "bytes after the last section");
    if (!st)
        qat_sha256(bytes, count, p->c->digest);
    return st;
}

qat_status qat_checkpoint_parse(qat_checkpoint **checkpoint, const void *bytes, size_t count,
                                const char *name, qat_error *err)
{
    ckpt_reading p = {.name = name, .tag = "?", .c = qat_checkpoint_new(), .err = err};
    *checkpoint = NULL;
    if (!p.c)
        return qat_out_of_memory(err, p.name);
    qat_status const st = read_all(&p, bytes, count);
    if (st)
        qat_checkpoint_free(p.c);
    else
        *checkpoint = p.c;
    return st;
}

qat_status qat_checkpoint_load(qat_checkpoint **checkpoint, const char *path, qat_error *err)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    *checkpoint = NULL;
    qat_status st = qat_file_read(path, QAT_CHECKPOINT_MAX_BYTES, &bytes, &count, err);
    if (!st)
        st = qat_checkpoint_parse(checkpoint, bytes, count, path, err);
    free(bytes);
    return st;
}
