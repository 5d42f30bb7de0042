/** The parts of qat-train --budget: a float training if there is no checkpoint yet, the search. */
#include "tools/budget/budget_tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_ROOM = 1024 };

static bool is_there(const char *dir, const char *name)
{
    char path[PATH_ROOM];
    int const n = snprintf(path, sizeof path, "%s/%s", dir, name);
    return n > 0 && n < PATH_ROOM && !access(path, F_OK);
}

bool budget_is_begun(const char *dir)
{
    return is_there(dir, "last.ckpt");
}

qat_status budget_spare_run(const budget_wanted *w, qat_error *err)
{
    if (w->resume || w->overwrite || !budget_is_begun(w->dir))
        return QAT_OK;
    return qat_fail(err, QAT_ERR_STATE,
                    "%.300s/last.ckpt already exists: continue that run (--resume), start again in "
                    "its place (--overwrite), or name another folder",
                    w->dir);
}

/* ------------------------------------------------------------------ the float training */

static bool has_weights(const qat_recipe *recipe)
{
    static const char *const keys[] = {"train.init", "model.onnx", "model.tflite"};
    char value[QAT_RECIPE_VALUE_MAX];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (*qat_recipe_get(recipe, keys[i], value))
            return true;
    return false;
}

qat_status budget_float_recipe(qat_recipe **recipe, const qat_recipe *of, const budget_wanted *w,
                               char dir[1024], qat_error *err)
{
    static const char *const sets[] = {"quant.enabled=no", "budget.flash=0", "budget.ram=0",
                                       "budget.macs_bits=0"};
    char *text = NULL;
    *recipe = NULL;
    if (has_weights(of))
        return QAT_OK;
    int const n = snprintf(dir, PATH_ROOM, "%s/float", w->dir);
    if (n < 0 || n >= PATH_ROOM)
        return qat_fail(err, QAT_ERR_ARGUMENT, "the folder %.200s... is too long", w->dir);
    qat_status st = qat_recipe_write(of, &text, err);
    if (!st)
        st = qat_recipe_parse(recipe, text, qat_recipe_source(of), sets,
                              (int)(sizeof sets / sizeof *sets), err);
    free(text);
    return st;
}

qat_status budget_use_float(qat_recipe *recipe, const char *dir, qat_error *err)
{
    char path[PATH_ROOM];
    int const n = snprintf(path, sizeof path, "%s/last.ckpt", dir);
    if (n < 0 || n >= PATH_ROOM)
        return qat_fail(err, QAT_ERR_ARGUMENT, "output.dir %.200s... is too long", dir);
    return qat_recipe_set(recipe, "train.init", path, err);
}

/* ------------------------------------------------------------------ the search */

static bool on_tick(void *context, int64_t done, int64_t total)
{
    const budget_wanted *w = context;
    (void)tool_tick("sensitivity", done, total);
    return !w->stop(NULL);
}

/** "4", "8 kept", "-" */
static const char *bits_text(char text[16], int bits, bool kept)
{
    if (bits)
        snprintf(text, 16, "%d%s", bits, kept ? " kept" : "");
    else
        strcpy(text, "-");
    return text;
}

static void print_layers(const qat_budget *b)
{
    const qat_budget_point *chosen = qat_budget_chosen(b);
    const qat_ram_plan *ram = qat_budget_ram(b);
    char weights[16], activations[16];
    int64_t count = 0, macs = 0;
    int width = 16;
    for (int i = 0; i < qat_budget_layers(b); i++) {
        int const n = (int)strlen(tool_shown(qat_budget_layer_at(b, i)->name));
        width = n > width ? n : width;
    }
    printf("%-*s %10s %13s %8s %8s %10s %15s %11s\n", width, "layer", "weights", "multiply-adds",
           "weights", "output", "flash [B]", "macs_bits", "loss added");
    printf("%-*s %10s %13s %8s %8s\n", width, "", "", "", "[bits]", "[bits]");
    for (int i = 0; i < qat_budget_layers(b); i++) {
        const qat_budget_layer *l = qat_budget_layer_at(b, i);
        count += l->weights;
        macs += l->macs;
        printf("%-*s %10lld %13lld %8s %8s %10lld %15lld %11.6f\n", width, tool_shown(l->name),
               (long long)l->weights, (long long)l->macs,
               bits_text(weights, l->weight_bits, l->weights_kept),
               bits_text(activations, l->activation_bits, l->activations_kept), (long long)l->bytes,
               (long long)l->macs_bits, l->loss);
    }
    printf("%-*s %10s %13s %8s %8s %10lld\n", width, "(not weights)", "", "", "", "",
           (long long)qat_budget_other_flash(b));
    printf("%-*s %10lld %13lld %8s %8s %10lld %15lld %11.6f\n", width, "total", (long long)count,
           (long long)macs, "", "", (long long)chosen->flash, (long long)chosen->macs_bits,
           chosen->predicted);
    printf("loss added, simulated: %.6f. RAM, without the engine's model memory: %zu bytes",
           chosen->simulated, ram->ram);
    if (ram->ram < ram->ram_before)
        printf(" with qat-export --ram, which adds about %lld bytes of flash; otherwise %zu bytes",
               (long long)ram->bytes - (long long)ram->bytes_before, ram->ram_before);
    printf("\n");
}

static void print_curve(const qat_budget *b)
{
    printf("the best choice for other sizes of flash, before fine-tuning:\n%12s %15s %15s %15s\n",
           "flash [B]", "macs_bits", "predicted", "simulated");
    for (int i = 0; i < qat_budget_points(b); i++) {
        const qat_budget_point *p = qat_budget_point_at(b, i);
        printf("%12lld %15lld %15.6f %15.6f\n", (long long)p->flash, (long long)p->macs_bits,
               p->predicted, p->simulated);
    }
    printf("%s\n", tool_shown(qat_budget_recipe(b)));
    fflush(stdout);
}

static qat_budget_options options_of(const budget_wanted *w)
{
    return (qat_budget_options){.dir = w->dir,
                                .resume = w->resume && budget_is_begun(w->dir),
                                .overwrite = w->overwrite,
                                .plugins = w->plugins->items,
                                .n_plugins = w->plugins->count,
                                .memory = w->memory,
                                .log = w->log,
                                .tick = on_tick,
                                .context = (void *)w};
}

qat_status budget_check(const qat_recipe *recipe, const budget_wanted *w, qat_error *err)
{
    qat_budget_options const o = options_of(w);
    qat_status const st = has_weights(recipe) ? QAT_OK : qat_budget_check(recipe, &o, err);
    tool_bar_clear();
    return st;
}

qat_status budget_search(qat_recipe **chosen, const qat_recipe *recipe, const budget_wanted *w,
                         qat_error *err)
{
    qat_budget *b = NULL;
    qat_budget_options const o = options_of(w);
    *chosen = NULL;
    qat_status st = qat_budget_search(&b, recipe, &o, err);
    tool_bar_clear();
    if (!st) {
        print_layers(b);
        print_curve(b);
        st = qat_recipe_load(chosen, qat_budget_recipe(b), NULL, 0, err);
    }
    qat_budget_free(b);
    return st;
}
