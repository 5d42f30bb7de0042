/** Waves for the procedural sets, of + - * / alone, so that every machine draws the same. */
#ifndef QAT_DATASETS_WAVES_H
#define QAT_DATASETS_WAVES_H

/** A turning point on a circle: x is the cosine, y the sine of the phase. */
typedef struct wave {
    double x, y;           /* where it is */
    double turn_x, turn_y; /* what a step turns it by */
} wave;

/** A wave that begins at this phase; both in parts of a turn, within 0 .. 1. */
wave wave_make(double phase, double turns_a_step);
/** Turn by another part of a circle from now on. */
void wave_retune(wave *w, double turns_a_step);
/** The sine of the phase; then the wave takes a step. */
double wave_next(wave *w);

#endif
