"""The table of run.sh, which sets the environment that this reads: times every system, prints ratios."""
import argparse
import json
import math
import os
import subprocess
import sys

import networks
from networks import BUILD, NETWORKS, ONNX, PYTHON, SCRIPTS, TFLITE

PEERS = {  # name: the script that times it, the ending of its model
    'LiteRT float': ('infer_tflite.py', TFLITE[0]),
    'LiteRT int8': ('infer_tflite.py', TFLITE[1]),
    'ORT float': ('infer_ort.py', ONNX[0]),
    'ORT int8': ('infer_ort.py', ONNX[1]),
}
ENGINE, OWN_FLOAT = 'qat', 'qat float'
THREADS = (1, 2)
BOUNDS = {'cell': 1.0, 'mean': 1.4}  # best peer / qat: at least in each cell, and in the geometric mean
LARGE = 'mobilenet_v1_1.0_224'  # where the engine is compared with float networks too, our own among them
WANTED = {'avx512vbmi': 3.0, 'avx512vnni': 3.0, 'avxvnni': 3.0, 'avx2': 1.7}  # times the faster of these


def command(system, net, threads, isa):
    how = ['--threads', str(threads), '--runs', str(NETWORKS[net][1])]
    if system == ENGINE:
        model = os.path.join(BUILD, net + '.qm')
        return [os.path.join(BUILD, 'tools/qat-bench'), model, '--json', *how, *(['--isa', isa] if isa else [])]
    if system == OWN_FLOAT:
        alpha, resolution = net.split('_')[-2:]
        return [os.path.join(BUILD, 'bench/bench_float_forward'), '--alpha', alpha, '--resolution', resolution, *how]
    script, ending = PEERS[system]
    return [PYTHON, os.path.join(SCRIPTS, script), networks.path(net, ending), *how]


def measure(system, net, threads, isa):
    """The JSON object that one process prints last."""
    words = command(system, net, threads, isa)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(words)}: {done.stderr.strip()[-400:]}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def prepare(nets):
    """{net: its systems}, of those that can be measured, and a sentence about whatever is left out."""
    ready, left_out = {}, []
    for net in nets:
        qm, complaint = networks.imported(net)
        if not qm:
            left_out.append(complaint)
            continue
        left_out += filter(None, [networks.make(net, TFLITE), networks.make(net, ONNX)])
        peers = [name for name, (_, ending) in PEERS.items() if not networks.missing(net, (ending,))]
        ready[net] = [ENGINE, *peers, *([OWN_FLOAT] if net == LARGE else [])]
    return ready, left_out


def run_rounds(ready, options):
    """{(net, threads): {system: [min_ms of each round]}}, and the instruction set that the engine ran."""
    times = {(net, threads): {} for net in ready for threads in options.threads}
    isa = None
    for number in range(options.rounds):
        for (net, threads), cell in times.items():
            systems = ready[net]
            for i in range(len(systems)):  # another one begins in each round
                system = systems[(i + number) % len(systems)]
                answer = measure(system, net, threads, options.isa)
                cell.setdefault(system, []).append(answer['min_ms'])
                isa = answer['isa'] if system == ENGINE else isa
        print(f'round {number + 1} of {options.rounds}', file=sys.stderr)
    return times, isa


def processor():
    """The name of the processor and its family and model, as the system has them."""
    found = {}
    with open('/proc/cpuinfo') as file:
        for line in file:
            key, _, value = line.partition(':')
            found.setdefault(key.strip(), value.strip())
    return f'{found.get("model name", "unknown")} (family {found.get("cpu family", "?")} model {found.get("model", "?")})'


def rows_of(times):
    rows = []
    for (net, threads), cell in times.items():
        best = {system: min(values) for system, values in cell.items()}
        peer = min((name for name in PEERS if name in best), key=lambda name: best[name])
        rows.append({'net': net, 'threads': threads, 'min_ms': best, 'rounds_ms': cell, 'best_peer': peer,
                     'ratio': best[peer] / best[ENGINE]})
    return rows


