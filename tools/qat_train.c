/** qat-train: trains as a recipe says. */
#include "qat/train.h"
#include "tools/budget/budget_tool.h"
#include "tools/common/limits.h"
#include "tools/common/model.h"
#include "tools/common/plugins.h"
#include "tools/live/view.h"
#include "tools/ranks/ranks.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static tool_list sets, plugins;
static const char *out_dir, *init, *progress;
static int64_t threads, rank_timeout = RANKS_TIMEOUT;
static const qat_ranks *ranks; /* NULL: this process is alone */
static bool resume, overwrite, with_budget, dry_run, print_keys, print_ops;

static const tool_option options[] = {
    {"--set", TOOL_LIST, &sets, "SECTION.KEY=VALUE", "override a key of the recipe (repeatable)", 0,
     0},
    {"--out", TOOL_TEXT, &out_dir, "DIR", "write to this folder instead of the recipe's output.dir",
     0, 0},
    {"--init", TOOL_TEXT, &init, "CKPT|FILE.npz",
     "fine-tune: start with these weights, instead of the recipe's train.init", 0, 0},
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load custom layers and tasks from this file, instead of the recipe's plugin.path\n"
     "(repeatable)",
     0, 0},
    {"--threads", TOOL_INT, &threads, "N", "compute threads, instead of the recipe's train.threads",
     1, TOOL_THREADS_MAX},
    {"--resume", TOOL_FLAG, &resume, NULL, "continue from DIR/last.ckpt", 0, 0},
    {"--overwrite", TOOL_FLAG, &overwrite, NULL, "start again in a folder that has a checkpoint", 0,
     0},
    {"--budget", TOOL_FLAG, &with_budget, NULL,
     "choose the bits of each layer within the recipe's [budget], write them to\n"
     "DIR/budget.ini, and train with them; with --dry-run, choose only",
     0, 0},
    RANKS_TIMEOUT_OPTION(&rank_timeout),
    {"--progress", TOOL_TEXT, &progress, "none|plain|bar|full",
     "what is shown of the run. plain: a line for each row of log.csv; bar (default): also a\n"
     "progress bar on a terminal; full: instead of it curves, the slowest layers, memory",
     0, 0},
    {"--dry-run", TOOL_FLAG, &dry_run, NULL,
     "print parameters, multiply-adds, flash and RAM of each layer, and stop", 0, 0},
    TOOL_MEMORY_OPTION("the most memory that one network may take, in MiB (default: what this\n"
                       "machine has). data.memory limits the data"),
    {"--keys", TOOL_FLAG, &print_keys, NULL,
     "print every key of a recipe with its range, default and meaning", 0, 0},
    {"--ops", TOOL_FLAG, &print_ops, NULL,
     "print every op for [layer.NAME] sections, with its attributes and those of\n"
     "--plugin",
     0, 0},
    {0}};

static const tool me = {
    "qat-train",
    "RECIPE.ini [--set SECTION.KEY=VALUE]... [--out DIR] [--threads N]\n                 "
    "[--init CKPT|FILE.npz] [--plugin FILE.so]... [--resume|--overwrite] [--budget] [--dry-run]\n"
    "                 [--max-memory MIB] [--rank-timeout S]\n"
    "                 [--progress none|plain|bar|full]\n"
    "       qat-train --keys\n"
    "       qat-train [RECIPE.ini] [--plugin FILE.so]... --ops",
    "Trains the network of a recipe and writes DIR/last.ckpt and DIR/log.csv. After Ctrl-C it\n"
    "writes a checkpoint and ends; --resume then continues as if nothing had happened. If DIR\n"
    "already has a checkpoint, give --resume or --overwrite.\n"
    "Loss and training accuracy are those of the training steps. On the test data the float\n"
    "network is evaluated and, once the run quantizes, the integer network: its accuracy is "
    "exactly\n"
    "that of a .qm exported at this step.",
    options,
    0,
    1};

/* ------------------------------------------------------------------ stopping */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (ranks) /* mpirun passes it on; it ends its processes at once when it gets one of the others
                */
        sigaction(SIGUSR1, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &action,
              NULL); /* so that writing beyond a file size limit is an error of write */
}

