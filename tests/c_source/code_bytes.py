"""Writes lib/export/c/code_bytes.c from what code_bytes.sh has measured; prints to stderr how far off it is."""
import sys
from collections import Counter, defaultdict
from statistics import mean

CORES = ["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m55", "riscv32"]
FEATURES = ["QK_FRACTION", "QK_WIDE", "QK_PACKED", "QK_NARROW_SHIFT", "QK_DOUBLE", "QK_EVEN", "QK_ONCE", "QK_FEW_CHANNELS"]
SMALL = 40  # bytes: features that change less are no row of their own
WEIGHT = 100 # of whole networks among those of single ops


def solve(rows, values):
    """Least squares, by the normal equations."""
    n = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) + (1e-6 if i == j else 0) for j in range(n)] + [sum(r[i] * v for r, v in zip(rows, values))]
         for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(a[k][i]))
        a[i], a[pivot] = a[pivot], a[i]
        for k in range(n):
            if k != i:
                f = a[k][i] / a[i][i]
                a[k] = [x - f * y for x, y in zip(a[k], a[i])]
    return [a[i][n] / a[i][i] for i in range(n)]


class Network:
    def __init__(self, fields):
        self.whole = fields[0] == "1"
        self.features = sum(1 << i for i, f in enumerate(FEATURES) if f in fields[1].split(","))
        layers, places, parts, ports, states, test, self.data = (int(f) for f in fields[2:])
        self.counts = [1, layers, places, parts, ports, states, test]
        self.functions = set()
        self.total = {}


networks, sizes = {}, defaultdict(dict)  # sizes[model][function, core]
helpers = defaultdict(set)               # helpers[core, name, bytes]: models
for line in sys.stdin:
    kind, model, *fields = line.split()
    if kind == "network":
        networks[model] = Network(fields)
    elif kind == "has":
        networks[model].functions.add(fields[0])
    elif kind == "helper":
        helpers[fields[0], fields[1], int(fields[2])].add(model)
    elif kind == "total":
        networks[model].total[fields[0]] = int(fields[1])
    else:
        key = fields[1], fields[0]
        sizes[model][key] = sizes[model].get(key, 0) + int(fields[2])

# ---------------------------------------------------------------- a row for each function, more where features change it
found = defaultdict(lambda: defaultdict(list))  # found[function][features]: models
for model, network in networks.items():
    for function in network.functions:
        found[function][network.features].append(model)


def bytes_of(function, models):
    whole = [m for m in models if networks[m].whole] or models
    return tuple(round(mean(sizes[m].get((function, core), 0) for m in whole)) for core in CORES)


rows = {}  # rows[function]: {features or -1: bytes}
for function in sorted(found):
    variants = {f: bytes_of(function, models) for f, models in found[function].items()}
    common = Counter(variants.values()).most_common(1)[0][0]
    rows[function] = {-1: common}
    for features, each in sorted(variants.items()):
        if max(abs(a - b) for a, b in zip(each, common)) >= SMALL:
            rows[function][features] = each
def attach(core, size, users):
    """A function that no text has goes with the one that is there when it is, and not there when it is not, most often."""
    wrong = lambda f: sum((m in users) != (f in n.functions) for m, n in networks.items())
    function, c = min(rows, key=wrong), CORES.index(core)
    if wrong(function) < min(len(users), len(networks) - len(users)):
        rows[function] = {f: b[:c] + (b[c] + size,) + b[c + 1:] for f, b in rows[function].items()}


for (core, name, size), users in sorted(helpers.items()):  # of libgcc
    attach(core, size, users)
others = defaultdict(dict)  # those that macros make
for model, each in sizes.items():
    for (function, core), size in each.items():
        if function.startswith(("qk_", "qi_")) and function not in rows:
            others[core, function][model] = size
for (core, function), each in sorted(others.items()):
    attach(core, round(mean(each.values())), each.keys())
rows = {f: r for f, r in rows.items() if any(any(b) for b in r.values())}


def row_of(function, features):
    """As row_of of sizes.c."""
    distance = lambda f: 1 if f == -1 else bin(f ^ features).count("1")
    return rows[function][min(rows[function], key=distance)]


# ---------------------------------------------------------------- the rest, by core
terms = {}
for c, core in enumerate(CORES):
    kernels = {m: sum(row_of(f, n.features)[c] for f in n.functions if f in rows) for m, n in networks.items()}
    # what counts is the error as a share of the total
    weights = {m: (WEIGHT if n.whole else 1) * 10000 / n.total[core] for m, n in networks.items()}
    terms[core] = solve([[w * x for x in networks[m].counts] for m, w in weights.items()],
                        [w * (networks[m].total[core] - networks[m].data - kernels[m]) for m, w in weights.items()])
    for m, n in networks.items():
        guess = n.data + kernels[m] + sum(x * t for x, t in zip(n.counts, terms[core]))
        if n.whole:
            print(f"{m:28} {core:14} {n.total[core]:8} {guess:10.0f} {100 * (guess / n.total[core] - 1):6.2f} %", file=sys.stderr)

print("""/** Bytes of code, as tests/c_source/code_bytes.sh has measured and written them. */
#include "export/c/out.h"

/* clang-format off */
const co_code_row co_code_rows[] = {""")
for function, variants in rows.items():
    for features, each in variants.items():
        print(f"    {{\"{function}\", {features if features >= 0 else 'CO_ANY'}, {{{', '.join(map(str, each))}}}}},")
print("    {0}};\n\nconst float co_code_terms[QAT_C_CORES][CO_TERMS] = {")
for core in CORES:
    print(f"    {{{', '.join(f'{t:.2f}F' for t in terms[core])}}}, /* {core} */")
print("};\n/* clang-format on */")
