/** The output of qat-bench, as text or JSON. */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ derived figures */

static double gmacs(double macs, double ms)
{
    return ms > 0 ? 1e-6 * macs / ms : 0;
}

/** Share of the most that the processors in use can do; 0: unknown. */
static double roof_share(double roof_ms, double ms)
{
    return ms > 0 ? roof_ms / ms : 0;
}

static double sum_of_layers(const bench_result *r)
{
    double sum = 0;
    for (int32_t i = 0; i < qi_node_count(r->model); i++)
        sum += r->layers[i].ms;
    return sum;
}

/** The layers of one kind, added up. */
typedef struct kind {
    char name[48];
    int layers;
    double ms, macs, roof_ms;
} kind;

enum { MOST_KINDS = 64 };

static void name_kind(char name[48], const qi_model *model, const qi_node *node)
{
    const qi_tensor *w = node->n_inputs > 1 ? qi_tensor_at(model, node->inputs[1]) : NULL;
    bool const is_product = w && node->kernel->products == QI_PRODUCTS_ROWS && w->rank == 4 &&
                            w->dims[1] == 1 && w->dims[2] == 1;
    snprintf(name, 48, "%s%s", node->kernel->name, is_product ? " 1x1" : "");
}

/**
 * Add up the layers by kind, in the order of each kind's first layer. Returns the number of kinds.
 * After MOST_KINDS the last one takes all others.
 */
static int sum_kinds(kind kinds[MOST_KINDS], const bench_result *r)
{
    int n = 0;
    for (int32_t i = 0; i < qi_node_count(r->model); i++) {
        kind k = {.layers = 1,
                  .ms = r->layers[i].ms,
                  .macs = r->layers[i].macs,
                  .roof_ms = r->layers[i].roof_ms};
        name_kind(k.name, r->model, qi_node_at(r->model, i));
        int at = 0;
        while (at < n && at < MOST_KINDS - 1 && strcmp(kinds[at].name, k.name) != 0)
            at++;
        if (at == n) {
            kinds[n++] = k;
            continue;
        }
        kinds[at].layers++;
        kinds[at].ms += k.ms;
        kinds[at].macs += k.macs;
        kinds[at].roof_ms += k.roof_ms;
    }
    return n;
}

/* ------------------------------------------------------------------ words */

static void print_speed(double macs, double roof_ms, double ms)
{
    if (macs > 0)
        printf(" %8.1f", gmacs(macs, ms));
    if (roof_ms > 0)
        printf(" %5.0f %%", 100 * roof_share(roof_ms, ms));
}

/** The sizes of the matrices. */
static void print_product(const bench_layer *layer)
{
    if (layer->rows > 0 && layer->roof_ms > 0)
        printf(" %6lld %5lld %5lld", (long long)layer->rows, (long long)layer->k,
               (long long)layer->n);
    printf("\n");
}

static void print_layers(const bench_result *r)
{
    const qi_model *model = r->model;
    double const sum = sum_of_layers(r);
    bool any_slow = false;
    printf("\n%4s %-32.32s %-20s %8s %7s %8s %7s %6s %5s %5s\n", "op", "layer", "", "min ms",
           "share", "GMAC/s", "of roof", "rows", "K", "N");
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        const qi_node *node = qi_node_at(model, i);
        const bench_layer *layer = &r->layers[i];
        bool const slow =
            !qi_host_node_is_fast(r->host, i) && strcmp(qi_host_isa(r->host), "scalar") != 0;
        printf("%4d %-32.32s %-18.18s%2s %8.4f %5.1f %%", (int)i, tool_shown(node->name),
               tool_shown(node->kernel->name), slow ? " s" : "", layer->ms,
               sum > 0 ? 100 * layer->ms / sum : 0);
        any_slow |= slow;
        print_speed(layer->macs, layer->roof_ms, layer->ms);
        print_product(layer);
    }
    kind kinds[MOST_KINDS];
    int const n = sum_kinds(kinds, r);
    for (int i = 0; i < n; i++) {
        printf("%4d %-32s %-20.20s %8.4f %5.1f %%", kinds[i].layers, i ? "" : "layers of one kind",
               tool_shown(kinds[i].name), kinds[i].ms, sum > 0 ? 100 * kinds[i].ms / sum : 0);
        print_speed(kinds[i].macs, kinds[i].roof_ms, kinds[i].ms);
        printf("\n");
    }
    printf("%4d %-32s %-20s %8.4f %7s", (int)qi_node_count(model), "all", "", sum, "");
    print_speed(r->macs, r->roof_ms, sum);
    printf("\n");
    if (any_slow)
        printf("s: the scalar kernel runs this layer, on one thread\n");
}