static bool asked_to_stop(void *context)
{
    (void)context;
    return interrupted != 0;
}

/* ------------------------------------------------------------------ progress */

enum { FIGURES_MAX = 160 };

/** The networks of an evaluation. */
typedef struct figures {
    qat_accuracy in_float, integer, simulated;
} figures;

static const char *judged = "test"; /* the split that evaluations are on */

/** How --progress shows a run. Where there is no terminal for more, it is plain. */
static enum { SHOW_NONE, SHOW_PLAIN, SHOW_BAR, SHOW_FULL } shown = SHOW_BAR;
static live_view *view; /* SHOW_FULL; NULL: not open */

static void read_progress(void)
{
    static const char *const names[] = {"none", "plain", "bar", "full"};
    for (int i = 0; progress && i <= SHOW_FULL; i++)
        if (!strcmp(progress, names[i])) {
            shown = i;
            return;
        }
    if (progress)
        tool_usage(&me, "--progress %s: expected none, plain, bar or full", tool_shown(progress));
}

/** Make room for a line. */
static void clear_progress(void)
{
    tool_bar_clear();
    live_view_clear(view);
}

static void show_bar(const char *label, double fraction, const char *text)
{
    if (shown == SHOW_BAR)
        tool_bar(label, fraction, text);
}

/** One figure of each, such as "float 98.10 %, on integers 97.95 %"; "" if none is known. */
static const char *figures_text(const figures *f, int figure, char text[FIGURES_MAX])
{
    struct {
        const char *how;
        const qat_accuracy *accuracy;
    } const of[] = {
        {"float", &f->in_float}, {"on integers", &f->integer}, {"simulated", &f->simulated}};
    size_t n = 0;
    *text = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char one[TOOL_FIGURE_MAX];
        if (isnan(qat_figure_of(of[i].accuracy, figure)))
            continue;
        n += (size_t)snprintf(text + n, FIGURES_MAX - n, "%s%s %s", n ? ", " : "", of[i].how,
                              tool_figure(one, of[i].accuracy, figure));
    }
    return text;
}

/** last: the figures of the last evaluation, shown until the next one. */
static void show_step(const figures *last, const qat_train_progress *p)
{
    char text[320], tests[FIGURES_MAX], training[32] = "";
    int const eta = (int)(p->eta < 1e6 ? p->eta + 0.5 : 1e6);
    *tests = 0;
    if (last->in_float.n)
        figures_text(last, last->in_float.task->main, tests);
    if (!isnan(p->accuracy))
        snprintf(training, sizeof training, "  acc %.2f %%", p->accuracy);
    snprintf(text, sizeof text, "epoch %.2f  loss %.4f%s%s%s%s%s  %.0f images/s  ETA %d:%02d",
             p->epoch, p->loss, training, *tests ? "  " : "", *tests ? judged : "",
             *tests ? " " : "", tests, p->samples_per_second, eta / 60, eta % 60);
    show_bar("train", (double)p->step / (double)p->steps, text);
}

static void print_row(figures *last, const qat_train_progress *p)
{
    char text[FIGURES_MAX];
    const qat_task *task = p->evaluated ? p->in_float.task : NULL;
    clear_progress();
    printf("step %lld/%lld  epoch %.2f", (long long)p->step, (long long)p->steps, p->epoch);
    if (!isnan(p->loss))
        printf("  lr %.5g  loss %.4f", p->lr, p->loss);
    if (!isnan(p->accuracy))
        printf("  train %.2f %%", p->accuracy);
    if (task) {
        *last = (figures){p->in_float, p->integer, p->simulated};
        printf("  %s, %s: %s", judged, task->figures[task->main].name,
               figures_text(last, task->main, text));
    }
    if (task && task->logs_both && *figures_text(last, task->also, text))
        printf("  %s: %s", task->figures[task->also].name, text);
    if (p->step > 0)
        printf("  %.0f images/s", p->samples_per_second);
    printf("  %.0f s\n", p->seconds);
    fflush(stdout);
}

