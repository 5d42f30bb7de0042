/**
 * qat-export: makes a .qm from a checkpoint, after both sides gave the same bytes; and files of
 * other tools from a checkpoint or a .qm.
 */
#include "tools/common/evaluate.h"
#include "tools/common/limits.h"
#include "tools/common/model.h"
#include "tools/common/plugins.h"
#include "tools/common/ptq.h"
#include "tools/export_format.h"
#include "tools/ranks/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t reestimate_bn;
static const char *data, *profile, *format, *form, *pack, *compact, *strip, *ram;
static tool_list plugins;
static int64_t samples, threads, opset, rank_timeout = RANKS_TIMEOUT;
static const qat_ranks *ranks; /* NULL: this process is alone */
static bool json, summary, raw_params, float_io, as_float;
static const char *prefix, *section;
static bool no_self_test, no_preprocessing, caller_arena, separate_weights, strict;

static const tool_option options[] = {
    {"--data", TOOL_TEXT, &data, "KIND[:PATH]",
     "verify on this data instead of the recipe's test data", 0, 0},
    {"--samples", TOOL_INT, &samples, "N", "verify on at most N samples", 1, INT64_C(1) << 40},
    {"--profile", TOOL_TEXT, &profile, "P",
     "how the model rounds: paper, tflite or onnx (default: as the recipe says; tflite\n"
     "for a .tflite file, onnx for an .onnx file of the form qdq or qoperator)",
     0, 0},
    {"--reestimate-bn", TOOL_INT, &reestimate_bn, "N",
     "average the statistics of batch norm again, over N training batches with\n"
     "quantized weights",
     1, 1000000000},
    TOOL_PTQ_OPTIONS,
    {"--format", TOOL_TEXT, &format, "F",
     "format of the output: qm, tflite, onnx, npz or c (default: what the name ends\n"
     "in). c: OUT.c and OUT.h, which a compiler of C99 or C++17 makes a program of",
     0, 0},
    {"--float", TOOL_FLAG, &as_float, NULL,
     "onnx, tflite: the float network of a checkpoint, not its integers;\n"
     "npz: its parameters, which --init of qat-train and NumPy read",
     0, 0},
    {"--float-io", TOOL_FLAG, &float_io, NULL,
     "onnx, tflite: real numbers in and out instead of codes; pictures normalised", 0, 0},
    {"--opset", TOOL_INT, &opset, "N",
     "onnx: the version of its operators, 13 to 21 (default 17); from 21 on,\n"
     "weights of 4 bits or fewer take 4 bits",
     13, 21},
    {"--form", TOOL_TEXT, &form, "F",
     "onnx: qdq (default): QuantizeLinear and DequantizeLinear around operators\n"
     "of real numbers; qoperator: QLinearConv and so on; integer: ConvInteger and\n"
     "so on, which give the model's bytes whatever its profile is",
     0, 0},
    {"--pack", TOOL_TEXT, &pack, "yes|no",
     "qm: weights of fewer than 8 bits share bytes (yes, the default), or take a\n"
     "byte each (no)",
     0, 0},
    {"--compact", TOOL_TEXT, &compact, "yes|no",
     "qm: records of tensors and layers have only the fields that they need (yes,\n"
     "the default), or a fixed length (no), which older engines read",
     0, 0},
    {"--strip", TOOL_OPTIONAL, &strip, "PARTS",
     "qm: leave out what running does not need: names (of tensors and layers),\n"
     "description, labels, test (the known answer), scales (of channels); with\n"
     "PARTS, such as --strip=names,test, only these",
     0, 0},
    {"--ram", TOOL_TEXT, &ram, "BYTES",
     "qm, c: make the model fit this RAM (64K: 64 times 1024 bytes). If it needs more,\n"
     "its first layers run band by band of rows, or tensors of at most 4 bits lie\n"
     "packed between layers; the outputs are the same",
     0, 0},
    {"--prefix", TOOL_TEXT, &prefix, "NAME",
     "c: the start of all names, such as NAME_run (default: the file's name)", 0, 0},
    {"--section", TOOL_TEXT, &section, "NAME", "c: put the constants into this section", 0, 0},
    {"--no-self-test", TOOL_FLAG, &no_self_test, NULL,
     "c: leave out NAME_self_test and the known answer", 0, 0},
    {"--no-preprocessing", TOOL_FLAG, &no_preprocessing, NULL,
     "c: leave out NAME_picture and NAME_sound", 0, 0},
    {"--caller-arena", TOOL_FLAG, &caller_arena, NULL,
     "c: the functions take the memory for activations as an argument", 0, 0},
    {"--separate-weights", TOOL_FLAG, &separate_weights, NULL,
     "c: write the constants to OUT.bin, for a place in flash of their own", 0, 0},
    {"--strict", TOOL_FLAG, &strict, NULL,
     "c: every body in braces and other things that MISRA C asks for", 0, 0},
    {"--raw-params", TOOL_FLAG, &raw_params, NULL,
     "for a checkpoint with averaged parameters: use those of the last step\n"
     "instead",
     0, 0},
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load the custom layers and tasks that the checkpoint needs from this file\n"
     "(repeatable)",
     0, 0},
    {"--threads", TOOL_INT, &threads, "N",
     "compute threads (default: OMP_NUM_THREADS, or one per processor)", 1, TOOL_THREADS_MAX},
    RANKS_TIMEOUT_OPTION(&rank_timeout),
    {"--summary", TOOL_FLAG, &summary, NULL,
     "afterwards evaluate both networks on the test data and print a table", 0, 0},
    TOOL_MEMORY_OPTION(
        "the most memory that one network, and a data set, may take, in MiB\n(default 4096)"),
    TOOL_MACS_OPTION,
    TOOL_PIXELS_OPTION,
    {"--json", TOOL_FLAG, &json, NULL, "print one JSON object", 0, 0},
    {0}};

