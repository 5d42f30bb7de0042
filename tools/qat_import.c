/** qat-import: turns a quantized .tflite or .onnx model into a .qm. */
#include "tools/common/limits.h"
#include "tools/common/model.h"
#include "tools/import_labels.h"

#include "base/files/file.h"
#include "base/number.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MODEL_BYTES = 1 << 30 };

enum { MOST_CHANNELS = 3 };

static const char *labels_path, *description, *mean_text, *std_text;
static bool json, no_test;

static const tool_option options[] = {
    {"--labels", TOOL_TEXT, &labels_path, "FILE",
     "file with the names of the classes, one per line", 0, 0},
    {"--description", TOOL_TEXT, &description, "TEXT",
     "text to store in the model; default: the source file's name", 0, 0},
    {"--mean", TOOL_TEXT, &mean_text, "M[,M,M]",
     "the model takes pictures: (pixel - mean) / std, one number or one for each channel (default "
     "0)",
     0, 0},
    {"--std", TOOL_TEXT, &std_text, "S[,S,S]", "the std that goes with --mean (default 1)", 0, 0},
    {"--no-self-test", TOOL_FLAG, &no_test, NULL,
     "do not store the known-answer test (an input and its outputs)", 0, 0},
    TOOL_MEMORY_OPTION("the most memory that a run of the model may take, in MiB (default 4096)"),
    TOOL_MACS_OPTION,
    {"--json", TOOL_FLAG, &json, NULL, "print one JSON object", 0, 0},
    {0}};

static const tool me = {
    "qat-import",
    "MODEL OUT.qm [--labels FILE] [--description TEXT] [--mean M[,M,M]] [--std S[,S,S]]\n"
    "                  [--no-self-test] [--max-memory MIB] [--max-macs N] [--json]",
    "Turns a quantized model, .tflite or .onnx, into a .qm. The .qm runs with integers only. It "
    "gives the\n"
    "same bytes as TensorFlow Lite's reference kernels, or as ONNX Runtime's of quantized "
    "operators. If an\n"
    "operator is not supported, the message names it, and nothing is written.",
    options,
    2,
    2};

static void name_list(const qi_model *model, const char *what, int32_t count,
                      int32_t (*at)(const qi_model *model, int32_t i))
{
    for (int32_t i = 0; i < count; i++) {
        const qi_tensor *t = qi_tensor_at(model, at(model, i));
        static const char *const types[] = {"uint8", "int8", "int32", "int64", "int16"};
        printf("%s %d: %s %s [", what, (int)i, tool_shown(t->name), types[t->type]);
        for (int d = 0; d < t->rank; d++)
            printf("%s%d", d ? ", " : "", (int)t->dims[d]);
        printf("]%s\n", t->border ? " (float32 outside)" : "");
    }
}

static void print_model(const qi_host *host, const char *path)
{
    const qi_model *m = qi_host_model(host);
    if (json) {
        printf("{\"model\": ");
        tool_json_string(path);
        printf(", \"bytes\": %zu, \"arena_bytes\": %zu, \"ops\": %d, \"tensors\": %d, "
               "\"inputs\": %d, \"outputs\": %d, \"labels\": %d}\n",
               qi_host_sizes(host).file, qi_host_sizes(host).arena, (int)qi_node_count(m),
               (int)qi_tensor_count(m), (int)qi_input_count(m), (int)qi_output_count(m),
               (int)qi_label_count(m));
        return;
    }
    printf("%s: %zu bytes, %d op%s, device arena %zu bytes\n", tool_shown(path),
           qi_host_sizes(host).file, (int)qi_node_count(m), qat_plural(qi_node_count(m)),
           qi_host_sizes(host).arena);
    name_list(m, "input", qi_input_count(m), qi_input_at);
    name_list(m, "output", qi_output_count(m), qi_output_at);
}

/** Open the written file as any program would. */
static qat_status report(const char *path, qat_error *err)
{
    qi_host *host = NULL;
    qi_host_options const how = {.limits = tool_limits_of()};
    qat_status const st = qi_host_open(&host, path, &how, err);
    if (!st)
        print_model(host, path);
    qi_host_close(host);
    return st;
}

/**
 * How many labels the answers of a model need; 0: unknown, because it is neither a classifier nor a
 * detector.
 */
static int32_t count_classes(const qi_model *m)
{
    const qi_tensor *t = qi_tensor_at(m, qi_output_at(m, 0));
    if (qat_is_detector(m)) {
        const qi_tensor *scores = qi_tensor_at(m, qi_model_epilogue(m)->inputs[1]);
        return scores->dims[scores->rank - 1];
    }
    bool const one_list = qi_output_count(m) == 1 && qi_type_has_codes(t->type) && t->rank > 0 &&
                          qat_tensor_values(t) == (size_t)t->dims[t->rank - 1];
    return one_list ? t->dims[t->rank - 1] : 0;
}