static void on_progress(void *context, const qat_train_progress *p)
{
    char text[64];
    switch (p->event) {
    case QAT_EVENT_STEP:
        show_step(context, p);
        break;
    case QAT_EVENT_EVAL:
        snprintf(text, sizeof text, "%lld/%lld", (long long)p->done, (long long)p->total);
        show_bar("test ", (double)p->done / (double)p->total, text);
        break;
    case QAT_EVENT_DATA:
        snprintf(text, sizeof text, "%lld/%lld pictures", (long long)p->done, (long long)p->total);
        show_bar("check", (double)p->done / (double)p->total, text);
        break;
    case QAT_EVENT_ROW:
        if (shown != SHOW_NONE)
            print_row(context, p);
        break;
    case QAT_EVENT_CHECKPOINT:
    case QAT_EVENT_BEGIN:
        break;
    case QAT_EVENT_WARNING:
        clear_progress();
        fprintf(stderr, "%s: warning: %s\n", me.name, tool_shown(p->message));
        break;
    }
    if (view)
        live_view_see(view, p);
}

static void print_note(void *context, const char *text)
{
    (void)context;
    clear_progress();
    printf("%s\n", tool_shown(text));
}

static const qat_log notes = {print_note, NULL};

/* ------------------------------------------------------------------ what it can do */

static int show_keys(void)
{
    char *text;
    qat_error err;
    if (qat_recipe_keys_text(&text, &err))
        return tool_failed(&me, &err);
    fputs(text, stdout);
    free(text);
    return 0;
}

static void print_attribute(const qat_attr_def *a)
{
    if (a->type == QAT_ATTR_CHOICE)
        printf("    %s = (%s)", tool_shown(a->name), tool_shown(a->choices));
    else if (a->type == QAT_ATTR_PADDING)
        printf("    %s = %s  (same|valid|pixels)", tool_shown(a->name),
               a->initial > 0 ? "valid" : "same");
    else if (a->initial >= a->min && a->initial <= a->max)
        printf("    %s = %g  (%g..%g)", tool_shown(a->name), a->initial, a->min, a->max);
    else
        printf("    %s, must be given  (%g..%g)", tool_shown(a->name), a->min, a->max);
    printf("  %s\n", a->meaning ? tool_shown(a->meaning) : "");
}

static int show_ops(const qat_recipe *recipe)
{
    qat_registry *registry;
    qat_plugins *opened;
    qat_error err;
    if (tool_open_registry(&registry, &opened, recipe, &plugins, &err))
        return tool_failed(&me, &err);
    for (int i = 0; i < qat_registry_count(registry); i++) {
        const qat_op *op = qat_registry_at(registry, i);
        printf("%s: %s\n", tool_shown(op->name), tool_shown(op->meaning ? op->meaning : ""));
        for (const qat_attr_def *a = op->attrs; a && a->name; a++)
            print_attribute(a);
    }
    qat_registry_free(registry);
    qat_plugins_free(opened);
    return 0;
}

/* ------------------------------------------------------------------ dry run */

/** Of the column of names: room for the longest. */
static int name_width(const qat_layer_cost *costs, int count)
{
    int width = 28;
    for (int i = 0; i < count; i++) {
        int const n = (int)strlen(tool_shown(costs[i].name));
        width = n > width ? n : width;
    }
    return width;
}

static void print_costs(const qat_layer_cost *costs, int count, const qat_network_size *size)
{
    char shape[64];
    int const width = name_width(costs, count);
    printf("%-*s %-30s %-18s %10s %12s %10s %10s\n", width, "layer", "op", "output", "parameters",
           "multiply-adds", "flash [B]", "RAM [B]");
    for (int i = 0; i < count; i++) {
        const qat_layer_cost *c = &costs[i];
        bool const total = i + 1 == count;
        printf("%-*s %-30s %-18s %10lld %13lld %10lld %10lld\n", width, tool_shown(c->name),
               tool_shown(c->op), total ? "" : qat_shape_text(&c->shape, shape),
               (long long)c->parameters, (long long)c->macs, (long long)c->flash,
               (long long)c->ram);
    }
    if (size->training_parameters > size->parameters)
        printf("%lld parameters with those that only training uses\n",
               (long long)size->training_parameters);
    printf("the columns are for 8 bits, whatever bits the recipe has. flash: 8-bit weights, 32-bit "
           "bias, "
           "multipliers, without the .qm's headers, names and tables.\n"
           "RAM: 8-bit activations alive at once, without alignment and the kernels' scratch\n");
}