def print_table(rows):
    print(f'| network | threads | best peer | ms | {ENGINE} | best peer / {ENGINE} | {" | ".join(PEERS)} |')
    print('|---|---|---|---|---|---|' + '---|' * len(PEERS))
    for row in rows:
        ms = row['min_ms']
        mark = ' *' if row['ratio'] < BOUNDS['cell'] else ''
        all_peers = ' | '.join(f'{ms[name]:.3f}' if name in ms else '-' for name in PEERS)
        print(f'| {networks.title(row["net"])} | {row["threads"]} | {row["best_peer"]} | {ms[row["best_peer"]]:.3f} | '
              f'{ms[ENGINE]:.3f} | {row["ratio"]:.2f}{mark} | {all_peers} |')
    print('\nmilliseconds, minimum')


def print_floats(rows, isa):
    """The engine beside the faster of LiteRT float and our own float network."""
    for row in rows:
        ms = row['min_ms']
        if OWN_FLOAT not in ms or 'LiteRT float' not in ms:
            continue
        wanted = f', {WANTED[isa]} wanted' if isa in WANTED else ''
        print(f'{networks.title(row["net"])}, threads {row["threads"]}: '
              f'{min(ms["LiteRT float"], ms[OWN_FLOAT]) / ms[ENGINE]:.2f} times as fast as the faster of LiteRT float '
              f'({ms["LiteRT float"]:.3f} ms) and our own float forward ({ms[OWN_FLOAT]:.3f} ms){wanted}')


def verdict(rows, left_out):
    """Print the smallest ratio, the mean and whether both bounds hold; returns these as an object."""
    least = min(rows, key=lambda row: row['ratio'])
    mean = math.exp(sum(math.log(row['ratio']) for row in rows) / len(rows))
    low = [row for row in rows if row['ratio'] < BOUNDS['cell']]
    kept = not low and mean >= BOUNDS['mean']
    cells = len(NETWORKS) * len(THREADS)
    part = '' if len(rows) == cells and not left_out else f', of a part: {len(rows)} of {cells} cells' + (
        ', not all peers' if left_out else '')
    print(f'smallest ratio {least["ratio"]:.2f}: {networks.title(least["net"])}, threads {least["threads"]}')
    print(f'geometric mean {mean:.2f}')
    print(f'bounds: no cell below {BOUNDS["cell"]:.2f} ({len(low)} are), geometric mean at least {BOUNDS["mean"]:.2f}: '
          f'{"kept" if kept else "BROKEN"}{part}')
    return {'smallest': least['ratio'], 'geometric_mean': mean, 'kept': kept, 'cells': len(rows), 'of': cells}


def counts(text):
    return [int(word) for word in text.split(',')]


def main():
    parser = argparse.ArgumentParser(prog='bench/peers/run.sh')
    parser.add_argument('--nets', help='these networks only, a list with commas: ' + ', '.join(NETWORKS))
    parser.add_argument('--threads', type=counts, default=list(THREADS), help='these numbers only (default 1,2)')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--isa', help='the instruction set of our engine')
    parser.add_argument('--json', default=os.path.join(BUILD, 'peers.json'))
    options = parser.parse_args()
    options.rounds = max(options.rounds, 1)
    ready, left_out = prepare(networks.chosen(options.nets))
    for sentence in left_out:
        print(f'skipped: {sentence}', file=sys.stderr)
    ready = {net: systems for net, systems in ready.items() if any(name in PEERS for name in systems)}
    if not ready:
        sys.exit('nothing to compare')
    load = os.getloadavg()[0]
    times, isa = run_rounds(ready, options)
    rows = rows_of(times)
    print(f'{processor()}, {os.cpu_count()} processors, load {load:.2f} before; qat runs {isa}; {options.rounds} rounds')
    if load > 0.5:
        print('the machine was not quiet: ratios may be off')
    for sentence in left_out:
        print(f'skipped: {sentence}')
    print()
    print_table(rows)
    print_floats(rows, isa)
    result = verdict(rows, left_out)
    with open(options.json, 'w') as file:
        json.dump({'processor': processor(), 'processors': os.cpu_count(), 'load': load, 'isa': isa,
                   'rounds': options.rounds, 'skipped': left_out, 'rows': rows, **result}, file, indent=1)
        file.write('\n')
    return 0 if result['kept'] else 1


sys.exit(main())
