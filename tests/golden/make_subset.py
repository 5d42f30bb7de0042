"""The committed subset of the golden data: make_subset.sh says what it is for.

usage: make_subset.py GOLDEN TARGET
"""
import ast
import os
import shutil
import struct
import sys

FIXEDPOINT_BYTES = 7500  # of each function: the first rows, and rows spread over the rest
OPS_BYTES = 10150        # of each operator and type: small cases that show every option
OPS2_BYTES = 22000        # of ops2: the smallest case of each kind that fits, the first kinds first
FAKEQUANT_EXTRA = 2      # cases beyond one of each kind

OPS = ('CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED ADD SUB MUL MEAN CONCATENATION AVERAGE_POOL_2D '
       'MAX_POOL_2D SOFTMAX LOGISTIC TANH RELU RELU6 RESHAPE QUANTIZE TRANSPOSE_CONV MAXIMUM MINIMUM '
       'PRELU LEAKY_RELU HARD_SWISH L2_NORMALIZATION PAD RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR '
       'ARG_MAX SPLIT TRANSPOSE DEQUANTIZE').split()
HALF = ('QUANTIZE RELU RELU6 LEAKY_RELU HARD_SWISH LOGISTIC TANH PAD ARG_MAX TRANSPOSE RESHAPE '
        'RESIZE_NEAREST_NEIGHBOR DEQUANTIZE').split()  # with so much: one code to one code, or moves of codes

OPS2 = ('conv_2d_s16 fully_connected_s16 svdf_s8 depthwise_conv_2d_s16 conv_2d_s8w4 softmax_s16 logistic_s16 '
        'tanh_s16 add_s16 mean_s16').split()


def read_lines(path):
    with open(path) as file:
        return [line.split() for line in file if line.strip()]


def write_lines(path, lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.writelines(' '.join(line) + '\n' for line in lines)


def slice_npy(source, target, rows):
    """Rows of an array (its first axis) by number."""
    with open(source, 'rb') as file:
        data = file.read()
    length = struct.unpack('<H', data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode('ascii'))
    body, shape = data[10 + length:], header['shape']
    row = len(body) // shape[0]
    header['shape'] = (len(rows),) + shape[1:]
    text = ('{' + ''.join('%r: %r, ' % item for item in header.items()) + '}').encode('ascii')
    text += b' ' * (-(len(text) + 11) % 64) + b'\n'
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, 'wb') as file:
        file.write(data[:8] + struct.pack('<H', len(text)) + text)
        file.write(b''.join(body[i * row:(i + 1) * row] for i in rows))


def choose_rows(count, keep):
    """Half from the start, where the special values are, half evenly from the rest."""
    if count <= keep:
        return list(range(count))
    first = keep // 2
    rest = keep - first
    return list(range(first)) + [first + i * (count - first) // rest for i in range(rest)]


def fixedpoint(golden, target):
    index = []
    for name, *arrays in read_lines(golden + '/fixedpoint/index.txt'):
        folder = '/fixedpoint/' + name
        fields = [array.split(':') for array in arrays]
        count = int(fields[0][2].split('x')[0])
        size = sum(os.path.getsize('%s%s/%s.npy' % (golden, folder, f[0])) for f in fields)
        rows = choose_rows(count, FIXEDPOINT_BYTES * count // size)
        for field in fields:
            slice_npy('%s%s/%s.npy' % (golden, folder, field[0]),
                      '%s%s/%s.npy' % (target, folder, field[0]), rows)
            field[2] = 'x'.join([str(len(rows))] + field[2].split('x')[1:])
        index.append([name] + [':'.join(field) for field in fields])
    write_lines(target + '/fixedpoint/index.txt', index)


def case_files(folder):
    """What the tests read: parameters, inputs, the expected output, and the operator's .tflite file."""
    return sorted(name for name in os.listdir(folder)
                  if name in ('case.txt', 'model.tflite') or
                  (name.endswith('.npy') and ('_' not in name or '_run' in name)))


def copy_case(golden, target, folder):
    os.makedirs(target + folder, exist_ok=True)
    for name in case_files(golden + folder):
        shutil.copyfile('%s%s/%s' % (golden, folder, name), '%s%s/%s' % (target, folder, name))


def case_size(folder):
    return sum(os.path.getsize(folder + '/' + name) for name in case_files(folder))


def options(folder):
    with open(folder + '/case.txt') as file:
        return {line for line in file if line.startswith('opt.')}


def choose_cases(golden, names, room):
    """Smallest first: those with an option value not seen yet, then any that fit."""
    cases = sorted((case_size(golden + '/ops/' + name), name) for name in names)
    chosen, seen = [], set()
    for wanted in (lambda name: options(golden + '/ops/' + name) - seen, lambda name: True):
        for size, name in cases:
            if size <= room and name not in chosen and wanted(name):
                room -= size
                chosen.append(name)
                seen |= options(golden + '/ops/' + name)
    return chosen


def ops(golden, target):
    groups = {}
    for name, op in read_lines(golden + '/ops/index.txt'):
        if op in OPS:
            kind = (op, name.rsplit('_', 1)[0])  # the type is in the name: conv_2d_s8_03
            groups.setdefault(kind, []).append(name)
    chosen = []
    for (op, _), names in groups.items():
        room = OPS_BYTES // 2 if op in HALF else OPS_BYTES
        chosen += [[name, op] for name in choose_cases(golden, names, room)]
    for name, _ in chosen:
        copy_case(golden, target, '/ops/' + name)
    write_lines(target + '/ops/index.txt', sorted(chosen))


def ops2(golden, target):
    kinds, chosen, room = {}, [], OPS2_BYTES
    for name, op in read_lines(golden + '/ops2/index.txt'):
        size = case_size(golden + '/ops2/' + name)
        kinds.setdefault(name.rsplit('_', 1)[0], []).append((size, name, op))
    for kind in OPS2:
        size, name, op = min(kinds[kind])
        if size <= room:
            room -= size
            chosen.append((name, op))
    for name, _ in chosen:
        copy_case(golden, target, '/ops2/' + name)
    write_lines(target + '/ops2/index.txt', sorted(chosen))


def fakequant(golden, target):
    kinds = {}
    for line in read_lines(golden + '/fakequant/index.txt'):
        kinds.setdefault(line[1], []).append(line)
    chosen = []
    for i, kind in enumerate(sorted(kinds)):
        chosen.append(kinds[kind][5 * i % len(kinds[kind])])  # so that widths vary
    for line in kinds['per_channel']:
        if line not in chosen and len(chosen) < len(kinds) + FAKEQUANT_EXTRA:
            chosen.append(line)
    for line in chosen:
        copy_case(golden, target, '/fakequant/' + line[0])
    write_lines(target + '/fakequant/index.txt', sorted(chosen))


def main():
    golden, target = sys.argv[1:]
    for make in (fixedpoint, ops, ops2, fakequant):
        make(golden, target)


main()
