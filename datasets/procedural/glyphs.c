#include "datasets/procedural/glyphs.h"

#define S GLYPH_SMOOTH
#define C GLYPH_CORNER
#define L GLYPH_LIFT
#define GLYPH(points)                                                                              \
    {                                                                                              \
        points, (int)(sizeof points / sizeof points[0])                                            \
    }

/* clang-format off */
static const glyph_point zero_oval[] = {
    {52,11,S}, {33,20,S}, {25,48,S}, {32,78,S}, {50,89,S}, {68,78,S}, {75,50,S}, {67,22,S}, {52,11,L}};
static const glyph_point zero_narrow[] = {
    {62,18,S}, {45,12,S}, {34,34,S}, {32,60,S}, {42,86,S}, {56,86,S}, {66,62,S}, {66,36,S}, {54,14,S},
    {44,18,L}};
static const glyph_point zero_round[] = {
    {48,20,S}, {24,38,S}, {24,66,S}, {46,82,S}, {72,72,S}, {80,48,S}, {66,24,S}, {44,18,L}};

static const glyph_point one_bar[] = {{52,10,S}, {51,36,S}, {50,62,S}, {49,90,L}};
static const glyph_point one_flag[] = {{34,30,S}, {44,22,S}, {54,10,C}, {54,50,S}, {52,90,L}};
static const glyph_point one_foot[] = {
    {36,26,S}, {52,11,C}, {52,50,S}, {51,88,L}, {32,89,S}, {52,88,S}, {70,89,L}};

static const glyph_point two_plain[] = {
    {27,30,S}, {36,14,S}, {56,11,S}, {70,25,S}, {63,46,S}, {43,68,S}, {26,87,C}, {50,86,S}, {76,87,L}};
static const glyph_point two_loop[] = {
    {28,26,S}, {46,11,S}, {67,20,S}, {66,42,S}, {46,68,S}, {28,84,S}, {24,74,S}, {38,72,S}, {56,84,S},
    {78,84,L}};
static const glyph_point two_sharp[] = {
    {26,20,S}, {48,10,S}, {70,20,S}, {66,38,S}, {24,86,C}, {50,90,S}, {74,82,L}};

static const glyph_point three_round[] = {
    {28,22,S}, {46,10,S}, {68,20,S}, {64,38,S}, {44,47,C}, {66,52,S}, {74,70,S}, {56,88,S}, {26,82,L}};
static const glyph_point three_flat[] = {
    {26,12,S}, {50,13,S}, {72,11,C}, {58,28,S}, {46,42,C}, {66,50,S}, {73,70,S}, {54,90,S}, {26,80,L}};
static const glyph_point three_soft[] = {
    {30,16,S}, {52,11,S}, {66,24,S}, {54,42,S}, {48,48,S}, {64,58,S}, {68,76,S}, {48,90,S}, {28,84,L}};

static const glyph_point four_open[] = {
    {34,12,S}, {29,34,S}, {25,56,C}, {50,55,S}, {80,53,L}, {66,28,S}, {63,58,S}, {60,90,L}};
static const glyph_point four_closed[] = {
    {62,10,S}, {42,36,S}, {20,63,C}, {50,63,S}, {80,62,L}, {62,10,S}, {61,50,S}, {61,90,L}};
static const glyph_point four_curved[] = {
    {32,10,S}, {24,40,S}, {36,54,S}, {56,50,S}, {68,40,L}, {72,12,S}, {66,50,S}, {62,90,L}};

static const glyph_point five_square[] = {
    {72,12,S}, {54,12,S}, {34,13,C}, {32,28,S}, {30,44,C}, {50,37,S}, {71,50,S}, {70,74,S}, {48,90,S},
    {25,82,L}};
static const glyph_point five_two_strokes[] = {
    {36,14,S}, {32,46,C}, {54,40,S}, {72,58,S}, {62,84,S}, {30,88,L}, {36,14,S}, {56,13,S}, {76,10,L}};
static const glyph_point five_soft[] = {
    {70,14,S}, {46,14,S}, {34,28,S}, {44,42,S}, {64,52,S}, {68,74,S}, {50,88,S}, {28,82,L}};

