/**
 * The evaluations of a training run on the test split. Up to three networks are evaluated:
 *
 *     float       the parameters without any quantization
 *     integers    the quantized network, frozen and run on the engine: what its .qm answers
 *     simulated   the quantized network in float32, if it cannot become integers or if the recipe
 *                 asks for it (train.eval_simulated)
 */
#include "evaluate/evaluate.h"
#include "recipe/recipe.h"
#include "train/board.h"

#include <stdio.h>

const qat_ranks *qat_trainer_judges(const qat_trainer *t)
{
    return t->recipe->output.tensorboard || t->async ? NULL : t->ranks;
}

static qat_status evaluate_graph(qat_trainer *t, qat_graph *graph, qat_tick *tick,
                                 qat_accuracy *accuracy, qat_error *err)
{
    qat_trainer_eval_params(t, graph);
    return qat_evaluate_graph_among(qat_trainer_judges(t), (int)t->recipe->data.threads, graph,
                                    &t->input, t->test_data, (int)t->recipe->train.eval_batch, 0,
                                    tick, t, accuracy, err);
}

/** Most runs never simulate, so the graph gets its memory when it is first needed. */
static qat_status plan_simulation(qat_trainer *t, qat_error *err)
{
    if (t->simulation_planned)
        return QAT_OK;
    qat_status const st =
        qat_graph_plan(t->simulated_eval, (int)t->recipe->train.eval_batch, QAT_PLAN_EVAL, err);
    if (!st)
        qat_graph_init_params(t->simulated_eval, 0);
    t->simulation_planned = !st;
    return st;
}

static qat_status evaluate_simulated(qat_trainer *t, qat_tick *tick, qat_accuracy *accuracy,
                                     qat_error *err)
{
    qat_status const st = plan_simulation(t, err);
    qat_board_watch(t, QAT_EVALUATED_SIMULATED);
    return st ? st : evaluate_graph(t, t->simulated_eval, tick, accuracy, err);
}

void qat_trainer_tell_simulated(qat_trainer *t, const char *why)
{
    char text[QAT_ERROR_MESSAGE_MAX + 160];
    const qat_log *log = t->options->log;
    if (log && !t->simulation_told) {
        snprintf(text, sizeof text,
                 "step %lld: the quantized network is evaluated in float32 simulation, not on "
                 "integers: %s",
                 (long long)t->step, why);
        log->line(log->context, text);
    }
    t->simulation_told = true;
}

static qat_status evaluate_integers(qat_trainer *t, qat_tick *tick, qat_accuracy *accuracy,
                                    qat_error *err)
{
    qat_error why = {0};
    if (!t->integer_eval)
        return QAT_OK;
    qat_board_watch(t, QAT_EVALUATED_INTEGER);
    qat_status const st = qat_trainer_evaluate_integers(t, tick, accuracy, &why, err);
    if (!st && !accuracy->n)
        qat_trainer_tell_simulated(t, why.message);
    return st;
}

/**
 * Evaluate on integers; in simulation if integers are not possible, or if both are wanted. What the
 * integers chose for the .qm then stays.
 */
static qat_status evaluate_quantized(qat_trainer *t, qat_tick *tick, qat_accuracy *integer,
                                     qat_accuracy *simulated, qat_error *err)
{
    qat_status st = evaluate_integers(t, tick, integer, err);
    if (st || (integer->n && !t->recipe->train.eval_simulated))
        return st;
    float const chosen = t->input.attributes.low;
    st = evaluate_simulated(t, tick, simulated, err);
    if (integer->n)
        t->input.attributes.low = chosen;
    return st;
}

qat_status qat_trainer_evaluate(qat_trainer *t, qat_tick *tick, qat_train_progress *row,
                                qat_error *err)
{
    qat_accuracy in_float = {0}, integer = {0}, simulated = {0};
    qat_board_watch(t, QAT_EVALUATED_FLOAT);
    qat_status st = evaluate_graph(t, t->float_eval, tick, &in_float, err);
    if (!st && t->step > t->plan.quant_start)
        st = evaluate_quantized(t, tick, &integer, &simulated, err);
    qat_board_unwatch(t);
    if (st == QAT_ERR_STATE && t->stopped)
        return QAT_OK;
    if (st)
        return st;
    t->float_accuracy = in_float;
    t->integer_accuracy = integer;
    t->simulated_accuracy = simulated;
    row->evaluated = true;
    row->in_float = in_float;
    row->integer = integer;
    row->simulated = simulated;
    return QAT_OK;
}
