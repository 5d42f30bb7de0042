/** qat-inspect: shows what is in a .qm, a checkpoint or a recipe. */
#include "tools/common/limits.h"
#include "tools/inspect/inspect.h"

#include <string.h>

enum { VALUES_SHOWN = 64 };

static const char *graph_form, *stage, *tensor, *plot_dir;
static tool_list plugins;
static int64_t limit = -1;
static bool labels, json;

static const tool_option options[] = {
    {"--graph", TOOL_OPTIONAL, &graph_form, "dot",
     "print the graph as text or for Graphviz; nodes that quantization inserted\n"
     "are marked",
     0, 0},
    {"--stage", TOOL_TEXT, &stage, "S",
     "which graph of a checkpoint or recipe: float, training, eval, all\n"
     "(training and eval; default)",
     0, 0},
    {"--tensor", TOOL_TEXT, &tensor, "T",
     "print the values of tensor T, as codes and as real values; T is an index\n"
     "in the .qm (7), a number from the listing (t7), or a name; for a\n"
     "checkpoint also the name of a parameter",
     0, 0},
    {"--limit", TOOL_INT, &limit, "N", "how many values --tensor prints (default 64); 0: all", 0,
     INT64_C(1) << 40},
    {"--plot", TOOL_TEXT, &plot_dir, "DIR",
     "write a histogram of each tensor as DIR/t<number>.png and .svg; DIR and\n"
     "its parents are made",
     0, 0},
    {"--labels", TOOL_FLAG, &labels, NULL,
     "print all class names of a .qm, one per line, with numbers", 0, 0},
    {"--plugin", TOOL_LIST, &plugins, "FILE.so",
     "load custom layers and tasks from this file (repeatable)", 0, 0},
    TOOL_MEMORY_OPTION("the most memory that the model may take, and the values that are shown, "
                       "in\nMiB (default 4096)"),
    TOOL_MACS_OPTION,
    TOOL_PIXELS_OPTION,
    {"--json", TOOL_FLAG, &json, NULL, "print tensors and ops as one JSON object", 0, 0},
    {0}};

static const tool me = {
    "qat-inspect",
    "MODEL.qm|CKPT|RECIPE.ini [--graph[=dot]] [--stage S] [--tensor T [--limit N]]\n"
    "                   [--plot DIR] [--labels] [--plugin FILE.so]... [--max-memory MIB]\n"
    "                   [--max-macs N] [--max-pixels N] [--json]",
    "Shows what is in a model, a checkpoint or a recipe: layers, ranges, S, Z, M0, shift and "
    "sizes; graphs\n"
    "with the nodes that quantization inserted; values; histograms. For a recipe only --graph "
    "works.",
    options,
    1,
    1};

static void check_words(void)
{
    static const char *const stages[] = {"float", "training", "eval", "all"};
    bool known = !stage;
    for (int i = 0; i < 4; i++)
        known = known || !strcmp(stage, stages[i]);
    if (!known)
        tool_usage(&me, "--stage %s: expected float, training, eval or all", stage);
    if (graph_form && *graph_form && strcmp(graph_form, "dot") && strcmp(graph_form, "text"))
        tool_usage(&me, "--graph=%s: expected text or dot", graph_form);
}

/** Refuse options that would be ignored. */
static void check_combination(tool_file kind)
{
    if ((graph_form != NULL) + (tensor != NULL) + (plot_dir != NULL) + labels > 1)
        tool_usage(&me, "give only one of --graph, --tensor, --plot and --labels");
    if (labels && kind != TOOL_FILE_QM)
        tool_usage(&me, "--labels works with a .qm only");
    if (json && (graph_form || plot_dir || labels))
        tool_usage(&me, "--json can be combined with --tensor only");
    if (limit >= 0 && !tensor)
        tool_usage(&me, "--limit needs --tensor");
    if (stage && (!graph_form || kind == TOOL_FILE_QM))
        tool_usage(&me,
                   "--stage needs --graph and a checkpoint or recipe; a .qm has one graph only");
    if (kind == TOOL_FILE_RECIPE && !graph_form)
        tool_usage(&me, "for a recipe only --graph works: give --graph");
}

static qat_status show(inspected *x, qat_error *err)
{
    int64_t const shown = limit < 0 ? VALUES_SHOWN : limit;
    if (graph_form)
        inspect_print_integer_graph(x->graph, !strcmp(graph_form, "dot"));
    else if (tensor)
        return inspect_print_tensor(x, tensor, shown, json, err);
    else if (plot_dir)
        return inspect_plot(x, plot_dir, err);
    else if (labels)
        inspect_print_labels(x);
    else if (json)
        inspect_print_json(x);
    else
        inspect_print(x);
    return QAT_OK;
}

int main(int argc, char **argv)
{
    tool_list args;
    tool_file kind = TOOL_FILE_OTHER;
    inspected x = {0};
    qat_error err;
    tool_set_blas(argv);
    tool_parse(&me, argc, argv, &args);
    check_words();
    tool_threads(1);
    const char *path = args.items[0];
    qat_status st = tool_file_kind(path, &kind, &err);
    if (!st && kind == TOOL_FILE_TFLITE)
        st = tool_not_opened(path, &err);
    if (!st && kind == TOOL_FILE_OTHER)
        st = qat_fail(&err, QAT_ERR_FORMAT,
                      "%s: neither a .qm nor a checkpoint nor a recipe (.ini)", path);
    if (!st)
        check_combination(kind);
    if (!st && graph_form && kind != TOOL_FILE_QM) {
        st = inspect_graphs(path, kind, &plugins, stage ? stage : "all", !strcmp(graph_form, "dot"),
                            &err);
    } else if (!st) {
        st = inspect_open(&x, path, kind, &plugins, &err);
        if (!st)
            st = show(&x, &err);
        inspect_close(&x);
    }
    return st ? tool_failed(&me, &err) : 0;
}
