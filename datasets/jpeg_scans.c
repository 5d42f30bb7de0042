/**
 * Follows the markers of a JPEG from scan to scan.
 *
 * A file has all scans if each component has received all its 64 coefficients in full: by one
 * sequential scan, or by progressive scans down to bit 0. A scan has n units, which are blocks of
 * its one component, or groups of blocks of all components. With a restart after every r units it
 * has (n - 1) / r restarts.
 */
#include "datasets/jpeg_scans.h"

enum {
    FILL = 0xff,
    SOF0 = 0xc0, /* sequential */
    SOF2 = 0xc2, /* progressive */
    RST0 = 0xd0,
    RST7 = 0xd7,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    DRI = 0xdd,
    MAX_COMPONENTS = 4,
    BLOCK = 8
};

typedef struct component {
    int id, h, v;   /* blocks in a group, across and down */
    uint64_t whole; /* coefficients that were received in full, one bit each */
} component;

typedef struct frame {
    bool progressive;
    int height, width, n, h_max, v_max;
    int restart; /* units between restarts; 0: no restarts */
    component components[MAX_COMPONENTS];
} frame;

/** The bytes of a segment after its length. */
typedef struct segment {
    const uint8_t *at;
    size_t count;
} segment;

static int two_bytes(const uint8_t *at)
{
    return at[0] << 8 | at[1];
}

static bool read_frame(frame *f, segment s, bool progressive)
{
    if (s.count < 6 || s.at[5] > MAX_COMPONENTS || s.count < 6 + 3 * (size_t)s.at[5])
        return false;
    f->progressive = progressive;
    f->height = two_bytes(s.at + 1);
    f->width = two_bytes(s.at + 3);
    f->n = s.at[5];
    for (int i = 0; i < f->n; i++) {
        const uint8_t *c = s.at + 6 + 3 * i;
        f->components[i] = (component){.id = c[0], .h = c[1] >> 4, .v = c[1] & 15};
        f->h_max = c[1] >> 4 > f->h_max ? c[1] >> 4 : f->h_max;
        f->v_max = (c[1] & 15) > f->v_max ? c[1] & 15 : f->v_max;
    }
    return f->n > 0;
}

static component *find(frame *f, int id)
{
    for (int i = 0; i < f->n; i++)
        if (f->components[i].id == id)
            return &f->components[i];
    return NULL;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/** only: the one component of the scan, or NULL. */
static int64_t units_of(const frame *f, const component *only)
{
    int64_t const height = f->height, width = f->width;
    if (!only)
        return ceil_div(width, BLOCK * f->h_max) * ceil_div(height, BLOCK * f->v_max);
    return ceil_div(ceil_div(width * only->h, f->h_max), BLOCK) *
           ceil_div(ceil_div(height * only->v, f->v_max), BLOCK);
}

/** The coefficients that a scan completes. last: the three bytes after its components. */
static uint64_t sent_by(const frame *f, const uint8_t last[3])
{
    uint64_t sent = 0;
    if (!f->progressive)
        return UINT64_MAX;
    for (int i = last[0]; (last[2] & 15) == 0 && i <= last[1] && i < 64; i++)
        sent |= UINT64_C(1) << i;
    return sent;
}

/** The number of restarts that the scan must have; -1: its header is broken. */
static int64_t read_scan(frame *f, segment s)
{
    int const n = s.count ? s.at[0] : 0;
    component *c = NULL;
    if (n < 1 || s.count < 4 + 2 * (size_t)n)
        return -1;
    for (int i = 0; i < n; i++) {
        c = find(f, s.at[1 + 2 * i]);
        if (!c || !f->h_max || !f->v_max)
            return -1;
        c->whole |= sent_by(f, s.at + 1 + 2 * n);
    }
    return f->restart ? (units_of(f, n == 1 ? c : NULL) - 1) / f->restart : 0;
}

static bool all_sent(const frame *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->components[i].whole != UINT64_MAX)
            return false;
    return f->n > 0;
}

/* ------------------------------------------------------------------ from marker to marker */

typedef struct walk {
    const uint8_t *bytes;
    size_t count, at;
    frame frame;
} walk;

/** Go to the next marker or the end of the file. Returns the number of restarts on the way. */
static int64_t pass_data(walk *w)
{
    int64_t restarts = 0;
    for (; w->at + 1 < w->count; w->at++) {
        int const next = w->bytes[w->at] == 0xff ? w->bytes[w->at + 1] : 0;
        bool const restart = next >= RST0 && next <= RST7;
        if (next && next != FILL && !restart)
            return restarts;
        restarts += restart;
    }
    w->at = w->count;
    return restarts;
}

/** Pass one segment, and the data after a scan's segment. Returns false if any of it is missing. */
static bool pass_segment(walk *w, int marker)
{
    const uint8_t *length_at = w->bytes + w->at + 2;
    size_t const length = (size_t)two_bytes(length_at);
    if (marker == EOI || length < 2 || length > w->count - w->at - 2)
        return false;
    segment const s = {length_at + 2, length - 2};
    w->at += 2 + length;
    if (marker >= SOF0 && marker <= SOF2)
        return read_frame(&w->frame, s, marker == SOF2);
    if (marker == DRI && s.count >= 2)
        w->frame.restart = two_bytes(s.at);
    if (marker != SOS)
        return true;
    int64_t const due = read_scan(&w->frame, s);
    return due >= 0 && pass_data(w) >= due;
}

bool qat_jpeg_lacks_end(const uint8_t *bytes, size_t count)
{
    walk w = {.bytes = bytes, .count = count, .at = 2};
    if (count < 2 || bytes[0] != 0xff || bytes[1] != SOI)
        return false;
    while (w.at + 4 <= count && bytes[w.at] == 0xff) {
        int const marker = bytes[w.at + 1];
        if (marker == FILL)
            w.at++;
        else if (!pass_segment(&w, marker))
            return false;
    }
    return w.at == count && all_sent(&w.frame);
}
