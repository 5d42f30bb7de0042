/**
 * Tests claims of the documents: the bias of wrong roundings, and what wrong arithmetic would cost
 * a trained network. It does not use the engine. It uses the exact evaluation with other rules, and
 * the float32 simulation with other values.
 *
 *     claims rounding
 *     claims net CKPT [--samples N] [--threads N] [--weight-bits N]
 *
 * --weight-bits: for a float network, which is quantized after training. bench/claims.sh trains the
 * networks of recipes/claims and calls this program.
 */
#include "bench/claims/claims.h"

#include "base/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void)
{
    fprintf(stderr, "usage: claims rounding | claims net CKPT [--samples N] [--threads N] "
                    "[--weight-bits 2..8]\n");
    return 2;
}

static int fail(const qat_error *err)
{
    fprintf(stderr, "claims: %s\n", err->message);
    return EXIT_FAILURE;
}

/** A whole number behind --NAME; false: no such argument, or no number. */
static bool take_number(const char *name, char **argv, int64_t *number)
{
    char *end;
    if (strcmp(argv[0], name) != 0)
        return false;
    *number = strtoll(argv[1], &end, 10);
    return *end == 0 && end != argv[1] && *number > 0;
}

static int ask_net(const char *path, int64_t samples, int weight_bits)
{
    claims_net net;
    qat_error err;
    qat_status st = claims_open(&net, path, samples, weight_bits, &err);
    if (!st)
        printf("%s\n", qat_dataset_info_of(net.data)->name);
    if (!st)
        st = claims_about_simulation(&net, &err);
    if (!st)
        st = claims_about_integers(&net, &err);
    claims_close(&net);
    return st ? fail(&err) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int64_t samples = 0, threads = 1, bits = 8;
    if (argc == 2 && strcmp(argv[1], "rounding") == 0) {
        claims_rounding();
        return EXIT_SUCCESS;
    }
    if (argc < 3 || argc % 2 == 0 || strcmp(argv[1], "net") != 0)
        return usage();
    for (int i = 3; i < argc; i += 2)
        if (!take_number("--samples", argv + i, &samples) &&
            !take_number("--threads", argv + i, &threads) &&
            !take_number("--weight-bits", argv + i, &bits))
            return usage();
    if (bits < 2 || bits > 8)
        return usage();
    qat_set_threads(threads > 256 ? 256 : (int)threads);
    return ask_net(argv[2], samples, (int)bits);
}