/** Print why a size is not known; `said`: what was printed last, or "". */
static void print_unknown(const char *size, const qat_error *why, qat_error *said)
{
    if (strcmp(why->message, said->message) == 0)
        printf("%s: not known either\n", size);
    else
        printf("%s: not known: %s\n", size, tool_shown(why->message));
    *said = *why;
}

/**
 * Print what a device needs in all, and the size of the .qm, or why they are not known. Fails if
 * training would fail, too.
 */
static qat_status print_needs(const qat_recipe *recipe, const qat_plugins *opened,
                              const qat_graph *graph, const qat_input_info *input, qat_error *err)
{
    qat_device_needs needs;
    qat_c_sizes sizes;
    int64_t bytes;
    qat_error said = {0};
    qat_c_preprocessing const preprocessing = qat_device_preprocessing_of(input);
    qat_status st = qat_device_c_sizes_of(&sizes, recipe, opened, graph, input, err);
    if (st == QAT_ERR_ARGUMENT)
        return st;
    if (st)
        print_unknown("as C source", err, &said);
    else
        tool_print_c_sizes(&sizes, &preprocessing);
    st = qat_device_qm_bytes_of(&bytes, recipe, opened, graph, input, err);
    if (st == QAT_ERR_ARGUMENT)
        return st;
    if (st)
        print_unknown("as a .qm", err, &said);
    else
        printf("as a .qm with the recipe's bits: %lld bytes, and a description, labels and a known "
               "answer, which qat-export --strip leaves out\n",
               (long long)bytes);
    st = qat_device_needs_of(&needs, recipe, opened, graph, input, err);
    if (st == QAT_ERR_ARGUMENT)
        return st;
    if (st)
        print_unknown("RAM on a device", err, &said);
    else
        printf("RAM on a device: %lld bytes: device arena %lld bytes, model memory %lld bytes\n",
               (long long)(needs.arena_bytes + needs.model_bytes), (long long)needs.arena_bytes,
               (long long)needs.model_bytes);
    return QAT_OK;
}

/** How many items between commas are not blank: a table takes no others as attributes. */
static int count_items(const char *list)
{
    int n = 0;
    for (list += strspn(list, " ,"); *list; list += strspn(list, " ,")) {
        list += strcspn(list, ",");
        n++;
    }
    return n;
}

static int number(const qat_recipe *r, const char *key)
{
    return (int)qat_recipe_number(r, key);
}

static int expected_classes(const qat_recipe *r, bool targets)
{
    char attributes[QAT_RECIPE_VALUE_MAX];
    if (targets)
        return count_items(qat_recipe_get(r, "data.attributes", attributes));
    return number(r, "data.one_class") ? 1 : number(r, "data.classes");
}

/** Describe data that are missing, as far as the recipe does. Returns false if it does not. */
static bool expect_data(const qat_recipe *r, qat_dataset_info *info)
{
    char value[QAT_RECIPE_VALUE_MAX];
    int const height = number(r, "data.height"), width = number(r, "data.width"),
              channels = number(r, "data.channels"), kind = number(r, "data.kind");
    bool const targets = qat_dataset_kind_has_targets(kind);
    bool const masks = !strcmp(qat_dataset_kind_name(kind), "masks");
    *info = (qat_dataset_info){.count = INT32_MAX,
                               .height = height,
                               .width = width ? width : height,
                               .channels = channels ? channels : 3,
                               .type = QAT_SAMPLE_U8,
                               .classes = expected_classes(r, targets),
                               .max = 255,
                               .has_objects = qat_dataset_kind_has_objects(kind),
                               .has_targets = targets,
                               .targets = masks ? QAT_TARGETS_PIXELS : QAT_TARGETS_NONE,
                               .has_value = targets && *qat_recipe_get(r, "data.value", value),
                               .name = "data"};
    return height > 0 && (info->classes > 0 || info->has_value);
}