/**
 * Refuse a list of labels of the wrong length. With one line too many, all names would be wrong.
 */
static qat_status check_labels(const uint8_t *qm, size_t qm_bytes, const char *name, int count,
                               qat_error *err)
{
    qi_host *host = NULL;
    if (!labels_path)
        return QAT_OK;
    qi_host_options const how = {.limits = tool_limits_of()};
    qat_status const st = qi_host_open_bytes(&host, qm, qm_bytes, name, &how, err);
    if (st)
        return st;
    int32_t const classes = count_classes(qi_host_model(host));
    qi_host_close(host);
    if (!classes || classes == count)
        return QAT_OK;
    return qat_fail(err, QAT_ERR_ARGUMENT, "%s has %d labels, but %s has %d classes", labels_path,
                    count, name, (int)classes);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/** Refuse to write a model over the file that it comes from, or over a checkpoint. */
static qat_status check_paths(const char *from, const char *to, qat_error *err)
{
    struct stat source, target;
    if (stat(from, &source) || stat(to, &target) || source.st_dev != target.st_dev ||
        source.st_ino != target.st_ino)
        return tool_spare(to, "qm", err);
    return qat_fail(
        err, QAT_ERR_ARGUMENT,
        "%s is the model to import; it would be overwritten: give another name for the .qm", to);
}

/** Numbers of an option, separated by commas; returns how many. */
static int read_numbers(const char *option, const char *text, float values[MOST_CHANNELS])
{
    const char *at = text;
    char *end;
    bool good;
    int n = 0;
    do {
        values[n++] = qat_number_of_f32(at, &end);
        good = end > at && (!*end || *end == ',');
        at = end + 1;
    } while (good && *end && n < MOST_CHANNELS);
    if (!good || *end)
        tool_usage(&me,
                   "%s %s: expected a number, or one for each channel, such as 123.7,116.3,103.5",
                   option, tool_shown(text));
    return n;
}

/** Set what a picture's pixels mean, from --mean and --std. */
static void set_means(qat_import_options *how, float mean[MOST_CHANNELS], float std[MOST_CHANNELS])
{
    if (!mean_text && !std_text)
        return;
    int const means = mean_text ? read_numbers("--mean", mean_text, mean) : 1;
    int const stds = std_text ? read_numbers("--std", std_text, std) : 1;
    how->means = means > stds ? means : stds;
    if (means != stds && means > 1 && stds > 1)
        tool_usage(&me, "--mean has %d numbers, but --std has %d", means, stds);
    for (int c = 1; c < how->means; c++) {
        mean[c] = means > 1 ? mean[c] : mean[0];
        std[c] = stds > 1 ? std[c] : std[0];
    }
    how->mean = mean;
    how->std = std;
}

/** By its bytes; the name of a file that is neither says what it should be. */
static bool is_tflite(const char *path, const uint8_t *bytes, size_t count)
{
    static const char mark[] = "TFL3", ending[] = ".tflite";
    size_t const n = strlen(path), length = sizeof ending - 1;
    return (count >= 8 && !memcmp(bytes + 4, mark, sizeof mark - 1)) ||
           (n > length && !strcmp(path + n - length, ending));
}

static qat_status import(const char *from, const char *to, const import_labels *l, qat_error *err)
{
    float mean[MOST_CHANNELS] = {0}, std[MOST_CHANNELS] = {1};
    uint8_t *bytes = NULL, *qm = NULL;
    size_t count = 0, qm_bytes = 0;
    qat_error why;
    qat_import_options how = {.description = description ? description : base_name(from),
                              .labels = l->lines,
                              .n_labels = l->count,
                              .known_answers = !no_test,
                              .limits = tool_limits_of()};
    set_means(&how, mean, std);
    qat_status st = check_paths(from, to, err);
    if (!st)
        st = qat_file_read(from, MAX_MODEL_BYTES, &bytes, &count, err);
    if (!st) {
        st = (is_tflite(from, bytes, count) ? qat_tflite_to_qm : qat_onnx_to_qm)(
            bytes, count, &how, &qm, &qm_bytes, &why);
        if (st)
            qat_fail(err, st, "%s: %.440s", from, why.message);
    }
    if (!st)
        st = check_labels(qm, qm_bytes, from, l->count, err);
    if (!st)
        st = qat_file_write_atomic(to, qm, qm_bytes, err);
    free(bytes);
    free(qm);
    return st ? st : report(to, err);
}

int main(int argc, char **argv)
{
    tool_list args;
    qat_error err;
    import_labels l = {0};
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    qat_status st = labels_path ? import_labels_read(&l, labels_path, &err) : QAT_OK;
    if (!st)
        st = import(args.items[0], args.items[1], &l, &err);
    import_labels_free(&l);
    return st ? tool_failed(&me, &err) : 0;
}
