/** Ten shapes as outlines, which are bent a little each time they are drawn. */
#ifndef QAT_DATASETS_OUTLINES_H
#define QAT_DATASETS_OUTLINES_H

#include "datasets/procedural/draw.h"

enum { OUTLINES = 10, OUTLINE_REACH = 100 /* about (0, 0), before the affine */ };

extern const char *const outline_names[OUTLINES];

/** Draw shape number i into a mask, its points displaced by a smooth random field. */
void outline_draw(qat_rng *rng, draw_mask *mask, int i, const draw_affine *affine);

#endif
