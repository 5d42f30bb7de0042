/**
 * Frozen layers. Their parameters are only marked as not trainable: the optimizer skips them, no
 * gradient is computed for them, and a batch norm whose gamma does not train uses its averages.
 */
#include "base/bytes.h"
#include "base/words.h"
#include "finetune/pattern.h"
#include "finetune/weights_file.h"
#include "qat/quantizer.h"
#include "qat/train.h"

static bool is_concerned(const qat_node *node, const char *pattern)
{
    bool const observed = qat_is_range(node->name) && !qat_is_learned_range(node->name);
    return node->is_param && !observed && qat_pattern_matches(pattern, node->name);
}

/** Mark the parameters that the pattern matches. Returns their number. */
static int freeze(qat_graph *graph, const char *pattern)
{
    int matched = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        qat_node *node = qat_graph_node(graph, i);
        if (!is_concerned(node, pattern))
            continue;
        node->trainable = false;
        matched++;
    }
    return matched;
}

static bool anything_trains(const qat_graph *graph)
{
    for (int i = 0; i < qat_graph_nodes(graph); i++)
        if (qat_graph_node(graph, i)->is_param && qat_graph_node(graph, i)->trainable)
            return true;
    return false;
}

/** "frozen: 3 parameters, 120 values: conv1/weights, ..." */
static void tell(const qat_graph *graph, const char *patterns, const qat_log *log)
{
    char pattern[QAT_PATTERN_MAX];
    qat_writer names = {0}, line = {0};
    int64_t count = 0, values = 0;
    for (int i = 0; i < qat_graph_nodes(graph); i++) {
        const qat_node *node = qat_graph_node(graph, i);
        const char *at = patterns;
        bool frozen = false;
        while (!node->trainable && qat_list_next(&at, pattern))
            frozen = frozen || is_concerned(node, pattern);
        if (!frozen)
            continue;
        qat_write_text(&names, "%s%s", count++ ? ", " : "", node->name);
        values += (int64_t)qat_shape_count(&node->shape);
    }
    qat_write_text(&line, "frozen (train.freeze): %lld parameter%s, %lld values: %.*s",
                   (long long)count, qat_plural(count), (long long)values, (int)names.count,
                   (const char *)names.bytes);
    qat_write_u8(&line, 0);
    if (count && !names.failed && !line.failed)
        log->line(log->context, (const char *)line.bytes);
    qat_writer_free(&names);
    qat_writer_free(&line);
}

qat_status qat_freeze_params(qat_graph *training, const char *patterns, const qat_log *log,
                             qat_error *err)
{
    char pattern[QAT_PATTERN_MAX];
    const char *at = patterns;
    while (qat_list_next(&at, pattern))
        if (!freeze(training, pattern))
            return qat_fail(err, QAT_ERR_ARGUMENT, "train.freeze: no parameter matches '%s'",
                            pattern);
    if (!anything_trains(training))
        return qat_fail(err, QAT_ERR_ARGUMENT, "train.freeze = %s leaves nothing to train",
                        patterns);
    if (log)
        tell(training, patterns, log);
    return QAT_OK;
}
