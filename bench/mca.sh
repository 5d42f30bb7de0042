#!/usr/bin/env bash
# How close to its roof each inner loop of the engine comes, on processors that are not at hand: llvm-mca simulates the
# loops that tests/source/inner_loops.awk finds in the kernels of a build.
#
#   bench/mca.sh [--all] [BUILD]        BUILD: build
#
# Prints a line a loop and processor: instructions, multiplies, cycles of one step, cycles of its sequence alone (the
# multiplies and additions of vectors, with all operands in registers), multiplies a cycle that the sequence allows (the
# roof), and the share of the roof. The sequence alone takes what its busiest kind of port takes, and no less than all its
# instructions on all ports that it uses: llvm-mca's own figure leaves that out, and would let 16 multiplies and 48
# additions run on three ports in 16 cycles. (build/bench/roof measures 21.3 for them.) Data come from the first cache. The last lines are the verdict on the matrix products:
# the largest tile of each kernel at 0.85 of the roof or more. Ends with 1 if one is below.
#
#   --all   every loop; without it, of each object those with at least half of the most multiplies, and of products alone
#
# Needs objdump (package binutils) and llvm-mca. Debian 12's package llvm is version 14, which does not know Zen 4 and
# takes Ice Lake's model for Sapphire Rapids; install llvm-19. The newest one that is installed is used, or MCA. If it does not know a processor, the script takes the
# one before it, and says so.
#
#   sapphirerapids   avx512vnni, avxvnni, avx2
#   icelake-server   avx512vnni: two 512-bit multiplies a cycle
#   znver4           avx512vnni, avx2
#   alderlake        avxvnni, avx2: two 256-bit multiplies a cycle
#   haswell          avx2: one
#
# LLVM's models differ from the processors in places. LLVM 19 and 22 give Sapphire Rapids one VPDPBUSD of 512 bits a
# cycle, and it has two (build/bench/roof); so Ice Lake's model stands beside it. They give Zen 4 half of one, and it has
# one; and a broadcast from memory takes the place of a multiply there, and does not on the processor.
set -eu
cd "$(dirname "$0")/.."
all=0
[ "${1:-}" = --all ] && all=1 && shift
build=${1:-build}
least=0.85
objdump=${OBJDUMP:-objdump}

die() {
    echo "bench/mca.sh: $1" >&2
    exit 1
}

newest() { # the llvm-mca of the highest version
    compgen -c llvm-mca | sort -u | sed -n 's/^llvm-mca-\([0-9]*\)$/\1 &/p' | sort -n | tail -n 1 | cut -d ' ' -f 2
}
mca=${MCA:-$(newest)}
mca=${mca:-llvm-mca}
command -v "$mca" >/dev/null || die "no $mca (Debian: llvm-19)"
command -v "$objdump" >/dev/null || die "no $objdump (Debian: binutils)"
objects=$(find "$build/lib/infer" -path '*libqatinfer_*.a.p/host_x86_*' -name '*.o' | grep -E '_(gemm|depthwise|elementwise)\.c\.o$' | sort) || true
[ -n "$objects" ] || die "$build: no kernels of x86-64; build first"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086
"$objdump" -d --no-show-raw-insn $objects | awk -f tests/source/inner_loops.awk -v code=1 >"$work/loops"

