#!/usr/bin/env bash
# Jacob et al., table 4.3, on CIFAR-10: a small Inception with ReLU6 and with ReLU, in float, 8 bits and 7 bits. The
# command prints top-1 and recall@5 as mean and deviation over seeds, and whether it finds the paper's orderings;
# OUT/table.md holds the same. What is finished is not repeated, and an interrupted training continues.
# docs/experiments.md says more.
# Usage: bench/table_4_3.sh [OUT] [--table] [--seeds N] [--epochs N] [--tune-epochs N] [--only "NETWORK..."] [--take DIR]
#                             [--recipes DIR]
set -eu
cd "$(dirname "$0")/.."
out=runs/table_4_3 nets='inception_relu6 inception_relu' bits='8 7' layout=uint8

describe() { # describe <network>
    recipe=$recipes/cifar10_inception.ini extra=("model.activation=${1#inception_}") float_extra=(train.warmup=10%)
}

orderings() {
    awk '
        function says(holds, text) { printf "%s: %s\n", holds ? "found" : "not found", text }
        { top1[$1, $2] = $4; minus[$1, $2] = $8 }
        END {
            split("inception_relu6 inception_relu", nets)
            for (i = 1; i <= 2; i++)
                if ((nets[i], 7) in top1)
                    says(top1[nets[i], 8] >= top1[nets[i], 7], sprintf("%s: 8 bits are no worse than 7: %.2f and %.2f %%", nets[i], top1[nets[i], 8], top1[nets[i], 7]))
            for (b = 8; b >= 7; b--)
                if (("inception_relu", b) in top1 && ("inception_relu6", b) in top1)
                    says(minus["inception_relu6", b] > minus["inception_relu", b], sprintf("%d bits cost less with ReLU6 than with ReLU: %+.2f and %+.2f points", b, minus["inception_relu6", b], minus["inception_relu", b]))
        }'
}

. bench/float_against_integer.sh