static const tool me = {
    "qat-export",
    "CKPT|IN.qm OUT [--data KIND[:PATH]] [--samples N] [--profile P]\n"
    "                  [--ptq KIND[:PATH] [--ptq-samples N] [--observer O] [--equalize]\n"
    "                  [--correct-bias] [--set quant.KEY=VALUE]...] [--reestimate-bn N]\n"
    "                  [--format F] [--float] [--float-io] [--form F] [--opset N]\n"
    "                  [--pack yes|no] [--compact yes|no] [--strip[=PARTS]]\n"
    "                  [--ram BYTES]\n"
    "                  [--prefix NAME] [--section NAME] [--no-self-test]\n"
    "                  [--no-preprocessing] [--caller-arena] [--separate-weights] [--strict]\n"
    "                  [--plugin FILE.so]... [--threads N] [--rank-timeout S] [--raw-params]\n"
    "                  [--summary] [--max-memory MIB] [--max-macs N] [--max-pixels N] [--json]",
    "Turns a trained network into a model of integers only: folds batch norm, quantizes, writes.\n"
    "It checks the model first: every number in the file agrees with the checkpoint; the engine\n"
    "and a second, exact evaluation agree on every byte of every tensor; every layer agrees with\n"
    "its float original within its rounding errors; and the engine is about as near to the float\n"
    "network as the simulation is. If a check fails, nothing is written.",
    options,
    2,
    2};

/** What --summary evaluates: both networks on the test data. n = 0: it was not asked for. */
typedef struct summary_result {
    qat_accuracy in_float, on_integers;
} summary_result;

