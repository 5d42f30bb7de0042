"""The table of run.sh, which sets the environment that this reads: times every system, prints ratios."""
import argparse
import json
import math
import os
import subprocess
import sys

SIZES = ('0.25_128', '0.5_160', '1.0_224')
THREADS = (1, 2)
RUNS = {'0.25_128': 600, '0.5_160': 300, '1.0_224': 100}  # of one measurement
LARGE = '1.0_224'  # where the engine is compared with float networks
PEERS = ('LiteRT float', 'LiteRT int8', 'ORT float', 'ORT int8')
ENGINE, OWN_FLOAT = 'qat', 'qat float'
GOAL = {'cell': 1.0, 'mean': 1.2}  # best peer / qat: above in each cell, at least in the geometric mean
WANTED = {'avx512vnni': 3.0, 'avxvnni': 3.0, 'avx2': 1.7}  # times the faster float network


def command(system, size, threads, isa):
    build, scripts = os.environ['QAT_BUILD'], os.environ['PEERS_SCRIPTS']
    stem = os.path.join(os.environ['PEERS_MODELS'], 'mobilenet_v1_' + size)
    how = ['--threads', str(threads), '--runs', str(RUNS[size])]
    if system == ENGINE:
        model = os.path.join(build, f'mobilenet_v1_{size}.qm')
        return [os.path.join(build, 'tools/qat-bench'), model, '--json', *how, *(['--isa', isa] if isa else [])]
    if system == OWN_FLOAT:
        alpha, resolution = size.split('_')
        return [os.path.join(build, 'bench/bench_float_forward'), '--alpha', alpha, '--resolution', resolution, *how]
    script, file = {
        'LiteRT float': ('infer_tflite.py', '_float.tflite'),
        'LiteRT int8': ('infer_tflite.py', '_int8.tflite'),
        'ORT float': ('infer_ort.py', '_float.onnx'),
        'ORT int8': ('infer_ort.py', '_qdq.onnx'),
    }[system]
    return [os.environ['PEERS_PYTHON'], os.path.join(scripts, script), stem + file, *how]


def measure(system, size, threads, isa):
    """The JSON object that one process prints last."""
    words = command(system, size, threads, isa)
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(words)}: {done.stderr.strip()[-400:]}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def systems_of(size):
    return (ENGINE, *PEERS, OWN_FLOAT) if size == LARGE else (ENGINE, *PEERS)


def run_rounds(rounds, isa):
    """{(size, threads): {system: [min_ms of each round]}}, and the engine's last answer."""
    times = {(size, threads): {} for size in SIZES for threads in THREADS}
    engine = None
    for number in range(rounds):
        for (size, threads), cell in times.items():
            systems = systems_of(size)
            for i in range(len(systems)):  # another one begins in each round
                system = systems[(i + number) % len(systems)]
                answer = measure(system, size, threads, isa)
                cell.setdefault(system, []).append(answer['min_ms'])
                engine = answer if system == ENGINE else engine
        print(f'round {number + 1} of {rounds}', file=sys.stderr)
    return times, engine


def processor():
    with open('/proc/cpuinfo') as file:
        for line in file:
            if line.startswith('model name'):
                return line.split(':', 1)[1].strip()
    return 'unknown'


def best_peer(best):
    name = min(PEERS, key=lambda peer: best[peer])
    return name, best[name]


def table(times):
    """Rows of the table as objects."""
    rows = []
    for (size, threads), cell in times.items():
        best = {system: min(values) for system, values in cell.items()}
        peer, ms = best_peer(best)
        rows.append({'model': size.replace('_', '/'), 'threads': threads, 'min_ms': best, 'rounds_ms': cell,
                     'best_peer': peer, 'speedup': ms / best[ENGINE]})
    return rows


def float_speedup(row):
    """Against the faster of LiteRT float and our own float forward."""
    return min(row['min_ms']['LiteRT float'], row['min_ms'][OWN_FLOAT]) / row['min_ms'][ENGINE]


def print_goal(rows, mean):
    lost = [row for row in rows if row['speedup'] <= GOAL['cell']]
    print(f'\nmilliseconds, minimum; geometric mean of the last column {mean:.2f}')
    print(f'goal: every cell above {GOAL["cell"]:.2f}: {len(rows) - len(lost)} of {len(rows)} are'
          f'{" (* are not)" if lost else ""}; '
          f'mean at least {GOAL["mean"]:.2f}: {"reached" if mean >= GOAL["mean"] else "missed"}')


def print_table(rows, mean, isa):
    systems = (ENGINE, *PEERS)
    print('| MobileNet v1 | threads | ' + ' | '.join(systems) + ' | best peer / qat |')
    print('|---|---|' + '---|' * len(systems) + '---|')
    for row in rows:
        figures = ' | '.join(f'{row["min_ms"][system]:.3f}' for system in systems)
        mark = '' if row['speedup'] > GOAL['cell'] else ' *'
        print(f'| {row["model"]} | {row["threads"]} | {figures} | {row["speedup"]:.2f}{mark} ({row["best_peer"]}) |')
    print_goal(rows, mean)
    for row in rows:
        if OWN_FLOAT not in row['min_ms']:
            continue
        wanted = f', {WANTED[isa]} wanted' if isa in WANTED else ''
        print(f'{row["model"]}, threads {row["threads"]}: {float_speedup(row):.2f} times as fast as the faster of LiteRT '
              f'float ({row["min_ms"]["LiteRT float"]:.3f} ms) and our own float forward '
              f'({row["min_ms"][OWN_FLOAT]:.3f} ms){wanted}')


def main():
    parser = argparse.ArgumentParser(prog='bench/peers/run.sh')
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--isa')
    parser.add_argument('--json', default=os.path.join(os.environ['QAT_BUILD'], 'peers.json'))
    options = parser.parse_args()
    load = os.getloadavg()[0]
    times, engine = run_rounds(max(options.rounds, 1), options.isa)
    rows = table(times)
    mean = math.exp(sum(math.log(row['speedup']) for row in rows) / len(rows))
    print(f'{processor()}, {os.cpu_count()} processors, load {load:.2f} before; qat runs {engine["isa"]}; '
          f'{options.rounds} rounds')
    if load > 0.5:
        print('the machine was not quiet: ratios may be off')
    print()
    print_table(rows, mean, engine['isa'])
    with open(options.json, 'w') as file:
        json.dump({'processor': processor(), 'processors': os.cpu_count(), 'load': load, 'isa': engine['isa'],
                   'rounds': options.rounds, 'rows': rows, 'geometric_mean': mean}, file, indent=1)
        file.write('\n')


main()
