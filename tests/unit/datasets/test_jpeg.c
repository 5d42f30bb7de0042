/**
 * JPEG files that libjpeg-turbo writes: values with known bounds, several forms of one picture,
 * broken files.
 */
#include "common/decode.h"
#include "common/suite.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jpeglib.h>

enum { HEIGHT = 37, WIDTH = 53, MOST_SCANS = 200 };

/** How a picture is written. */
typedef struct way {
    J_COLOR_SPACE from, to;
    int quality;
    int sampling_h, sampling_v; /* of the first component; 0: 1 x 1 */
    bool progressive, optimized, arithmetic;
    int restart; /* MCUs between restarts */
    const jpeg_scan_info *scans;
    int n_scans;
} way;

static unsigned char *file;
static unsigned long count;

static void forget(void)
{
    free(file);
    file = NULL;
    count = 0;
}

static void set_way(struct jpeg_compress_struct *jpeg, const way *w)
{
    jpeg->in_color_space = w->from;
    jpeg_set_defaults(jpeg);
    jpeg_set_colorspace(jpeg, w->to);
    jpeg_set_quality(jpeg, w->quality, TRUE);
    if (w->progressive)
        jpeg_simple_progression(jpeg);
    if (w->scans) {
        jpeg->scan_info = w->scans;
        jpeg->num_scans = w->n_scans;
    }
    for (int i = 0; i < jpeg->num_components; i++)
        jpeg->comp_info[i].h_samp_factor = jpeg->comp_info[i].v_samp_factor = 1;
    jpeg->comp_info[0].h_samp_factor = w->sampling_h ? w->sampling_h : 1;
    jpeg->comp_info[0].v_samp_factor = w->sampling_v ? w->sampling_v : 1;
    jpeg->optimize_coding = w->optimized;
    jpeg->arith_code = w->arithmetic;
    jpeg->restart_interval = (unsigned int)w->restart;
}

/** Write height x width pixels of `channels` bytes. */
static void write_jpeg(const way *w, uint8_t *pixels, int height, int width, int channels)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    forget();
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &file, &count);
    jpeg.image_height = (JDIMENSION)height;
    jpeg.image_width = (JDIMENSION)width;
    jpeg.input_components = channels;
    set_way(&jpeg, w);
    jpeg_start_compress(&jpeg, TRUE);
    for (int y = 0; y < height; y++) {
        JSAMPROW row = pixels + (size_t)(y * width * channels);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
}

/** One colour, in `channels` bytes, everywhere. */
static void write_plain(const way *w, const uint8_t *colour, int channels)
{
    static uint8_t pixels[HEIGHT * WIDTH * 4];
    for (size_t i = 0; i < (size_t)(HEIGHT * WIDTH * channels); i++)
        pixels[i] = colour[i % (size_t)channels];
    write_jpeg(w, pixels, HEIGHT, WIDTH, channels);
}

/** Soft colours with noise over them. */
static void write_noise(const way *w, int channels)
{
    static uint8_t pixels[HEIGHT * WIDTH * 4];
    unsigned int x = 1;
    for (size_t i = 0; i < (size_t)(HEIGHT * WIDTH * channels); i++) {
        x = x * 1664525 + 1013904223;
        pixels[i] = (uint8_t)(i / (size_t)WIDTH + (x >> 26));
    }
    write_jpeg(w, pixels, HEIGHT, WIDTH, channels);
}

/* ------------------------------------------------------------------ values */

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/** Quality 100 stores the mean of a block exactly. */
START_TEST(plain_grey_is_exact)
{
    way const w = {.from = JCS_GRAYSCALE, .to = JCS_GRAYSCALE, .quality = 100};
    for (int value = 0; value < 256; value += 5) {
        write_plain(&w, (const uint8_t[]){(uint8_t)value}, 1);
        for (int channels = 1; channels <= 3; channels += 2) {
            uint8_t *pixels = test_decoded(file, count, HEIGHT, WIDTH, channels);
            int worst = 0;
            for (int i = 0; i < HEIGHT * WIDTH * channels; i++)
                worst = larger(worst, abs(pixels[i] - value));
            ck_assert_int_eq(worst, 0);
            free(pixels);
        }
    }
    forget();
}
END_TEST

/**
 * Y, Cb and Cr are rounded once each, so each is wrong by at most 1/2. B = Y + 1.772 (Cb - 128) is
 * then wrong by at most (1 + 1.772) / 2, plus 1/2 for its own rounding. R and G have smaller
 * errors. So all errors are below 2.
 */