static double percent(int64_t part, int64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_certificate(const qat_deploy_result *r)
{
    const qat_certificate *c = &r->certificate;
    printf("certified against %s: %lld layers, %lld weight codes, %lld biases, %lld multipliers, "
           "%lld table entries, %lld scales, %lld codes of the input\n",
           tool_shown(r->certified_against), (long long)c->layers, (long long)c->weights,
           (long long)c->biases, (long long)c->multipliers, (long long)c->tables,
           (long long)c->scales, (long long)r->input_codes);
    printf("against the float network: ");
    if (isnan(c->engine_snr))
        printf("outputs not compared");
    else
        printf("%.1f dB at the outputs, %.1f dB simulated", c->engine_snr, c->simulation_snr);
    printf(" (%lld tensors, %lld samples)\n", (long long)c->signal_tensors,
           (long long)c->signal_samples);
    if (c->n_uncertified)
        printf("not certified: %s\n", tool_shown(c->uncertified));
}

/** Is the file that is written the very .qm that was verified? */
static bool is_verified_file(const export_made *made)
{
    return made->format->is_qm && !made->again;
}

/** A file beside a C file, if it was written. */
static void print_source_part(const char *path, const char *ending, size_t bytes)
{
    char part[EXPORT_PATH_MAX];
    export_source_path(path, ending, part);
    if (bytes)
        printf("%s: %zu bytes\n", tool_shown(part), bytes);
}

/** The last lines: the file, or files. */
static void print_file(const char *path, const export_made *made)
{
    char parts[96], file[EXPORT_PATH_MAX];
    export_parts(&made->form, parts);
    export_source_path(path, made->format->is_source ? ".c" : "", file);
    printf("%s: %lld bytes, %s%s%s%s%s\n", tool_shown(made->format->is_source ? file : path),
           (long long)made->bytes, made->format->name, made->form.unpacked ? ", not packed" : "",
           made->form.fixed ? ", not compact" : "", *parts ? ", without " : "", parts);
    print_source_part(path, ".h", made->source.header_bytes);
    print_source_part(path, ".bin", made->source.weights_bytes);
    export_print_ram(made);
}

static void print_text(const char *path, const qat_deploy_result *r, const export_made *made)
{
    const qat_compare *c = &r->compare;
    tool_ptq_print();
    print_certificate(r);
    printf("verified on %s: %lld samples, %lld tensors\n", tool_shown(r->verified_on),
           (long long)r->samples, (long long)c->tensors);
    printf("engine against exact evaluation: %lld bytes compared, %lld differing\n",
           (long long)c->bytes, (long long)c->differing);
    printf("float32 simulation against engine: %lld of %lld bytes differ (%.3f %%), by at most %d "
           "%s",
           (long long)c->simulated_differing, (long long)c->simulated_bytes,
           percent(c->simulated_differing, c->simulated_bytes), c->simulated_max_quanta,
           c->simulated_max_quanta == 1 ? "quantum" : "quanta");
    if (c->simulated_far)
        printf(" (%.3f %% of them by more than one)",
               percent(c->simulated_far, c->simulated_differing));
    printf("; of the outputs' bytes %.3f %%\n",
           percent(c->output_simulated_differing, c->output_bytes));
    if (c->trained_bytes)
        printf("training on integers against engine: %lld bytes compared, %lld differing\n",
               (long long)c->trained_bytes, (long long)c->trained_differing);
    printf(
        "float32 layer by layer against exact evaluation: %lld layers, at most %.3f quanta apart "
        "(%s); %lld of %lld codes differ (%.4f %%), %lld by more than one\n",
        (long long)c->layers, c->layers_max_quanta, tool_shown(c->layers_furthest),
        (long long)c->layers_differing, (long long)c->layers_values,
        percent(c->layers_differing, c->layers_values), (long long)c->layers_far);
    if (r->streamed.steps)
        printf("frame by frame against whole sequences of %d steps: %lld samples, %lld bytes "
               "compared, %lld differing\n",
               r->streamed.steps, (long long)r->streamed.samples, (long long)r->streamed.bytes,
               (long long)r->streamed.differing);
    printf("%s: %lld bytes; float parameters %lld bytes; ratio %.3f; device arena %lld bytes\n",
           is_verified_file(made) ? tool_shown(path) : "as a .qm", (long long)r->qm_bytes,
           (long long)r->float_bytes,
           r->float_bytes ? (double)r->qm_bytes / (double)r->float_bytes : 0,
           (long long)r->arena_bytes);
    if (!is_verified_file(made))
        print_file(path, made);
}

/** JSON has no NaN. */
static void print_decibels(double x)
{
    if (isnan(x))
        printf("null");
    else
        printf("%.3f", x);
}

static void print_json_file(const char *path, const export_made *made)
{
    printf("{\"path\": ");
    tool_json_string(path);
    printf(", \"format\": \"%s\"", made->format->name);
    if (!is_verified_file(made))
        printf(", \"bytes_written\": %lld", (long long)made->bytes);
    if (made->form.unpacked)
        printf(", \"packed\": false");
    if (made->form.fixed)
        printf(", \"compact\": false");
    if (made->form.without) {
        char parts[96];
        export_parts(&made->form, parts);
        printf(", \"without\": \"%s\"", parts);
    }
    export_json_ram(made);
}

/** s: what --summary found. */
static void print_json(const char *path, const qat_deploy_result *r, const export_made *made,
                       const summary_result *s)
{
    const qat_compare *c = &r->compare;
    print_json_file(path, made);
    printf(", \"verified_on\": ");
    tool_json_string(r->verified_on);
    printf(", \"samples\": %lld, \"tensors\": %lld, \"bytes\": %lld, \"differing\": %lld",
           (long long)r->samples, (long long)c->tensors, (long long)c->bytes,
           (long long)c->differing);
    printf(", \"simulated_bytes\": %lld, \"simulated_differing\": %lld, "
           "\"simulated_far\": %lld, \"simulated_max_quanta\": %d, \"output_bytes\": %lld, "
           "\"output_simulated_differing\": %lld",
           (long long)c->simulated_bytes, (long long)c->simulated_differing,
           (long long)c->simulated_far, c->simulated_max_quanta, (long long)c->output_bytes,
           (long long)c->output_simulated_differing);
    printf(", \"layers\": %lld, \"layers_max_quanta\": %.4f, \"layers_furthest\": ",
           (long long)c->layers, c->layers_max_quanta);
    tool_json_string(c->layers_furthest);
    if (c->trained_bytes)
        printf(", \"trained_bytes\": %lld, \"trained_differing\": %lld",
               (long long)c->trained_bytes, (long long)c->trained_differing);
    printf(", \"layers_values\": %lld, \"layers_differing\": %lld, \"layers_far\": %lld",
           (long long)c->layers_values, (long long)c->layers_differing, (long long)c->layers_far);
    const qat_certificate *k = &r->certificate;
    printf(", \"certified_against\": ");
    tool_json_string(r->certified_against);
    printf(", \"certified_layers\": %lld, \"certified_weights\": %lld, \"certified_biases\": %lld, "
           "\"certified_multipliers\": %lld, \"certified_tables\": %lld, "
           "\"certified_scales\": %lld, \"certified_input_codes\": %lld, "
           "\"engine_snr\": ",
           (long long)k->layers, (long long)k->weights, (long long)k->biases,
           (long long)k->multipliers, (long long)k->tables, (long long)k->scales,
           (long long)r->input_codes);
    print_decibels(k->engine_snr);
    printf(", \"simulation_snr\": ");
    print_decibels(k->simulation_snr);
    printf(", \"uncertified\": ");
    tool_json_string(k->uncertified);
    if (r->streamed.steps)
        printf(", \"steps\": %d, \"streamed_bytes\": %lld, \"streamed_differing\": %lld",
               r->streamed.steps, (long long)r->streamed.bytes, (long long)r->streamed.differing);
    printf(", \"float_bytes\": %lld, \"qm_bytes\": %lld, \"arena_bytes\": %lld",
           (long long)r->float_bytes, (long long)r->qm_bytes, (long long)r->arena_bytes);
    tool_json_figures("float_", &s->in_float);
    tool_json_figures("", &s->on_integers);
    printf("}\n");
}

/* ------------------------------------------------------------------ summary */

/** Evaluate the written file on the engine. */
static qat_status evaluate_file(const qat_restored *r, const char *path, const qat_dataset *d,
                                qat_accuracy *a, qat_error *err)
{
    char label[] = "engine";
    qi_host *host = NULL;
    qi_host_options const with = {.custom = qat_plugins_kernels(qat_restored_plugins(r)),
                                  .limits = QI_NO_LIMITS};
    qat_status st = qi_host_open(&host, path, &with, err);
    if (!st)
        st = qat_evaluate_model(host, qat_checkpoint_input(qat_restored_checkpoint(r)), d, samples,
                                tool_tick, label, a, err);
    qi_host_close(host);
    return st;
}

static void print_summary(const char *path, const qat_deploy_result *r, const export_made *made,
                          const summary_result *s)
{
    const qat_accuracy *f = &s->in_float;
    int const figure = f->task->main;
    int64_t const bytes = is_verified_file(made) ? r->qm_bytes : (int64_t)made->bytes;
    char in_float[TOOL_FIGURE_MAX], on_integers[TOOL_FIGURE_MAX];
    printf("\n%-30s %12s %12s\n", "", "float", "integer");
    printf("%-30s %12s %12s\n", f->task->figures[figure].name, tool_figure(in_float, f, figure),
           tool_figure(on_integers, &s->on_integers, figure));
    printf("%-30s %12lld %12lld\n", "bytes (parameters, .qm)", (long long)r->float_bytes,
           (long long)bytes);
    printf("%-30s %25.3f\n", "ratio", r->float_bytes ? (double)bytes / (double)r->float_bytes : 0);
    printf("%-30s %25lld\n", "bytes compared", (long long)r->compare.bytes);
    printf("%-30s %25lld\n", "mismatching bytes", (long long)r->compare.differing);
    printf("%s\n", tool_shown(path));
}

static qat_status summarise(const qat_restored *restored, const char *path, summary_result *s,
                            qat_error *err)
{
    qat_dataset *d = NULL;
    qat_status st =
        qat_recipe_open_data(&d, qat_restored_recipe(restored), data, QAT_SPLIT_TEST, err);
    if (!st)
        st = tool_evaluate_float(restored, qat_checkpoint_input(qat_restored_checkpoint(restored)),
                                 d, samples, &s->in_float, err);
    if (!st)
        st = evaluate_file(restored, path, d, &s->on_integers, err);
    tool_bar_clear();
    qat_dataset_close(d);
    return st;
}

/** What --profile says; else the profile of which the format's file has equal bytes. */
static void set_profile(qat_deploy_options *o, const export_made *made)
{
    static const char *const names[] = {"paper", "tflite", "onnx"};
    bool const is_onnx = made->format->rounds_as_onnx && made->how.form != QAT_ONNX_INTEGER;
    o->has_profile = profile || made->format->rounds_as_tflite || is_onnx;
    o->profile = is_onnx ? QAT_PROFILE_ONNX : QAT_PROFILE_TFLITE;
    for (int i = 0; profile && i < 3; i++)
        if (!strcmp(profile, names[i])) {
            o->profile = (qat_profile)i;
            return;
        }
    if (profile)
        tool_usage(&me, "--profile %s: expected paper, tflite or onnx", profile);
}

/** Does a --set name the profile? */
static bool profile_is_set(const tool_list *sets)
{
    static char const key[] = "quant.profile=";
    for (int i = 0; i < sets->count; i++)
        if (!strncmp(sets->items[i], key, sizeof key - 1))
            return true;
    return false;
}

/**
 * A format's own profile, which nobody asked for, gives way to one that --set names; and profile
 * onnx to what was trained, and that is said.
 */
static void keep_trained_profile(qat_deploy_options *o, const qat_restored *restored)
{
    if (profile || !o->has_profile)
        return;
    o->has_profile = !profile_is_set(&tool_ptq_given.sets);
    if (!o->has_profile || o->profile != QAT_PROFILE_ONNX)
        return;
    o->profile = qat_restored_prefer_profile(restored, QAT_PROFILE_ONNX);
    bool const is_wide =
        qat_checkpoint_quant(qat_restored_checkpoint(restored))->activation_bits > 8;
    if (o->profile != QAT_PROFILE_ONNX && !is_wide && o->log)
        o->log->line(o->log->context,
                     "sums keep the fractional bits and the profile of the training; with "
                     "--profile onnx ONNX Runtime gives equal bytes, but sums have no fraction");
}

/** --set. Without --ptq it is an error: the run observed its ranges for its own quantization. */
static qat_status set_quant(qat_restored *restored, qat_error *err)
{
    const tool_list *sets = &tool_ptq_given.sets;
    if (sets->count && !tool_ptq_given.data)
        tool_usage(&me, "--set needs --ptq");
    return qat_restored_set_quant(restored, sets->items, sets->count, err);
}

/** Report a failure. If a check refused the model, also say whose mistake that is. */
static int failed(const qat_error *err, bool refused)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s", tool_shown(err->message),
             refused ? "\nqat-export: your recipe and your data are not the reason. This is a "
                       "mistake in qat, or in a plugin of the network: please report it, with this "
                       "message and the checkpoint"
                     : "");
    if (ranks)
        ranks_fail(ranks, me.name, text, tool_status(err));
    fprintf(stderr, "%s: %s\n", me.name, text);
    return tool_status(err);
}

