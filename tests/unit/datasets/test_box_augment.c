/** SSD's augmentation: boxes go where their pixels go. */
#include "common/common.h"
#include "common/suite.h"
#include "datasets/loader/box_augment.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { HEIGHT = 200, WIDTH = 300 };

/** A picture that is black but for one white rectangle, and its box. */
struct painted {
    uint8_t pixels[HEIGHT * WIDTH * 3];
    qat_truth truth;
    qat_picture picture;
    qat_objects objects;
};

static void paint(struct painted *p)
{
    memset(p->pixels, 0, sizeof p->pixels);
    for (int y = HEIGHT / 4; y < HEIGHT * 3 / 4; y++)
        memset(p->pixels + (y * WIDTH + WIDTH / 4) * 3, 255, WIDTH / 2 * 3);
    p->truth = (qat_truth){{0.25f, 0.25f, 0.75f, 0.75f}, 3, false, 600};
    p->picture = (qat_picture){p->pixels, HEIGHT, WIDTH};
    p->objects = (qat_objects){HEIGHT, WIDTH, 1, &p->truth};
}

enum { SIDE = 64 };

static void augment(const struct painted *p, const qat_augment *a, int index, uint8_t *values,
                    qat_truth *truth, int *count)
{
    uint8_t scratch[SIDE * SIDE * 3];
    qat_boxed_sample s = {.values = values, SIDE, SIDE, 3, .truth = truth, .scratch = scratch};
    ck_assert_int_eq(qat_augment_boxes(a, &p->picture, &p->objects, &s, 11, 2, index, NULL),
                     QAT_OK);
    *count = s.count;
}

/** Is the white part of the sample where its box says, to a pixel and a half? */
static bool white_is_in(const uint8_t *v, const qat_box *b)
{
    float const slack = 1.5f;
    int wrong = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        float const y = (float)(i / SIDE) + 0.5f, x = (float)(i % SIDE) + 0.5f;
        bool const inside = y > b->ymin * SIDE + slack && y < b->ymax * SIDE - slack &&
                            x > b->xmin * SIDE + slack && x < b->xmax * SIDE - slack;
        bool const outside = y < b->ymin * SIDE - slack || y > b->ymax * SIDE + slack ||
                             x < b->xmin * SIDE - slack || x > b->xmax * SIDE + slack;
        wrong += (inside && v[3 * i] != 255) || (outside && v[3 * i] > 128);
    }
    return wrong == 0;
}

START_TEST(boxes_follow_their_pixels)
{
    qat_augment const ways[] = {{.flip = true},
                                {.ssd_expand = 3},
                                {.ssd_crop = true},
                                {.ssd_expand = 2, .ssd_crop = true, .flip = true},
                                {.crop_area = {0.1f, 0.6f}, .crop_aspect = {1, 1}, .flip = true}};
    static struct painted p;
    static uint8_t v[SIDE * SIDE * 3];
    paint(&p);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        float smallest = 1, largest = 0;
        for (int i = 0; i < 150; i++) {
            qat_truth t;
            int count;
            augment(&p, &ways[way], i, v, &t, &count);
            ck_assert_int_eq(count, 1);
            ck_assert(t.label == 3);
            ck_assert(t.box.ymin >= 0 && t.box.xmin >= 0 && t.box.ymax <= 1 && t.box.xmax <= 1);
            ck_assert_msg(white_is_in(v, &t.box), "way %zu, sample %d", way, i);
            float const height = t.box.ymax - t.box.ymin;
            smallest = height < smallest ? height : smallest;
            largest = height > largest ? height : largest;
        }
        bool const cut = ways[way].ssd_crop || ways[way].crop_area[0] > 0;
        ck_assert(ways[way].ssd_expand > 1 ? smallest < 0.3f : smallest >= 0.49f || cut);
        ck_assert(cut ? largest > 0.8f : largest <= 0.51f);
    }
}
END_TEST

START_TEST(objects_whose_centre_is_cut_off_are_gone)
{
    qat_augment const a = {.ssd_crop = true};
    static struct painted p;
    qat_truth truth[2] = {{{0, 0, 0.25f, 0.25f}, 0, false, 1}, {{0.75f, 0.75f, 1, 1}, 1, false, 1}};
    static uint8_t v[SIDE * SIDE * 3];
    int seen[3] = {0};
    paint(&p);
    p.objects = (qat_objects){HEIGHT, WIDTH, 2, truth};
    for (int i = 0; i < 200; i++) {
        qat_truth t[2];
        int count;
        augment(&p, &a, i, v, t, &count);
        seen[count]++;
    }
    ck_assert(seen[0] == 0 && seen[1] > 20 && seen[2] > 20);
    p.objects.count = 0;
    qat_truth none[2];
    int count;
    augment(&p, &a, 0, v, none, &count);
    ck_assert_int_eq(count, 0);
}
END_TEST

/*
 * A crowd is a region and has no object with a place. The part of it that is left still hides boxes
 * found there.
 */
START_TEST(crowds_stay_as_far_as_they_are_seen)
{
    qat_augment const a = {.ssd_crop = true};
    static struct painted p;
    qat_truth truth[2] = {{{0.25f, 0.25f, 0.75f, 0.75f}, 0, false, 1},
                          {{0, 0, 1, 0.125f}, 1, true, 1}};
    static uint8_t v[SIDE * SIDE * 3];
    int cut = 0, gone = 0;
    paint(&p);
    p.objects = (qat_objects){HEIGHT, WIDTH, 2, truth};
    for (int i = 0; i < 200; i++) {
        qat_truth t[2];
        int count;
        augment(&p, &a, i, v, t, &count);
        ck_assert(count == 1 || (t[1].crowd && t[1].box.ymin == 0 && t[1].box.ymax == 1));
        if (t[0].box.xmin == 0 || t[0].box.xmax == 1)
            continue; /* the object itself is cut off: it does not tell where the window is */
        float const width = 0.5f / (t[0].box.xmax - t[0].box.xmin);
        long const left = lroundf((float)WIDTH * (0.25f - t[0].box.xmin * width));
        ck_assert_int_eq(count, left < WIDTH / 8.0 ? 2 : 1);
        cut += count == 2 && left > WIDTH / 16.0; /* its centre is gone */
        gone += count == 1;
    }
    ck_assert(cut > 3 && gone > 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("box_augment");
    TCase *tc = tcase_create("box_augment");
    tcase_add_test(tc, boxes_follow_their_pixels);
    tcase_add_test(tc, objects_whose_centre_is_cut_off_are_gone);
    tcase_add_test(tc, crowds_stay_as_far_as_they_are_seen);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
