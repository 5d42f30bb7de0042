/** Tables of pictures with targets: what is read for which split, and what is refused. */
#include "common/suite.h"
#include "common/temp.h"
#include "qat/dataset.h"

#include <check.h>
#include <math.h>
#include <string.h>

static char path[TEST_PATH_MAX];

static void write_table(const char *text)
{
    test_temp_write(folder, "table.csv", text, strlen(text));
}

/** A picture of 2 x 2 pixels, all of one grey. */
static void write_picture(const char *name, char grey)
{
    char ppm[] = "P6\n2 2\n255\n____________";
    memset(strchr(ppm, '_'), grey, 12);
    test_temp_write(folder, name, ppm, sizeof ppm - 1);
}

static void setup(void)
{
    test_folder_make();
    test_temp_path(path, folder, "table.csv");
}

static qat_dataset_options options(void)
{
    return (qat_dataset_options){.kind = "table",
                                 .path = path,
                                 .images = {".", "."},
                                 .value = "age",
                                 .height = 4,
                                 .width = 4};
}

static const char good[] = "file,split,age,sex,mood\r\n"
                           "a.ppm,train,24,male,happy\r\n"
                           "b.ppm,val,31.5,female,\"so \"\"so\"\"\"\n"
                           "\n"
                           "c.ppm,train,NA,,\"a, b\"\n"
                           "\"d.ppm\",test,7,male,happy";

static qat_dataset *open_table(qat_split split, const char *attributes)
{
    qat_dataset_options o = options();
    qat_dataset *d;
    qat_error err;
    o.attributes = attributes;
    ck_assert_msg(qat_dataset_open(&d, &o, split, &err) == QAT_OK, "%s", err.message);
    return d;
}

START_TEST(lines_of_a_split_become_samples)
{
    write_table(good);
    qat_dataset *d = open_table(QAT_SPLIT_TRAIN, "sex=male, mood=happy");
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert(info->has_targets && info->has_value && info->count == 2 && info->classes == 2 &&
              info->height == 4);
    ck_assert_str_eq(info->labels[0], "sex: male");
    ck_assert_str_eq(info->labels[1], "mood: happy");
    const float *a = qat_dataset_targets(d, 0), *c = qat_dataset_targets(d, 1);
    ck_assert(a[0] == 1 && a[1] == 1 && a[2] == 24);
    ck_assert(isnan(c[0]) && c[1] == 0 && isnan(c[2]));
    qat_dataset_close(d);
    d = open_table(QAT_SPLIT_TEST, "mood=so \"so\"");
    const float *b = qat_dataset_targets(d, 0), *e = qat_dataset_targets(d, 1);
    ck_assert(qat_dataset_info_of(d)->count == 2 && b[0] == 1 && b[1] == 31.5f);
    ck_assert(e[0] == 0 && e[1] == 7);
    qat_dataset_close(d);
}
END_TEST

START_TEST(pictures_are_decoded_and_resized)
{
    uint8_t values[4 * 4 * 3];
    int label;
    qat_error err;
    write_table(good);
    write_picture("a.ppm", 77);
    qat_dataset *d = open_table(QAT_SPLIT_TRAIN, "sex=male");
    ck_assert_int_eq(qat_dataset_get(d, 0, values, &label, NULL), QAT_OK);
    ck_assert(label == 0 && values[0] == 77 && values[47] == 77);
    ck_assert_int_ne(qat_dataset_get(d, 1, values, &label, &err), QAT_OK);
    ck_assert_ptr_nonnull(strstr(err.message, "c.ppm"));
    qat_dataset_close(d);
}
END_TEST

/* It begins with a byte-order mark. */
START_TEST(a_table_may_have_no_value)
{
    write_table("\xef\xbb\xbf"
                "sex,file,split\nmale,a.ppm,train\nmale,a.ppm,val\n");
    for (int split = 0; split < 2; split++) {
        qat_dataset_options o = options();
        qat_dataset *d;
        o.attributes = "sex=male";
        o.value = NULL;
        ck_assert_int_eq(qat_dataset_open(&d, &o, (qat_split)split, NULL), QAT_OK);
        ck_assert(!qat_dataset_info_of(d)->has_value);
        ck_assert(qat_dataset_targets(d, 0)[0] == 1 && isnan(qat_dataset_targets(d, 0)[1]));
        qat_dataset_close(d);
    }
}
END_TEST