/** What was written without a check of what is in it. */
static void print_written(const char *to, const export_made *made)
{
    if (json) {
        print_json_file(to, made);
        printf("}\n");
    } else {
        print_file(to, made);
    }
}

/** A .qm as a file of another format. */
static int export_qm(const char *from, const char *to, export_made *made)
{
    qat_error err;
    tool_model m;
    if (as_float)
        tool_usage(&me, "%s is a .qm: it has integers only, and no float network",
                   tool_shown(from));
    if (made->format->is_qm && !made->again && !pack && !compact)
        tool_usage(
            &me,
            "%s is a .qm already; name another format, or give --pack, --compact, --strip or --ram",
            tool_shown(from));
    if (data || samples || profile || reestimate_bn || raw_params || summary || threads ||
        tool_ptq_given.data || tool_ptq_given.sets.count)
        tool_usage(&me,
                   "%s is a .qm: it has its integers, and takes --format, options of the format, "
                   "--plugin, --json and limits only",
                   tool_shown(from));
    qat_status st = tool_model_open(&m, from, &(tool_run){.plugins = &plugins}, &err);
    if (!st && export_write(made, m.host, to, &err))
        st = tool_name_file(from, &err);
    if (!st)
        print_written(to, made);
    tool_model_close(&m);
    return st ? tool_failed(&me, &err) : 0;
}

