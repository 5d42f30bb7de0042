/**
 * Times the depthwise convolutions of MobileNet v1 on one thread, with random weights, on one
 * instruction set. The layers take turns, as they do in a network. The time of a layer is the least
 * of all rounds.
 *
 *   bench_depthwise [isa [width_percent resolution [rounds]]]      default: the best, 100 224, 300
 */
#include "bench/speed/node_timer.h"

#include <stdio.h>
#include <stdlib.h>

/** Output channels at full width and stride of the 13 layers. */
static const struct {
    int32_t channels, stride;
} mobilenet[] = {{32, 1},  {64, 2},  {128, 1}, {128, 2}, {256, 1}, {256, 2}, {512, 1},
                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 2}, {1024, 1}};

enum { LAYERS = sizeof mobilenet / sizeof mobilenet[0] };

struct layer {
    node_timer t;
    int32_t side, channels, stride;
};

static void build(one_node *n, int32_t side, int32_t c, int32_t stride, uint64_t *seed)
{
    int32_t const out = (side + stride - 1) / stride, pad = stride == 1 || side % 2 ? 1 : 0;
    int32_t const x[] = {1, side, side, c}, w[] = {1, 3, 3, c}, y[] = {1, out, out, c};
    int32_t const params[] = {stride, stride, 1, 1, pad, pad, 1, -128, 127};
    int32_t values[1024];
    node_init(n, &qi_kernel_depthwise_conv2d, QI_ROUND_TWICE, seed);
    node_codes(n, QI_ACTIVATION, QI_S8, 8, -128, 4, x, FILL_RANDOM);
    node_codes(n, QI_CONSTANT, QI_S8, 8, 0, 4, w, FILL_RANDOM);
    for (int which = 0; which < 3; which++) {
        for (int32_t i = 0; i < c; i++)
            values[i] = which == 0   ? node_random_in(seed, -2000, 2000)
                        : which == 1 ? node_random_in(seed, 1 << 30, INT32_MAX)
                                     : node_random_in(seed, -8, -6);
        node_s32(n, c, values);
    }
    node_output(n, QI_S8, 8, -128, 4, y);
    node_params(n, 9, params);
}

static void print(const struct layer *layers)
{
    double total = 0;
    for (int i = 0; i < LAYERS; i++) {
        const struct layer *l = &layers[i];
        const node_timer *t = &l->t;
        total += t->best;
        printf("%3dx%-3d %4d channels, stride %d: %8.2f us, %6.2f GMAC/s, %.3f ns an output\n",
               l->side, l->side, l->channels, l->stride, t->best * 1e6,
               9e-9 * (double)t->outputs / t->best, t->best * 1e9 / (double)t->outputs);
    }
    printf("sum of minima: %.1f us\n", total * 1e6);
}

int main(int argc, char **argv)
{
    static struct layer layers[LAYERS];
    const qi_isa *isa = node_timer_isa(argc > 1 ? argv[1] : NULL);
    int const percent = argc > 2 ? atoi(argv[2]) : 100;
    int const rounds = argc > 4 ? atoi(argv[4]) : 300;
    int32_t side = (argc > 3 ? atoi(argv[3]) : 224) / 2;
    uint64_t seed = 1;
    for (int i = 0; i < LAYERS; i++) {
        struct layer *l = &layers[i];
        /* a layer's stride halves it: its channels are those of its input */
        l->stride = mobilenet[i].stride;
        l->channels = mobilenet[i].channels * percent / 100;
        l->side = side;
        build(&l->t.n, side, l->channels, l->stride, &seed);
        node_timer_prepare(&l->t, &qi_fast_depthwise_conv2d, isa);
        side = (side + l->stride - 1) / l->stride;
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < LAYERS; i++)
            node_timer_run(&layers[i].t);
    printf("%s, MobileNet v1 of %d %%, one thread, minimum of %d\n", isa->name, percent, rounds);
    print(layers);
    return 0;
}