START_TEST(plain_colours_are_within_their_rounding)
{
    static const uint8_t levels[] = {0, 51, 128, 200, 255};
    way w = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 100};
    w.sampling_h = w.sampling_v = 1 + _i % 2;
    for (int k = 0; k < 125; k++) {
        uint8_t const rgb[3] = {levels[k % 5], levels[k / 5 % 5], levels[k / 25]};
        write_plain(&w, rgb, 3);
        uint8_t *pixels = test_decoded(file, count, HEIGHT, WIDTH, 3);
        uint8_t *grey = test_decoded(file, count, HEIGHT, WIDTH, 1);
        double const luma = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
        int worst = 0, worst_grey = 0;
        for (int i = 0; i < HEIGHT * WIDTH; i++) {
            for (int c = 0; c < 3; c++)
                worst = larger(worst, abs(pixels[3 * i + c] - rgb[c]));
            worst_grey = larger(worst_grey, abs(2 * grey[i] - (int)(2 * luma + 0.5)));
        }
        ck_assert_int_le(worst, 2);
        ck_assert_int_le(worst_grey, 1);
        free(pixels);
        free(grey);
    }
    forget();
}
END_TEST

START_TEST(plain_rgb_is_exact)
{
    way const w = {.from = JCS_RGB, .to = JCS_RGB, .quality = 100};
    uint8_t const rgb[3] = {7, 130, 250};
    write_plain(&w, rgb, 3);
    uint8_t *pixels = test_decoded(file, count, HEIGHT, WIDTH, 3);
    uint8_t *grey = test_decoded(file, count, HEIGHT, WIDTH, 1);
    for (int i = 0; i < HEIGHT * WIDTH; i++) {
        for (int c = 0; c < 3; c++)
            ck_assert_int_eq(pixels[3 * i + c], rgb[c]);
        ck_assert_int_eq(grey[i], test_grey((const int[]){7, 130, 250}));
    }
    free(pixels);
    free(grey);
    forget();
}
END_TEST

/** CMYK is exact. YCCK turns C, M and Y as colours are turned, so they are within 2, and K exact.
 */
START_TEST(inks_become_rgb)
{
    static const uint8_t inks[][4] = {{255, 255, 255, 255}, {0, 0, 0, 0},      {255, 128, 0, 255},
                                      {10, 100, 200, 128},  {255, 0, 77, 255}, {90, 91, 92, 93}};
    way const w = {.from = JCS_CMYK, .to = _i ? JCS_YCCK : JCS_CMYK, .quality = 100};
    for (size_t k = 0; k < sizeof inks / sizeof *inks; k++) {
        write_plain(&w, inks[k], 4);
        uint8_t *pixels = test_decoded(file, count, HEIGHT, WIDTH, 3);
        uint8_t *grey = test_decoded(file, count, HEIGHT, WIDTH, 1);
        for (int i = 0; i < HEIGHT * WIDTH; i++) {
            int rgb[3];
            for (int c = 0; c < 3; c++) {
                int const exact = (int)(inks[k][c] * inks[k][3] / 255.0 + 0.5);
                rgb[c] = pixels[3 * i + c];
                ck_assert_int_le(abs(rgb[c] - exact), _i ? 2 : 0);
            }
            ck_assert_int_eq(grey[i], test_grey(rgb));
        }
        free(pixels);
        free(grey);
    }
    forget();
}
END_TEST

/* ------------------------------------------------------------------ one picture in several forms
 */

static const way forms[] = {{.progressive = true},
                            {.optimized = true},
                            {.restart = 2},
                            {.progressive = true, .restart = 3}};
static const J_COLOR_SPACE spaces[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK};

/** The coefficients are the same, so the pixels are, too. */
START_TEST(all_forms_give_the_same_pixels)
{
    J_COLOR_SPACE const space = spaces[_i / 3];
    int const stored = space == JCS_GRAYSCALE ? 1 : space == JCS_CMYK ? 4 : 3;
    way w = {.from = space == JCS_YCbCr ? JCS_RGB : space, .to = space, .quality = 80};
    w.sampling_h = 1 + (_i % 3 > 0);
    w.sampling_v = 1 + (_i % 3 > 1);
    write_noise(&w, stored);
    for (int channels = 1; channels <= 3; channels += 2) {
        uint8_t *first = test_decoded(file, count, HEIGHT, WIDTH, channels);
        for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
            way other = w;
            other.progressive = forms[k].progressive;
            other.optimized = forms[k].optimized;
            other.restart = forms[k].restart;
            write_noise(&other, stored);
            uint8_t *pixels = test_decoded(file, count, HEIGHT, WIDTH, channels);
            ck_assert_mem_eq(first, pixels, (size_t)(HEIGHT * WIDTH * channels));
            free(pixels);
        }
        free(first);
        write_noise(&w, stored);
    }
    forget();
}
END_TEST