/** Restore a checkpoint. Of another file the message names both kinds that can be exported. */
static qat_status restore(qat_restored **restored, const char *path, qat_error *err)
{
    tool_file kind = TOOL_FILE_CHECKPOINT;
    if (tool_file_kind(path, &kind, NULL) || kind == TOOL_FILE_CHECKPOINT)
        return tool_restore(restored, path, &plugins, err);
    qat_fail(err, QAT_ERR_FORMAT, "%.400s: neither a checkpoint nor a .qm", path);
    return tool_not_opened(path, err);
}

/** The float network of a checkpoint. */
static int export_float(const char *from, const char *to, export_made *made)
{
    qat_error err;
    qat_restored *restored = NULL;
    qat_graph *graph = NULL;
    uint8_t *bytes = NULL;
    if (!made->format->write_float)
        tool_usage(&me, "--float writes the formats onnx, tflite and npz");
    if (data || samples || profile || reestimate_bn || summary || threads || tool_ptq_given.data ||
        tool_ptq_given.sets.count)
        tool_usage(&me, "--float writes the float network, which has no integers to calibrate, "
                        "verify or run: it takes --raw-params, --format, options of the format, "
                        "--plugin, --json and limits only");
    qat_status st = restore(&restored, from, &err);
    if (!st && raw_params)
        st = tool_use_raw_params(restored, from, &err);
    if (!st)
        st = qat_restored_read_step(restored, &graph, &err);
    if (!st)
        st = made->format->write_float(graph, &made->how, &bytes, &made->bytes, &err);
    if (!st)
        st = export_put(made, to, bytes, &err);
    if (!st)
        print_written(to, made);
    free(bytes);
    qat_graph_free(graph);
    qat_restored_free(restored);
    return st ? tool_failed(&me, &err) : 0;
}