# The loops that count, as regions for llvm-mca: the whole loop, and its sequence alone, of registers.
awk -F '\t' -v all=$all '
    NR == FNR { # which loops
        if (NF == 9) { n = $5 + $6; key = $1; if ($6 == 0 && n > most[key]) most[key] = n }
        next
    }
    NF == 9 {
        finish()
        want = all || (2 * ($5 + $6) >= most[$1] && $6 == 0)
        if (!want) next
        name = $1 ":" $2 ":" $3
        sub(/^host_x86_/, "", name)
        sub(/\.c\.o:/, ":", name)
        print "# LLVM-MCA-BEGIN " name ":" $4 ":" $5 + $6 ":" $6
        alone = ""
        next
    }
    want {
        print
        if ($0 !~ /^(\{vex\} )?vp(dpbusds?|dpwssds?|maddwd|maddubsw|mulu?dq|mull[dw]|add[wdq]) /) next
        size = $0
        sub(/.*%/, "%", size)
        line = $0
        sub(/-?(0x)?[0-9a-f]*\([^)]*\)(\{1to[0-9]+\})?/, substr(size, 1, 4) "0", line)
        alone = alone line "\n"
    }
    function finish() {
        if (!want) return
        printf "# LLVM-MCA-END\n# LLVM-MCA-BEGIN %s:roof\n%s# LLVM-MCA-END\n", name, alone
        want = 0
    }
    END { finish() }' "$work/loops" "$work/loops" >"$work/regions"

# known PROCESSOR : does llvm-mca have its model?
known() {
    echo nop | "$mca" -mtriple=x86_64 -mcpu="$1" >/dev/null 2>"$work/err" && ! grep -q 'not a recognized' "$work/err"
}

"$mca" --version | sed -n 's/^ *\(.*LLVM version.*\)/\1/p'
printf '%-48s %-15s %5s %6s %8s %8s %6s %6s\n' loop processor instr. mult. cycles alone roof share
while read -r processor before kernels; do
    model=$processor
    if ! known "$model"; then
        model=$before
        echo "$mca does not know $processor: $model instead"
    fi
    awk -v kernels="$kernels" '
        /^# LLVM-MCA-BEGIN/ { on = $3 ~ "^(" kernels ")_[a-z0-9]*(_gemm|_depthwise|_elementwise)?:" }
        on' "$work/regions" >"$work/chosen"
    [ -s "$work/chosen" ] || continue
    "$mca" -mtriple=x86_64 -mcpu="$model" -iterations=300 -instruction-info=0 "$work/chosen" \
        >"$work/out" 2>"$work/err" || {
        echo "$model is left out: $(head -n 1 "$work/err")"
        continue
    }
    awk -v model="$model" '
        /Code Region/ { split($0, part, " - "); name = part[2] }
        /^Iterations:/ { steps = $2 }
        /^Total Cycles:/ { cycles = $3 / steps }
        /^Block RThroughput:/ { least = $3 }
        /^Resource pressure per iteration:/ { getline; getline
            ports = work = 0
            for (i = 1; i <= NF; i++) if ($i + 0 > 0) { ports++; work += $i }
            if (name !~ /:roof$/) { n = split(name, f, ":"); loop = f[1] " " f[2] " " f[3]; size = f[4]; mult = f[5]; step = cycles; next }
            if (work / ports > least) least = work / ports
            printf "%-48s %-15s %5d %6d %8.2f %8.2f %6.2f %6.2f\n", loop, model, size, mult, step, least, mult / least, least / step
        }' "$work/out" | tee -a "$work/table"
done <<'END'
sapphirerapids icelake-server avx512vnni|avxvnni|avx2
icelake-server icelake-server avx512vnni
znver4 znver3 avx512vnni|avx2
alderlake icelake-client avxvnni|avx2
haswell haswell avx2
END

echo
awk -v least=$least '
    $1 ~ /_gemm$/ { key = $1 " " $4; if ($6 > most[key]) { most[key] = $6; share[key] = $10; tile[key] = $2; if (!(key in seen)) { order[++n] = key; seen[key] = 1 } } }
    END {
        for (i = 1; i <= n; i++) {
            split(order[i], part, " ")
            kept = share[order[i]] >= least
            broken += !kept
            printf "%-20s %-15s largest tile %-8s %.2f of the roof, at least %.2f: %s\n", part[1], part[2], tile[order[i]], share[order[i]], least, kept ? "kept" : "BROKEN"
        }
        exit broken > 0
    }' "$work/table"
