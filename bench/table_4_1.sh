#!/usr/bin/env bash
# Jacob et al., table 4.1, on CIFAR-10: ResNets of several depths, float and integer (8 bits, the paper's layout). The
# command prints a table and how the networks are ordered; OUT/table.md holds the same. What is finished is not
# repeated, and an interrupted training continues. docs/experiments.md says more.
# Usage: bench/table_4_1.sh [OUT] [--table] [--seeds N] [--epochs N] [--tune-epochs N] [--only "NETWORK..."] [--take DIR]
#                             [--recipes DIR]
set -eu
cd "$(dirname "$0")/.."
out=runs/table_4_1 nets='resnet20 resnet32 resnet56' bits=8 layout=uint8

describe() { # describe <network>
    recipe=$recipes/cifar10_resnet20.ini extra=() float_extra=()
    [ "$1" = resnet20 ] || extra=("model.depth=${1#resnet}")
}

orderings() {
    awk '
        function says(holds, text) { printf "%s: %s\n", holds ? "found" : "not found", text }
        $2 == "float" { if (last) says($4 > last_top1, sprintf("%s is better than %s, float: %.2f and %.2f %%", $1, last, $4, last_top1)); last = $1; last_top1 = $4 }
        $2 == 8 {
            says($8 >= -2, sprintf("%s: integer within 2 points of float: %+.2f", $1, $8))
            if (before) says($4 > before_top1, sprintf("%s is better than %s, integer: %.2f and %.2f %%", $1, before, $4, before_top1))
            before = $1; before_top1 = $4
        }'
}

. bench/float_against_integer.sh