static void print_times(const bench_times *t, int threads, int cores, double macs)
{
    bool const beyond = threads > cores;
    printf("threads %d%s, %lld runs: min %.4f ms, median %.4f, mean %.4f, p95 %.4f; %.1f GMAC/s\n",
           threads, beyond ? "*" : "", (long long)t->runs, t->min_ms, t->median_ms, t->mean_ms,
           t->p95_ms, gmacs(macs, t->min_ms));
    if (beyond)
        printf("* more threads than the %d processors that this process may use\n", cores);
}

void bench_print_float(const char *path, const bench_float *r)
{
    printf("%s: the float network, with batch norm folded; %.1f million multiply-adds\n",
           tool_shown(path), 1e-6 * r->macs);
    print_times(&r->times, r->threads, r->cores, r->macs);
    printf("\n");
}

void bench_print(const char *path, const bench_result *r)
{
    const bench_times *t = &r->times;
    printf("%s: %.1f million multiply-adds, device arena %zu bytes (on this machine %zu)\n",
           tool_shown(path), 1e-6 * r->macs, qi_host_sizes(r->host).arena,
           qi_host_sizes(r->host).host_arena);
    printf("isa %s", qi_host_isa(r->host));
    if (r->sequence)
        printf(", roof %.1f GMAC/s for one core (%s)", r->roof, r->sequence);
    printf("\n");
    print_times(t, qi_host_threads(r->host), r->cores, r->macs);
    print_layers(r);
    printf("\n");
}

/* ------------------------------------------------------------------ JSON */

static void print_json_speed(const bench_result *r, double macs, double roof_ms, double ms)
{
    printf(", \"macs\": %.0f, \"gmac_per_s\": %.2f", macs, gmacs(macs, ms));
    if (r->roof > 0)
        printf(", \"roof_share\": %.4f", roof_share(roof_ms, ms));
}

static void print_json_product(const bench_layer *layer)
{
    if (layer->rows > 0)
        printf(", \"rows\": %lld, \"k\": %lld, \"n\": %lld, \"window\": [%d, %d]",
               (long long)layer->rows, (long long)layer->k, (long long)layer->n,
               (int)layer->window_h, (int)layer->window_w);
}

static void print_json_layers(const bench_result *r)
{
    const qi_model *model = r->model;
    printf(", \"layers\": [");
    for (int32_t i = 0; i < qi_node_count(model); i++) {
        const qi_node *node = qi_node_at(model, i);
        printf("%s{\"index\": %d, \"name\": ", i ? ", " : "", (int)i);
        tool_json_string(node->name);
        printf(", \"op\": ");
        tool_json_string(node->kernel->name);
        printf(", \"fast\": %s, \"ms\": %.5f", qi_host_node_is_fast(r->host, i) ? "true" : "false",
               r->layers[i].ms);
        print_json_speed(r, r->layers[i].macs, r->layers[i].roof_ms, r->layers[i].ms);
        print_json_product(&r->layers[i]);
        printf("}");
    }
    printf("], \"kinds\": [");
    kind kinds[MOST_KINDS];
    int const n = sum_kinds(kinds, r);
    for (int i = 0; i < n; i++) {
        printf("%s{\"kind\": ", i ? ", " : "");
        tool_json_string(kinds[i].name);
        printf(", \"layers\": %d, \"ms\": %.5f", kinds[i].layers, kinds[i].ms);
        print_json_speed(r, kinds[i].macs, kinds[i].roof_ms, kinds[i].ms);
        printf("}");
    }
    printf("]");
}

