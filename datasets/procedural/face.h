/**
 * A cartoon face: a person (an age and attributes) and its picture.
 *
 *     face f;
 *     face_choose(&f, &rng);
 *     face_paint(&f, &rng, &canvas, cover, values);
 */
#ifndef QAT_DATASETS_FACE_H
#define QAT_DATASETS_FACE_H

#include "datasets/procedural/paint.h"

#include <stdbool.h>

/** The attributes of a face: X(name of the member, name of the attribute). */
#define FACE_ATTRIBUTES(X)                                                                         \
    X(glasses, "glasses")                                                                          \
    X(sunglasses, "sunglasses")                                                                    \
    X(beard, "beard")                                                                              \
    X(moustache, "moustache")                                                                      \
    X(hat, "hat")                                                                                  \
    X(earrings, "earrings")                                                                        \
    X(smile, "smile")                                                                              \
    X(open_mouth, "open mouth")                                                                    \
    X(closed_eyes, "closed eyes")                                                                  \
    X(bangs, "bangs")                                                                              \
    X(bald, "bald")                                                                                \
    X(long_hair, "long hair")                                                                      \
    X(dark_hair, "dark hair")                                                                      \
    X(blond_hair, "blond hair")                                                                    \
    X(grey_hair, "grey hair")                                                                      \
    X(necktie, "necktie")                                                                          \
    X(necklace, "necklace")                                                                        \
    X(freckles, "freckles")                                                                        \
    X(bushy_eyebrows, "bushy eyebrows")                                                            \
    X(round_face, "round face")                                                                    \
    X(big_nose, "big nose")                                                                        \
    X(red_lips, "red lips")                                                                        \
    X(rosy_cheeks, "rosy cheeks")                                                                  \
    X(pale_skin, "pale skin")

#define FACE_INDEX_(member, name)  FACE_##member,
#define FACE_MEMBER_(member, name) bool member;
enum { FACE_ATTRIBUTES(FACE_INDEX_) FACE_COUNT };

enum { FACE_YOUNGEST = 5, FACE_OLDEST = 80 }; /* years */

extern const char *const face_attribute_names[FACE_COUNT];

typedef struct face {
    float age; /* years, FACE_YOUNGEST..FACE_OLDEST */
    FACE_ATTRIBUTES(FACE_MEMBER_)
    paint_colour skin, hair, iris, clothes;
    float grey; /* share of the hair, 0..1 */
} face;

/**
 * Choose a person at random. Some attributes depend on age; none is chosen that another one would
 * hide.
 */
void face_choose(face *f, qat_rng *rng);
/** attributes[FACE_COUNT]: 0 or 1. */
void face_attributes(const face *f, float *attributes);
/**
 * Paint the picture: shifted, turned and scaled at random, on a background, with lighting and
 * noise.
 * @param cover   work space [side side]
 * @param values  [side, side, 3]
 */
void face_paint(const face *f, qat_rng *rng, const paint_canvas *canvas, float *cover,
                uint8_t *values);

#endif
