/** The curves of qat-train --progress full: what is kept of a long run, and where it is drawn. */
#include "common/suite.h"
#include "tools/live/canvas.h"

#include <check.h>
#include <string.h>

/** A straight line of any length stays one, in order, and within the room. */
START_TEST(long_curves_become_means)
{
    live_curve c = {0};
    for (int i = 1; i <= 100000; i++) {
        live_curve_add(&c, i, 2 * i);
        ck_assert_int_lt(c.n, LIVE_POINTS);
    }
    ck_assert_int_eq(c.each, 256);
    for (int i = 0; i < c.n; i++) {
        ck_assert(c.x[i] == 256 * (i + 1));
        ck_assert(c.y[i] == 2 * c.x[i] - 255); /* the mean of 256 values that rise by 2 */
    }
    double min = 1e9, max = -1e9;
    live_curve_range(&c, &min, &max);
    ck_assert(min == c.y[0] && max == c.y[c.n - 1]);
}
END_TEST

static int cells_with_dots(const live_canvas *c)
{
    int n = 0;
    for (int y = 0; y < LIVE_HEIGHT_MAX; y++)
        for (int x = 0; x < LIVE_WIDTH_MAX; x++)
            n += c->cells[y][x].dots != 0;
    return n;
}

START_TEST(lines_go_from_corner_to_corner)
{
    live_curve c = {0};
    live_canvas braille = {.width = 4, .height = 2, .braille = true, .x = {0, 10}, .y = {-1, 1}};
    live_curve_add(&c, 0, -1);
    live_curve_add(&c, 10, 1);
    live_canvas letters = {.width = 4, .height = 4, .x = {0, 10}, .y = {-1, 1}};
    live_canvas_draw(&braille, &c, (live_pen){'a', 31, false});
    live_canvas_draw(&letters, &c, (live_pen){'a', 31, false});
    /* from the left below to the right above: 8 x 8 dots, a diagonal */
    ck_assert_uint_eq(braille.cells[1][0].dots, 0x40 | 0x20);
    ck_assert_uint_eq(braille.cells[0][3].dots, 0x04 >> 1 | 0x08);
    ck_assert_int_eq(cells_with_dots(&braille), 4);
    for (int i = 0; i < 4; i++)
        ck_assert(letters.cells[3 - i][i].letter == 'a' && letters.cells[3 - i][i].style == 31);
    ck_assert_int_eq(cells_with_dots(&letters), 4);
}
END_TEST

/** Beyond the edges, and with edges that are one value: still within the canvas. */
START_TEST(what_is_outside_is_drawn_at_the_edge)
{
    live_curve c = {0};
    live_curve_add(&c, -5, 1e30);
    live_curve_add(&c, 99, -1e30);
    live_canvas a = {.width = LIVE_WIDTH_MAX,
                     .height = LIVE_HEIGHT_MAX,
                     .braille = true,
                     .x = {0, 10},
                     .y = {-1, 1}};
    live_canvas_draw(&a, &c, (live_pen){'a', 0, false});
    ck_assert_uint_ne(a.cells[0][0].dots, 0);
    ck_assert_uint_ne(a.cells[LIVE_HEIGHT_MAX - 1][LIVE_WIDTH_MAX - 1].dots, 0);
    live_canvas flat = {.width = 3, .height = 3, .x = {1, 1}, .y = {2, 2}};
    live_canvas_draw(&flat, &c, (live_pen){'a', 0, false});
    ck_assert_int_eq(cells_with_dots(&flat), 1);
    ck_assert_uint_ne(flat.cells[1][1].dots, 0);
}
END_TEST

START_TEST(dotted_curves_have_every_other_dot)
{
    live_curve c = {0};
    live_curve_add(&c, 0, 0);
    live_curve_add(&c, 1, 0);
    live_canvas a = {.width = 4, .height = 1, .braille = true, .x = {0, 1}, .y = {0, 1}};
    live_canvas_draw(&a, &c, (live_pen){'a', 0, true});
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(a.cells[0][i].dots, 0x80);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("live");
    TCase *tc = tcase_create("live");
    tcase_add_test(tc, long_curves_become_means);
    tcase_add_test(tc, lines_go_from_corner_to_corner);
    tcase_add_test(tc, what_is_outside_is_drawn_at_the_edge);
    tcase_add_test(tc, dotted_curves_have_every_other_dot);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