/** Decode in a process of its own, which libjpeg-turbo asks about SIMD once. */
static void decode_apart(const char *no_simd, uint8_t *pixels)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t const child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        qat_picture p;
        qat_error err;
        (void)setenv("JSIMD_FORCENONE", no_simd, 1);
        bool const good = test_decode(&p, file, count, 3, &err) == QAT_OK &&
                          write(ends[1], p.pixels, HEIGHT * WIDTH * 3) == HEIGHT * WIDTH * 3;
        _exit(good ? 0 : 1);
    }
    (void)close(ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], pixels + got, HEIGHT * WIDTH * 3 - got)) > 0;)
        got += (size_t)n;
    (void)close(ends[0]);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0 && got == HEIGHT * WIDTH * 3);
}

START_TEST(simd_changes_nothing)
{
    static uint8_t with[HEIGHT * WIDTH * 3], without[HEIGHT * WIDTH * 3];
    way const w = {.from = JCS_RGB,
                   .to = JCS_YCbCr,
                   .quality = 85,
                   .sampling_h = 1 + (_i & 1),
                   .sampling_v = 1 + (_i >> 1),
                   .progressive = _i == 3};
    write_noise(&w, 3);
    decode_apart("0", with);
    decode_apart("1", without);
    ck_assert_mem_eq(with, without, sizeof with);
    forget();
}
END_TEST

/* ------------------------------------------------------------------ broken files */

static const way cuts[] = {
    {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .sampling_h = 2, .sampling_v = 2},
    {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .progressive = true},
    {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .restart = 1},
    {.from = JCS_CMYK, .to = JCS_YCCK, .quality = 60}};

/** Only the end marker's two bytes may be missing. */
START_TEST(a_cut_jpeg_is_refused)
{
    write_noise(&cuts[_i], cuts[_i].from == JCS_CMYK ? 4 : 3);
    test_cut_refused(file, count, 2);
    uint8_t *whole = test_decoded(file, count, HEIGHT, WIDTH, 3);
    for (size_t lack = 1; lack <= 2; lack++) {
        uint8_t *pixels = test_decoded(file, count - lack, HEIGHT, WIDTH, 3);
        ck_assert_mem_eq(whole, pixels, HEIGHT * WIDTH * 3);
        free(pixels);
    }
    free(whole);
    forget();
}
END_TEST

/** The place of a marker in the file. */
static size_t find_marker(int marker)
{
    for (size_t i = 2; i + 1 < count; i++)
        if (file[i] == 0xff && file[i + 1] == marker)
            return i;
    ck_abort_msg("no marker %x", (unsigned int)marker);
}

/** A table of 16 x 255 codes; then one of 257, with all its bytes there. */
START_TEST(too_many_huffman_codes_are_refused)
{
    static uint8_t bytes[1 << 16];
    way const w = {.from = JCS_GRAYSCALE, .to = JCS_GRAYSCALE, .quality = 60};
    write_noise(&w, 1);
    size_t const at = find_marker(0xc4);
    for (int last = 1; last <= 255; last += 254) {
        int const codes = last == 1 ? 257 : 16 * 255;
        memset(bytes, 0, sizeof bytes);
        memcpy(bytes, file, at);
        uint8_t *table = bytes + at;
        memcpy(table,
               (const uint8_t[]){0xff, 0xc4, (uint8_t)((codes + 19) >> 8), (uint8_t)(codes + 19),
                                 0x10},
               5);
        memset(table + 5, last == 1 ? 0 : 255, 16);
        if (last == 1) {
            table[5 + 14] = 255;
            table[5 + 15] = 2;
        }
        memcpy(table + 21 + codes, file + at, count - at);
        test_refused(bytes, count + (size_t)codes + 21, "broken JPEG (Bogus Huffman table");
    }
    forget();
}
END_TEST

/** A header of any size; the pixels that follow are those of a small picture. */
static void set_size(int height, int width)
{
    size_t const at = find_marker(0xc0);
    file[at + 5] = (uint8_t)(height >> 8);
    file[at + 6] = (uint8_t)height;
    file[at + 7] = (uint8_t)(width >> 8);
    file[at + 8] = (uint8_t)width;
}