/** Without the data, use what the recipe says about them, and report it. */
static qat_status input_by_recipe(const qat_registry *registry, const qat_recipe *recipe,
                                  qat_input_info *input, const qat_error *why, qat_error *err)
{
    qat_dataset_info info;
    if (!expect_data(recipe, &info)) {
        *err = *why;
        return QAT_ERR_IO;
    }
    const char *units = qat_task_for(registry, recipe, &info)->units;
    printf("the data are not here; these numbers are for %d x %d x %d pixels and %d %s, from the "
           "recipe\n"
           "(%s)\n",
           info.height, info.width, info.channels, info.classes, units ? units : "classes",
           tool_shown(why->message));
    return qat_input_info_of(input, registry, recipe, &info, err);
}

static void print_warning(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "%s: warning: %s\n", me.name, tool_shown(text));
}

/** What the data are; a test split that cannot be opened is a warning here. */
static qat_status show_data(const qat_recipe *recipe, const qat_dataset *train, qat_error *err)
{
    static const qat_log warnings = {print_warning, NULL};
    qat_error why = {0};
    qat_dataset *test = NULL;
    bool const validates = qat_recipe_number(recipe, "data.validation") > 0;
    if (qat_recipe_open_undrawn(&test, recipe, validates ? QAT_SPLIT_VALIDATION : QAT_SPLIT_TEST,
                                &why))
        print_warning(NULL, why.message);
    qat_status const st = qat_recipe_tell_data(recipe, train, test, &notes, &warnings, err);
    qat_dataset_close(test);
    return st;
}

static qat_status open_input(const qat_registry *registry, const qat_recipe *recipe,
                             qat_input_info *input, qat_error *err)
{
    qat_error why = {0};
    qat_dataset *data = NULL;
    qat_status st = qat_recipe_open_undrawn(&data, recipe, QAT_SPLIT_TRAIN, &why);
    if (st == QAT_ERR_IO)
        return input_by_recipe(registry, recipe, input, &why, err);
    if (st)
        *err = why;
    if (!st)
        st = show_data(recipe, data, err);
    if (!st)
        st = qat_input_info_of(input, registry, recipe, qat_dataset_info_of(data), err);
    if (!st)
        st = qat_recipe_check_batch(recipe, qat_dataset_info_of(data), err);
    qat_dataset_close(data);
    return st;
}

/** The most bytes of one network: --max-memory, or the memory of this machine. */
static uint64_t training_memory(void)
{
    long const pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t const given = tool_limits_of().memory;
    uint64_t const here = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return given ? given : here;
}

/** A dry run does not read the files that training begins with. But they must be there. */
static bool has_sources(const qat_recipe *recipe)
{
    static const char *const keys[] = {"train.init", "distill.teacher"};
    char value[QAT_RECIPE_VALUE_MAX], path[PATH_MAX];
    qat_error err;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *file = qat_recipe_get(recipe, keys[i], value);
        if (qat_expand_path(file, path, sizeof path, &err)) {
            tool_failed(&me, &err);
            return false;
        }
        if (*file && access(path, R_OK) != 0) {
            fprintf(stderr, "%s: %s = %s: %s\n", me.name, keys[i], tool_shown(file),
                    strerror(errno));
            return false;
        }
    }
    return true;
}

static int show_costs(const qat_recipe *recipe)
{
    qat_registry *registry = NULL;
    qat_plugins *opened = NULL;
    qat_graph *graph = NULL;
    qat_layer_cost *costs = NULL;
    char freeze[QAT_RECIPE_VALUE_MAX];
    int count = 0;
    qat_network_size size;
    qat_input_info input;
    qat_error err;
    if (!has_sources(recipe))
        return TOOL_FAILED;
    qat_status st = tool_open_registry(&registry, &opened, recipe, &plugins, &err);
    if (!st)
        st = open_input(registry, recipe, &input, &err);
    if (!st)
        qat_registry_set_memory(registry, training_memory());
    if (!st)
        st = qat_network_build(&graph, registry, recipe, &input, &err);
    if (!st)
        st = qat_training_fits(graph, training_memory(), &err);
    if (!st && number(recipe, "model.steps") > 0.0) { /* the device runs one step */
        qat_graph_free(graph);
        st = qat_network_build_step(&graph, registry, recipe, &input, &err);
    }
    if (!st)
        st = qat_network_costs(graph, (qat_layout)number(recipe, "quant.layout"), &costs, &count,
                               &err);
    if (!st)
        st = qat_network_size_of(graph, &size, &err);
    if (!st)
        print_costs(costs, count, &size);
    if (!st)
        st = print_needs(recipe, opened, graph, &input, &err);
    if (!st)
        st = qat_freeze_params(graph, qat_recipe_get(recipe, "train.freeze", freeze), &notes, &err);
    free(costs);
    qat_graph_free(graph);
    qat_registry_free(registry);
    qat_plugins_free(opened);
    return st ? tool_failed(&me, &err) : 0;
}