/** Of --form. */
static qat_onnx_form form_named(const char *name)
{
    static const char *const names[] = {"qdq", "qoperator", "integer"};
    for (int i = 0; i < 3; i++)
        if (!name || !strcmp(name, names[i]))
            return (qat_onnx_form)i;
    tool_usage(&me, "--form %s: only qdq, qoperator and integer can be written", name);
}

int main(int argc, char **argv)
{
    tool_list args;
    qat_error err;
    qat_restored *restored = NULL;
    qat_deploy_result result = {0};
    summary_result summed = {0};
    tool_file kind = TOOL_FILE_OTHER;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    export_made made = {
        .format = export_format_of(&me, format, args.items[1]),
        .how = {.float_io = float_io, .opset = (int)opset, .form = form_named(form)}};
    export_set_form(&me, pack, compact, strip, &made);
    export_set_ram(&me, ram, &made);
    export_set_source(&me,
                      &(export_source){.how = {.name = prefix,
                                               .section = section,
                                               .no_self_test = no_self_test,
                                               .no_preprocessing = no_preprocessing,
                                               .caller_arena = caller_arena,
                                               .separate_weights = separate_weights,
                                               .strict = strict},
                                       .is_asked = prefix || section || no_self_test ||
                                                   no_preprocessing || caller_arena ||
                                                   separate_weights || strict},
                      &made);
    if ((opset || form) && strcmp(made.format->name, "onnx"))
        tool_usage(&me, "--opset and --form are of the format onnx");
    if (float_io && !made.format->write)
        tool_usage(&me, "--float-io is of the formats onnx and tflite");
    if (made.format->write_float && !made.format->write && !as_float)
        tool_usage(&me, "the format %s holds parameters of a float network: it needs --float",
                   made.format->name);
    if (float_io && as_float)
        tool_usage(&me, "--float-io is of integers: a float network takes real numbers anyway");
    if (form && as_float)
        tool_usage(&me, "--form is of integers: a float network has one form alone");
    bool const is_qm = !tool_file_kind(args.items[0], &kind, NULL) && kind == TOOL_FILE_QM;
    if (ranks_are_many() && (is_qm || as_float))
        tool_usage(&me, "several processes share the verification of a checkpoint's integers, and "
                        "nothing else: start one");
    if (is_qm)
        return export_qm(args.items[0], args.items[1], &made);
    if (as_float)
        return export_float(args.items[0], args.items[1], &made);
    char label[] = "verify";
    qat_deploy_options o = {.struct_size = sizeof o,
                            .bn_reestimate = reestimate_bn,
                            .data = data,
                            .samples = samples,
                            .log = &tool_log,
                            .tick = tool_tick,
                            .context = label,
                            .write = is_verified_file(&made) ? NULL : export_write,
                            .write_context = &made};
    if (summary && !made.format->is_qm)
        tool_usage(&me, "--summary runs the written model: it needs a .qm");
    set_profile(&o, &made);
    if (reestimate_bn && tool_ptq_given.data)
        tool_usage(
            &me,
            "--reestimate-bn cannot be combined with --ptq, which folds batch norm beforehand");
    tool_check_data(&me, "--data", data, NULL);
    tool_ptq_apply(&me, &o);
    if (ranks_are_many())
        ranks = ranks_open(me.name, (int)rank_timeout);
    bool const tells = !ranks || !ranks->rank;
    o.ranks = ranks;
    o.log = tells ? o.log : NULL;
    o.tick = tells ? o.tick : NULL;
    tool_threads(!threads && ranks ? ranks_threads() : threads);
    qat_status st = restore(&restored, args.items[0], &err);
    if (!st && raw_params)
        st = tool_use_raw_params(restored, args.items[0], &err);
    if (!st)
        st = set_quant(restored, &err);
    if (!st)
        keep_trained_profile(&o, restored);
    if (!st)
        st = qat_deploy(restored, args.items[1], &o, &result, &err);
    bool const refused = st == QAT_ERR_MISMATCH;
    tool_bar_clear();
    if (!st && tells && !json)
        print_text(args.items[1], &result, &made);
    if (!st && tells && summary)
        st = summarise(restored, args.items[1], &summed, &err);
    if (!st && tells && json)
        print_json(args.items[1], &result, &made, &summed);
    else if (!st && tells && summary)
        print_summary(args.items[1], &result, &made, &summed);
    qat_restored_free(restored);
    if (st)
        return failed(&err, refused);
    ranks_close(ranks);
    return 0;
}