START_TEST(a_size_is_checked_before_memory_is_taken)
{
    qat_picture p;
    qat_error err;
    way const w = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60};
    write_noise(&w, 3);
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, HEIGHT * WIDTH - 1, &err),
                     QAT_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.message, "37 x 53 pixels, more than the 1960 allowed"));
    set_size(30000, 30000);
    test_refused(file, count, "30000 x 30000 pixels, more than the 178956970 allowed");
    set_size(13000, 13000);
    test_refused(file, count, "truncated");
    set_size(0, 100);
    test_refused(file, count, "broken JPEG");
    set_size(65535, 1);
    test_refused(file, count, "broken JPEG (Maximum supported image dimension");
    forget();
}
END_TEST

/** A picture in several scans counts as many times its pixels as it takes their memory. */
START_TEST(several_scans_take_more_memory)
{
    static const struct {
        J_COLOR_SPACE space;
        int stored, times;
    } kinds[] = {{JCS_GRAYSCALE, 1, 2}, {JCS_RGB, 3, 3}, {JCS_CMYK, 4, 4}};
    qat_picture p;
    qat_error err;
    way const w = {
        .from = kinds[_i].space, .to = kinds[_i].space, .quality = 60, .progressive = true};
    int64_t const needed = (int64_t)kinds[_i].times * HEIGHT * WIDTH;
    write_noise(&w, kinds[_i].stored);
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, needed, &err), QAT_OK);
    free(p.pixels);
    ck_assert_int_eq(test_decode_within(&p, file, count, 3, needed - 1, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, "37 x 53 pixels in several scans take the memory of ") &&
                      strstr(err.message, " allowed (max_pixels)"),
                  "%s", err.message);
    ck_assert_ptr_null(p.pixels);
    forget();
}
END_TEST

/** More than MAX_SCANS: DC of all components, then each of 63 x 3 coefficients in a scan of its
 * own. */
START_TEST(too_many_scans_are_refused)
{
    static jpeg_scan_info scans[MOST_SCANS];
    way w = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .scans = scans};
    scans[0] = (jpeg_scan_info){.comps_in_scan = 3, .component_index = {0, 1, 2}};
    w.n_scans = 1;
    for (int c = 0; c < 3; c++)
        for (int i = 1; i < 64; i++)
            scans[w.n_scans++] =
                (jpeg_scan_info){.comps_in_scan = 1, .component_index = {c}, .Ss = i, .Se = i};
    write_noise(&w, 3);
    test_refused(file, count, "broken JPEG (more than 100 scans)");
    forget();
}
END_TEST

/** Three scans, of one component each; without the last one, and with an end. */
START_TEST(a_missing_component_is_refused)
{
    static const jpeg_scan_info scans[] = {{.comps_in_scan = 1, .component_index = {0}, .Se = 63},
                                           {.comps_in_scan = 1, .component_index = {1}, .Se = 63},
                                           {.comps_in_scan = 1, .component_index = {2}, .Se = 63}};
    way const w = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .scans = scans, .n_scans = 3};
    write_noise(&w, 3);
    free(test_decoded(file, count, HEIGHT, WIDTH, 3));
    size_t last = 0;
    for (size_t i = 2; i + 1 < count; i++)
        last = file[i] == 0xff && file[i + 1] == 0xda ? i : last;
    test_refused(file, last, "truncated");
    file[last + 1] = 0xd9;
    test_refused(file, last + 2, "broken JPEG (no scan of one of its components)");
    forget();
}
END_TEST

/**
 * If the last scans of a progressive picture were removed on purpose, it has an end and is read.
 */
START_TEST(a_coarse_picture_is_read)
{
    way const all = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .progressive = true};
    write_noise(&all, 3);
    size_t second = 0;
    for (size_t i = find_marker(0xda) + 2; i + 1 < count && !second; i++)
        second = file[i] == 0xff && (file[i + 1] == 0xc4 || file[i + 1] == 0xda) ? i : 0;
    test_refused(file, second, "truncated");
    file[second + 1] = 0xd9;
    free(test_decoded(file, second + 2, HEIGHT, WIDTH, 3));
    forget();
}
END_TEST

START_TEST(arithmetic_coding_is_refused)
{
    way const w = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 60, .arithmetic = true};
    write_noise(&w, 3);
    test_refused(file, count, "broken JPEG (");
    forget();
}
END_TEST