/* ------------------------------------------------------------------ training */

/** Print one figure of the last evaluation for each network. */
static void print_figures(const qat_train_result *r, int figure)
{
    char text[FIGURES_MAX];
    figures const all = {r->float_accuracy, r->integer_accuracy, r->simulated_accuracy};
    if (*figures_text(&all, figure, text))
        printf("; %s: %s", r->float_accuracy.task->figures[figure].name, text);
}

static void print_result(const qat_train_result *r)
{
    const qat_accuracy *a = &r->float_accuracy;
    printf("%s: %lld steps in %.1f s", tool_shown(r->checkpoint), (long long)r->steps, r->seconds);
    if (a->n) {
        printf("; %lld %s samples", (long long)a->n, judged);
        print_figures(r, a->task->main);
    }
    if (a->n && a->task->also >= 0 && r->classes > a->task->figures[a->task->also].above)
        print_figures(r, a->task->also);
    printf("\n");
}

/** The name of the model, or that of the recipe's file. */
static const char *title_of(const qat_recipe *recipe)
{
    static char name[QAT_RECIPE_VALUE_MAX];
    const char *source = qat_recipe_source(recipe), *slash = strrchr(source, '/');
    return *qat_recipe_get(recipe, "model.name", name) ? name : slash ? slash + 1 : source;
}

/** Of several ranks, one is enough to tell what all of them find. */
static bool tells(void)
{
    return !ranks || !ranks->rank;
}

/** Report a failure, of all ranks if there are several. */
static int fail_run(const qat_error *err)
{
    if (ranks)
        ranks_fail(ranks, me.name, tool_shown(err->message), tool_status(err));
    return tool_failed(&me, err);
}

/** Train in a folder (NULL: that of the recipe). */
static int train_in(const qat_recipe *recipe, const char *dir, bool continues)
{
    judged = qat_recipe_number(recipe, "data.validation") > 0 ? "validation" : "test";
    figures last = {0};
    qat_train_options const o = {.struct_size = sizeof o,
                                 .dir = dir,
                                 .resume = continues,
                                 .overwrite = overwrite,
                                 .progress = tells() ? on_progress : NULL,
                                 .stop = asked_to_stop,
                                 .context = &last,
                                 .log = tells() ? &notes : NULL,
                                 .plugins = plugins.items,
                                 .n_plugins = plugins.count,
                                 .memory = training_memory(),
                                 .ranks = ranks};
    qat_train_result result;
    qat_error err;
    int64_t const wanted = threads ? threads : number(recipe, "train.threads");
    tool_threads(!wanted && ranks ? ranks_threads() : wanted);
    catch_signals();
    if (shown == SHOW_FULL && tells())
        view = live_view_open(title_of(recipe), judged);
    qat_status const st = qat_train(recipe, &o, &result, &err);
    tool_bar_clear();
    live_view_close(view);
    view = NULL;
    if (st)
        return fail_run(&err);
    if (result.step < result.steps && !tells())
        return TOOL_FAILED;
    if (result.step < result.steps) {
        printf("stopped at step %lld of %lld; %s holds it, continue with --resume\n",
               (long long)result.step, (long long)result.steps, tool_shown(result.checkpoint));
        return TOOL_FAILED;
    }
    if (tells())
        print_result(&result);
    return 0;
}

static int train(const qat_recipe *recipe)
{
    return train_in(recipe, out_dir, resume);
}

/* ------------------------------------------------------------------ with a budget */