static void print_json_threads(int threads, int cores)
{
    printf(", \"threads\": %d, \"cores\": %d, \"threads_beyond_cores\": %s", threads, cores,
           threads > cores ? "true" : "false");
}

static void print_json_times(const bench_times *t)
{
    printf(", \"runs\": %lld, \"min_ms\": %.5f, \"median_ms\": %.5f, \"mean_ms\": %.5f, "
           "\"p95_ms\": %.5f",
           (long long)t->runs, t->min_ms, t->median_ms, t->mean_ms, t->p95_ms);
}

void bench_print_float_json(const char *path, const bench_float *r)
{
    printf("{\"model\": ");
    tool_json_string(path);
    printf(", \"network\": \"float\"");
    print_json_threads(r->threads, r->cores);
    print_json_times(&r->times);
    printf(", \"macs\": %.0f, \"gmac_per_s\": %.2f}\n", r->macs, gmacs(r->macs, r->times.min_ms));
}

void bench_print_json(const char *path, const bench_result *r)
{
    printf("{\"model\": ");
    tool_json_string(path);
    printf(", \"network\": \"integer\", \"isa\": \"%s\"", qi_host_isa(r->host));
    print_json_threads(qi_host_threads(r->host), r->cores);
    print_json_times(&r->times);
    printf(", \"arena_bytes\": %zu, \"host_arena_bytes\": %zu", qi_host_sizes(r->host).arena,
           qi_host_sizes(r->host).host_arena);
    if (r->sequence)
        printf(", \"roof_sequence\": \"%s\", \"roof_gmac_per_s\": %.2f", r->sequence, r->roof);
    print_json_speed(r, r->macs, r->roof_ms, r->times.min_ms);
    print_json_layers(r);
    printf("}\n");
}

/* ------------------------------------------------------------------ loading */

static double ratio(const bench_start *s)
{
    return s->run_ms > 0 ? (s->open_ms + s->first_ms) / s->run_ms : 0;
}

static int by_ratio(const void *a, const void *b)
{
    double const x = ratio(a), y = ratio(b);
    return (x > y) - (x < y);
}

/** The fastest start, the fastest run, and the median of the ratios of all starts. */
static bench_start quickest(const bench_start starts[BENCH_STARTS], double *median)
{
    bench_start sorted[BENCH_STARTS], best = starts[0];
    for (int i = 0; i < BENCH_STARTS; i++) {
        const bench_start *s = &starts[i];
        double const run_ms = s->run_ms < best.run_ms ? s->run_ms : best.run_ms;
        if (s->open_ms + s->first_ms < best.open_ms + best.first_ms)
            best = *s;
        best.run_ms = run_ms;
        sorted[i] = *s;
    }
    qsort(sorted, BENCH_STARTS, sizeof sorted[0], by_ratio);
    *median = ratio(&sorted[BENCH_STARTS / 2]);
    return best;
}

static const char *where(bool cold)
{
    return cold ? "new process" : "same process";
}

void bench_print_load(const bench_start starts[BENCH_STARTS], const tool_run *how, bool cold)
{
    double median;
    bench_start const s = quickest(starts, &median);
    printf("%-12s  threads %lld: open %.3f ms + first run %.3f ms = %.2f x an inference of %.3f ms "
           "(best of %d; median %.2f x)\n",
           where(cold), (long long)how->threads, s.open_ms, s.first_ms, ratio(&s), s.run_ms,
           BENCH_STARTS, median);
}

void bench_print_load_json(const char *path, const bench_start starts[BENCH_STARTS],
                           const tool_run *how, bool cold)
{
    double median;
    bench_start const s = quickest(starts, &median);
    printf("{\"model\": ");
    tool_json_string(path);
    printf(", \"load\": \"%s\", \"threads\": %lld, \"times\": %d, \"open_ms\": %.4f, "
           "\"first_ms\": %.4f, \"run_ms\": %.4f, \"ratio\": %.3f, \"median_ratio\": %.3f}\n",
           where(cold), (long long)how->threads, BENCH_STARTS, s.open_ms, s.first_ms, s.run_ms,
           ratio(&s), median);
}