static const glyph_point six_curl[] = {
    {66,12,S}, {44,26,S}, {29,52,S}, {31,78,S}, {50,90,S}, {69,78,S}, {68,58,S}, {50,50,S}, {33,64,L}};
static const glyph_point six_straight[] = {
    {54,10,S}, {40,36,S}, {31,64,S}, {38,86,S}, {58,88,S}, {68,72,S}, {56,58,S}, {36,66,L}};
static const glyph_point six_wide[] = {
    {72,20,S}, {54,11,S}, {34,30,S}, {26,60,S}, {40,88,S}, {64,86,S}, {74,66,S}, {56,52,S}, {30,62,L}};

static const glyph_point seven_plain[] = {
    {25,14,S}, {50,14,S}, {75,13,C}, {60,42,S}, {48,66,S}, {42,90,L}};
static const glyph_point seven_bar[] = {
    {25,14,S}, {50,13,S}, {75,14,C}, {58,50,S}, {44,90,L}, {37,51,S}, {54,50,S}, {70,48,L}};
static const glyph_point seven_serif[] = {
    {25,28,S}, {25,14,C}, {50,16,S}, {74,12,C}, {62,36,S}, {54,60,S}, {52,90,L}};

static const glyph_point eight_cross[] = {
    {68,22,S}, {50,11,S}, {33,22,S}, {36,37,S}, {52,49,S}, {68,62,S}, {69,80,S}, {50,90,S}, {31,79,S},
    {34,61,S}, {50,48,S}, {65,35,S}, {68,22,L}};
static const glyph_point eight_rings[] = {
    {50,48,S}, {34,38,S}, {34,20,S}, {50,11,S}, {66,20,S}, {66,38,S}, {50,48,C}, {30,60,S}, {30,80,S},
    {50,90,S}, {70,80,S}, {70,60,S}, {50,48,L}};
static const glyph_point eight_open[] = {
    {70,16,S}, {50,12,S}, {34,26,S}, {46,44,S}, {64,60,S}, {66,82,S}, {46,90,S}, {32,74,S}, {44,54,S},
    {62,38,S}, {72,18,L}};

static const glyph_point nine_curl[] = {
    {69,28,S}, {52,11,S}, {34,22,S}, {33,42,S}, {50,52,S}, {66,40,S}, {70,22,C}, {68,56,S}, {61,90,L}};
static const glyph_point nine_tail[] = {
    {68,26,S}, {50,11,S}, {32,26,S}, {40,48,S}, {60,44,S}, {70,26,S}, {69,58,S}, {54,86,S}, {30,84,L}};
static const glyph_point nine_straight[] = {
    {66,18,S}, {44,12,S}, {31,32,S}, {44,48,S}, {66,36,L}, {67,14,S}, {65,50,S}, {64,90,L}};
/* clang-format on */

const glyph_ways qat_glyphs[10] = {
    {{GLYPH(zero_oval), GLYPH(zero_narrow), GLYPH(zero_round)}, 3},
    {{GLYPH(one_bar), GLYPH(one_flag), GLYPH(one_foot)}, 3},
    {{GLYPH(two_plain), GLYPH(two_loop), GLYPH(two_sharp)}, 3},
    {{GLYPH(three_round), GLYPH(three_flat), GLYPH(three_soft)}, 3},
    {{GLYPH(four_open), GLYPH(four_closed), GLYPH(four_curved)}, 3},
    {{GLYPH(five_square), GLYPH(five_two_strokes), GLYPH(five_soft)}, 3},
    {{GLYPH(six_curl), GLYPH(six_straight), GLYPH(six_wide)}, 3},
    {{GLYPH(seven_plain), GLYPH(seven_bar), GLYPH(seven_serif)}, 3},
    {{GLYPH(eight_cross), GLYPH(eight_rings), GLYPH(eight_open)}, 3},
    {{GLYPH(nine_curl), GLYPH(nine_tail), GLYPH(nine_straight)}, 3},
};