/** Without weights to begin with, train the float network first. */
static int train_float(qat_recipe *recipe, const budget_wanted *w)
{
    char dir[1024];
    qat_recipe *of_float;
    qat_error err;
    if (budget_float_recipe(&of_float, recipe, w, dir, &err))
        return tool_failed(&me, &err);
    if (!of_float)
        return 0;
    printf("no train.init: the float network is trained first, in %s\n", tool_shown(dir));
    int const failed = train_in(of_float, dir, budget_is_begun(dir) && !overwrite);
    qat_recipe_free(of_float);
    if (failed)
        return failed;
    return budget_use_float(recipe, dir, &err) ? tool_failed(&me, &err) : 0;
}

static int train_within_budget(qat_recipe *recipe)
{
    char dir[QAT_RECIPE_VALUE_MAX];
    qat_recipe *chosen = NULL;
    qat_error err;
    budget_wanted const w = {.dir = out_dir ? out_dir : qat_recipe_get(recipe, "output.dir", dir),
                             .resume = resume,
                             .overwrite = overwrite,
                             .plugins = &plugins,
                             .memory = training_memory(),
                             .log = &notes,
                             .stop = asked_to_stop};
    tool_threads(threads ? threads : number(recipe, "train.threads"));
    catch_signals();
    int status =
        budget_spare_run(&w, &err) || budget_check(recipe, &w, &err) ? tool_failed(&me, &err) : 0;
    if (!status && !dry_run)
        status = train_float(recipe, &w);
    if (!status && budget_search(&chosen, recipe, &w, &err))
        status = tool_failed(&me, &err);
    if (!status && !dry_run)
        status = train_in(chosen, w.dir, resume && budget_is_begun(w.dir));
    qat_recipe_free(chosen);
    return status;
}

/** A budget that nobody asks to keep has no effect. */
static void tell_of_budget(const qat_recipe *recipe)
{
    static const char *const keys[] = {"budget.flash", "budget.ram", "budget.macs_bits"};
    for (size_t i = 0; !with_budget && i < sizeof keys / sizeof *keys; i++)
        if (qat_recipe_number(recipe, keys[i]) > 0)
            fprintf(stderr, "%s: warning: %s: %s has no effect without --budget\n", me.name,
                    tool_shown(qat_recipe_source(recipe)), keys[i]);
}

/** --init replaces train.init, also if --set gives it. */
static void set_init(void)
{
    static char set[4096];
    if (!init)
        return;
    if (sets.count == TOOL_LIST_MAX || strlen(init) > sizeof set - 16)
        tool_usage(&me, "--init: the path is too long, or there are too many --set");
    snprintf(set, sizeof set, "train.init=%s", init);
    sets.items[sets.count++] = set;
}

int main(int argc, char **argv)
{
    tool_list args;
    qat_recipe *recipe = NULL;
    qat_error err;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    if (print_keys)
        return show_keys();
    if (resume && overwrite)
        tool_usage(&me, "give either --resume or --overwrite, not both");
    if (resume && init && !with_budget) /* a search begins with these weights again */
        tool_usage(&me, "give either --resume or --init, not both");
    read_progress();
    set_init();
    if (!args.count && !print_ops)
        tool_usage(&me, "give a recipe");
    if (args.count && qat_recipe_load(&recipe, args.items[0], sets.items, sets.count, &err))
        return tool_failed(&me, &err);
    if (ranks_are_many() && recipe && with_budget)
        tool_usage(&me, "--budget: a search runs in one process; mpirun can train with the bits "
                        "that it has chosen (DIR/budget.ini)");
    if (ranks_are_many() && recipe && !print_ops && !dry_run)
        ranks = ranks_open(me.name, (int)rank_timeout);
    bool const checks = recipe && !print_ops && tells();
    qat_status const st = checks ? qat_recipe_tell_idle(recipe, &tool_log, &err) : QAT_OK;
    if (checks)
        tell_of_budget(recipe);
    int const status = st            ? fail_run(&err)
                       : print_ops   ? show_ops(recipe)
                       : with_budget ? train_within_budget(recipe)
                       : dry_run     ? show_costs(recipe)
                                     : train(recipe);
    qat_recipe_free(recipe);
    ranks_close(ranks);
    return status;
}