/** Damage that the decoder notices is an error; in any case nothing else breaks. */
START_TEST(damage_does_no_harm)
{
    write_noise(&cuts[_i], cuts[_i].from == JCS_CMYK ? 4 : 3);
    int refused = 0;
    for (size_t at = 2; at < count; at++) {
        qat_picture p;
        qat_error err;
        uint8_t const old = file[at];
        file[at] = (uint8_t)(old ^ (at % 255 + 1));
        qat_status const st = test_decode_within(&p, file, count, 3, 1 << 20, &err);
        ck_assert(st == QAT_OK || (st == QAT_ERR_FORMAT && *err.message));
        refused += st != QAT_OK;
        free(p.pixels);
        file[at] = old;
    }
    ck_assert_int_gt(refused, 50);
    forget();
}
END_TEST

/** At a smaller size: the smallest of 1/2, 1/4, 1/8 that has the pixels that are needed. */
START_TEST(a_smaller_size_is_decoded)
{
    static uint8_t pixels[96 * 130 * 3];
    static const struct {
        int least_height, least_width, height, width;
    } cases[] = {{0, 0, 96, 130},   {97, 10, 96, 130}, {49, 1, 96, 130}, {48, 65, 48, 65},
                 {48, 66, 96, 130}, {24, 33, 24, 33},  {24, 34, 48, 65}, {12, 17, 12, 17},
                 {13, 17, 24, 33},  {1, 1, 12, 17}};
    way const w = {.from = JCS_RGB, .to = JCS_YCbCr, .quality = 90};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i / (130 * 3));
    write_jpeg(&w, pixels, 96, 130, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qat_picture_file const f = {.path = "a.jpg",
                                    .bytes = file,
                                    .count = count,
                                    .channels = 3,
                                    .max_pixels = 96 * 130,
                                    .least_height = cases[i].least_height,
                                    .least_width = cases[i].least_width};
        qat_picture p;
        ck_assert_int_eq(qat_picture_decode(&p, &f, NULL), QAT_OK);
        ck_assert_int_eq(p.height, cases[i].height);
        ck_assert_int_eq(p.width, cases[i].width);
        for (int y = 0; y < p.height; y++) /* rows become brighter downwards, at every size */
            ck_assert_int_le(abs(p.pixels[y * p.width * 3] - (2 * y + 1) * 96 / (2 * p.height)), 4);
        free(p.pixels);
    }
}
END_TEST

/** What is needed for a size: doubled for random parts, more for a crop of the middle. */
START_TEST(how_many_pixels_are_needed)
{
    qat_image_size size = {.height = 20, .width = 30, .channels = 3};
    int h, w;
    qat_image_least(&size, true, &h, &w);
    ck_assert(h == 0 && w == 0);
    size.jpeg_scale = true;
    qat_image_least(&size, false, &h, &w);
    ck_assert(h == 20 && w == 30);
    qat_image_least(&size, true, &h, &w);
    ck_assert(h == 40 && w == 60);
    size.resize_short = 36;
    qat_image_least(&size, false, &h, &w);
    ck_assert(h == 36 && w == 36);
    size.central_crop = 0.875;
    qat_image_least(&size, false, &h, &w);
    ck_assert(h == 23 && w == 35);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jpeg");
    TCase *tc = tcase_create("jpeg");
    tcase_add_test(tc, a_smaller_size_is_decoded);
    tcase_add_test(tc, how_many_pixels_are_needed);
    tcase_add_test(tc, plain_grey_is_exact);
    tcase_add_loop_test(tc, plain_colours_are_within_their_rounding, 0, 2);
    tcase_add_test(tc, plain_rgb_is_exact);
    tcase_add_loop_test(tc, inks_become_rgb, 0, 2);
    tcase_add_loop_test(tc, all_forms_give_the_same_pixels, 0,
                        3 * (int)(sizeof spaces / sizeof *spaces));
    tcase_add_loop_test(tc, simd_changes_nothing, 0, 4);
    tcase_add_loop_test(tc, a_cut_jpeg_is_refused, 0, (int)(sizeof cuts / sizeof *cuts));
    tcase_add_test(tc, too_many_huffman_codes_are_refused);
    tcase_add_test(tc, a_size_is_checked_before_memory_is_taken);
    tcase_add_loop_test(tc, several_scans_take_more_memory, 0, 3);
    tcase_add_test(tc, too_many_scans_are_refused);
    tcase_add_test(tc, a_missing_component_is_refused);
    tcase_add_test(tc, a_coarse_picture_is_read);
    tcase_add_test(tc, arithmetic_coding_is_refused);
    tcase_add_loop_test(tc, damage_does_no_harm, 0, (int)(sizeof cuts / sizeof *cuts));
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