START_TEST(a_table_may_have_a_value_alone)
{
    write_table("age,file,split\n34.5,a.ppm,train\nNA,a.ppm,train\n");
    qat_dataset_options o = options();
    qat_dataset *d;
    o.attributes = "";
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, NULL), QAT_OK);
    const qat_dataset_info *info = qat_dataset_info_of(d);
    ck_assert(info->has_targets && info->has_value && !info->classes && !info->labels);
    ck_assert(*qat_dataset_targets(d, 0) == 34.5f && isnan(*qat_dataset_targets(d, 1)));
    qat_dataset_close(d);
}
END_TEST

static const struct {
    const char *text, *attributes, *value, *says;
} refused[] = {
    {"", "sex=male", "age", "the header must have 1..256 columns"},
    {"name,sex\nx,male\n", "sex=male", "", "no column \"file\""},
    {good, "hat=yes", "age", "data.attributes: no column \"hat\""},
    {good, "sex=male", "height", "data.value: no column \"height\""},
    {good, "sex", "age", "\"sex\": expected COLUMN=TEXT"},
    {good, "", "", "data.attributes and data.value are empty"},
    {"file,split,sex\na.ppm,train,male\nb.ppm,Train,male\n", "sex=male", "",
     "table.csv:3: split is \"Train\", not train, val or test"},
    {"file,sex\na.ppm,male\n", "sex=male", "",
     "no column \"split\", which must be train, val or test"},
    {"file,split,sex\na.ppm\n", "sex=male", "", "table.csv:2: 1 fields, but the header has 3"},
    {"file,split,sex\n\n../a.ppm,train,male\n", "sex=male", "",
     "table.csv:3: file is \"../a.ppm\", which lies outside of the folder of pictures"},
    {"file,split,sex\n/a.ppm,train,male\n", "sex=male", "", "table.csv:2: file is \"/a.ppm\""},
    {"file,split,age,sex\n\na.ppm,train,old,male\n", "sex=male", "age",
     "table.csv:3: age is \"old\", not a number"},
    {"file,split,sex\na.ppm,val,male\n", "sex=male", "", "no picture of split train"},
};

START_TEST(broken_tables_are_named)
{
    qat_dataset_options o = options();
    qat_dataset *d;
    qat_error err;
    write_table(refused[_i].text);
    o.attributes = refused[_i].attributes;
    o.value = refused[_i].value;
    ck_assert_int_ne(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err), QAT_OK);
    ck_assert_msg(strstr(err.message, refused[_i].says), "\"%s\" lacks \"%s\"", err.message,
                  refused[_i].says);
}
END_TEST

/* A byte 0 would end the text there: pictures after it were left out without a word. */
START_TEST(a_byte_0_is_no_text)
{
    static const char table[] = "file,split,age,sex\na.ppm,train,1,male\n\0b.ppm,train,2,male\n";
    static const char list[] = "a.ppm 0\n\0b.ppm 1\n";
    bool const is_list = _i == 1;
    qat_dataset_options o = options();
    qat_dataset *d;
    qat_error err;
    o.kind = is_list ? "list" : "table";
    o.attributes = "sex=male";
    test_temp_write(folder, "table.csv", is_list ? list : table,
                    is_list ? sizeof list - 1 : sizeof table - 1);
    ck_assert_int_eq(qat_dataset_open(&d, &o, QAT_SPLIT_TRAIN, &err), QAT_ERR_FORMAT);
    ck_assert_msg(strstr(err.message, is_list ? "table.csv: not a text file (byte 8 is 0)"
                                              : "table.csv: not a text file (byte 38 is 0)"),
                  "%s", err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table");
    TCase *tc = tcase_create("table");
    tcase_add_checked_fixture(tc, setup, test_folder_remove);
    tcase_add_test(tc, lines_of_a_split_become_samples);
    tcase_add_test(tc, pictures_are_decoded_and_resized);
    tcase_add_test(tc, a_table_may_have_no_value);
    tcase_add_test(tc, a_table_may_have_a_value_alone);
    tcase_add_loop_test(tc, broken_tables_are_named, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_loop_test(tc, a_byte_0_is_no_text, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
