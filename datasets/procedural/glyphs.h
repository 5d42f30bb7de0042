/** The ten digits as pen strokes; each can be written in several ways. */
#ifndef QAT_DATASETS_GLYPHS_H
#define QAT_DATASETS_GLYPHS_H

typedef enum glyph_joint {
    GLYPH_SMOOTH, /* the curve goes through */
    GLYPH_CORNER, /* the pen turns on the spot */
    GLYPH_LIFT    /* the pen leaves the paper here */
} glyph_joint;

/** A point on the path of the pen, in a box of 100 x 100, y down. */
typedef struct glyph_point {
    signed char x, y;
    unsigned char joint; /* glyph_joint */
} glyph_point;

typedef struct glyph {
    const glyph_point *points; /* the last point lifts the pen */
    int count;
} glyph;

enum { GLYPH_MAX_POINTS = 24, GLYPH_MAX_WAYS = 4 };

/** ways: how many of the glyphs there are. */
typedef struct glyph_ways {
    glyph glyphs[GLYPH_MAX_WAYS];
    int ways;
} glyph_ways;

extern const glyph_ways qat_glyphs[10];

#endif
