#include "datasets/procedural/draw.h"

#include <math.h>
#include <stdbool.h>

enum { SUB_ROWS = 4, MAX_CROSSINGS = 64 };

float draw_uniform(qat_rng *rng, float low, float high)
{
    float const u = (float)(qat_rng_next(rng) >> 40) * 0x1p-24F;
    return low + (high - low) * u;
}

draw_point draw_point_random(qat_rng *rng, float low, float high)
{
    draw_point p;
    p.x = draw_uniform(rng, low, high);
    p.y = draw_uniform(rng, low, high);
    return p;
}

int draw_chance(qat_rng *rng, float probability)
{
    return draw_uniform(rng, 0, 1) < probability;
}

float draw_normal(qat_rng *rng)
{
    uint64_t const bits = qat_rng_next(rng);
    uint32_t sum = 0; /* of four uniform 16-bit numbers: variance 4 / 12 of (2^16)^2 */
    for (int i = 0; i < 4; i++)
        sum += (uint32_t)(bits >> (16 * i)) & 0xffff;
    return ((float)sum * 0x1p-16F - 2) * 1.7320508F;
}

static int clamp_int(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

/** The pixel row or column of a coordinate, limited to the picture. NaN does not occur. */
static int pixel_of(float v, int side)
{
    return v <= 0 ? 0 : v >= (float)side ? side - 1 : clamp_int((int)v, 0, side - 1);
}

static float clamp_unit(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static float min_of(float a, float b)
{
    return a < b ? a : b;
}

static float max_of(float a, float b)
{
    return a > b ? a : b;
}

void draw_line(draw_mask *mask, draw_point a, draw_point b, float radius_a, float radius_b)
{
    float const reach = max_of(radius_a, radius_b) + 0.5F;
    float const dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    float const inverse = square > 1e-12F ? 1 / square : 0;
    int const x0 = pixel_of(min_of(a.x, b.x) - reach, mask->side);
    int const x1 = pixel_of(max_of(a.x, b.x) + reach, mask->side);
    int const y0 = pixel_of(min_of(a.y, b.y) - reach, mask->side);
    int const y1 = pixel_of(max_of(a.y, b.y) + reach, mask->side);
    for (int y = y0; y <= y1; y++) {
        float *row = mask->at + y * mask->side;
        float const py = (float)y + 0.5F - a.y;
        for (int x = x0; x <= x1; x++) {
            float const px = (float)x + 0.5F - a.x;
            float const t = clamp_unit((px * dx + py * dy) * inverse); /* nearest point: a + t d */
            float const ex = px - t * dx, ey = py - t * dy;
            float const radius = radius_a + t * (radius_b - radius_a);
            float const cover = clamp_unit(radius + 0.5F - sqrtf(ex * ex + ey * ey));
            row[x] = max_of(row[x], cover);
        }
    }
}

/** Where the edges cross the height y, sorted. Returns their number. */
static int crossings_at(const draw_contours *c, float y, float *xs)
{
    int count = 0, begin = 0;
    for (int k = 0; k < c->count; begin = c->ends[k++]) {
        for (int i = begin, j = c->ends[k] - 1; i < c->ends[k]; j = i++) {
            draw_point const a = c->points[j], b = c->points[i];
            if ((a.y <= y) == (b.y <= y) || count == MAX_CROSSINGS)
                continue;
            float const x = a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x);
            int at = count++;
            for (; at > 0 && xs[at - 1] > x; at--)
                xs[at] = xs[at - 1];
            xs[at] = x;
        }
    }
    return count;
}

/** Add the span [from, to) to a row; each pixel gets the part of it that is covered. */
static void add_span(float *row, int side, float from, float to, float weight)
{
    float const left = max_of(from, 0), right = min_of(to, (float)side);
    if (left >= right)
        return;
    for (int x = pixel_of(left, side); x <= pixel_of(right, side); x++) {
        float const part = min_of(right, (float)(x + 1)) - max_of(left, (float)x);
        row[x] += weight * max_of(part, 0);
    }
}

void draw_polygon(draw_mask *mask, const draw_contours *contours)
{
    float row[DRAW_MAX_SIDE], xs[MAX_CROSSINGS];
    for (int y = 0; y < mask->side && mask->side <= DRAW_MAX_SIDE; y++) {
        bool any = false;
        for (int x = 0; x < mask->side; x++)
            row[x] = 0;
        for (int s = 0; s < SUB_ROWS; s++) {
            float const at = (float)y + ((float)s + 0.5F) / SUB_ROWS;
            int const count = crossings_at(contours, at, xs);
            for (int i = 0; i + 1 < count; i += 2)
                add_span(row, mask->side, xs[i], xs[i + 1], 1.0F / SUB_ROWS);
            any = any || count;
        }
        for (int x = 0; any && x < mask->side; x++) {
            float *pixel = &mask->at[y * mask->side + x];
            *pixel = max_of(*pixel, min_of(row[x], 1));
        }
    }
}

draw_field draw_field_random(qat_rng *rng, float amplitude)
{
    draw_field field;
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++)
            field.at[i][j] = draw_uniform(rng, -amplitude, amplitude);
    }
    return field;
}

float draw_field_at(const draw_field *field, float x, float y)
{
    float const fx = clamp_unit(x) * 4, fy = clamp_unit(y) * 4;
    int const j = clamp_int((int)fx, 0, 3), i = clamp_int((int)fy, 0, 3);
    float tx = fx - (float)j, ty = fy - (float)i;
    tx = tx * tx * (3 - 2 * tx); /* smooth at the lines of the lattice */
    ty = ty * ty * (3 - 2 * ty);
    float const top = field->at[i][j] + tx * (field->at[i][j + 1] - field->at[i][j]);
    float const bottom = field->at[i + 1][j] + tx * (field->at[i + 1][j + 1] - field->at[i + 1][j]);
    return top + ty * (bottom - top);
}

draw_affine draw_affine_make(draw_point centre, draw_point shift, float half_tan, float slant,
                             float scale_x, float scale_y)
{
    float const t2 = half_tan * half_tan;
    float const cosine = (1 - t2) / (1 + t2), sine = 2 * half_tan / (1 + t2);
    /* rotation * [1 -slant; 0 1] * scale */
    return (draw_affine){.xx = cosine * scale_x,
                         .xy = (-cosine * slant - sine) * scale_y,
                         .yx = sine * scale_x,
                         .yy = (-sine * slant + cosine) * scale_y,
                         .centre = centre,
                         .shift = shift};
}

draw_point draw_affine_apply(const draw_affine *a, draw_point p)
{
    float const x = p.x - a->centre.x, y = p.y - a->centre.y;
    return (draw_point){a->xx * x + a->xy * y + a->shift.x, a->yx * x + a->yy * y + a->shift.y};
}

uint8_t draw_byte(float v)
{
    return (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : (int)(v + 0.5F));
}
