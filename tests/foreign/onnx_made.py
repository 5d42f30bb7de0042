"""Writes networks that no exporter is needed for, and data for them: a list without a batch dimension, and volumes.

    python onnx_made.py FOLDER      list.onnx, volume.onnx, numbers.csv: 64 numbers and a value a line;
                                    rows.onnx, an embedding, rows.csv: 6 numbers of 0 to 99 and a value a line
"""

import random
import struct
import sys


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    content = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(content)) + content


def node(op, inputs, output, **attributes):
    message = b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) + field(4, op)
    for name, value in attributes.items():
        is_list = isinstance(value, list)
        values = b"".join(field(8, v) for v in value) if is_list else field(3, value)
        message += field(5, field(1, name) + values + field(20, 7 if is_list else 2))
    return field(1, message)


def constant(name, dims):
    count = 1
    for d in dims:
        count *= d
    values = b"".join(struct.pack("<f", random.uniform(-0.5, 0.5)) for _ in range(count))
    return field(5, b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, values))


def value(number, name, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, shape))))


def write(name, dims, parts):
    graph = b"".join(parts) + value(11, "x", dims) + value(12, "y", [1])
    with open(f"{sys.argv[1]}/{name}.onnx", "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(2, 17)))


random.seed(1)
rows = random.Random(2)
write("list", [64], [
    node("MatMul", ["x", "w"], "hidden"), node("Relu", ["hidden"], "positive"), node("MatMul", ["positive", "v"], "y"),
    constant("w", [64, 8]), constant("v", [8, 1])])
write("volume", [1, 1, 4, 4, 4], [
    node("Conv", ["x", "w"], "planes", pads=[1, 1, 1, 0, 0, 0]), node("Relu", ["planes"], "positive"),
    node("MaxPool", ["positive"], "largest", kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    node("Pad", ["largest", "pads"], "padded", ), node("Flatten", ["padded"], "flat"), node("Gemm", ["flat", "v"], "y"),
    constant("w", [4, 1, 2, 2, 2]), constant("v", [128, 1]),
    field(5, field(1, 10) + field(2, 7) + field(8, "pads") + field(9, struct.pack("<10q", 0, 0, 1, 1, 0, 0, 0, 1, 1, 0)))])
write("rows", [1, 6], [
    node("Gather", ["table", "x"], "picked"), node("Relu", ["picked"], "positive"), node("Flatten", ["positive"], "flat"),
    node("Gemm", ["flat", "v"], "y"), constant("table", [100, 8]), constant("v", [48, 1])])
with open(f"{sys.argv[1]}/rows.csv", "w") as f:
    worth = [rows.uniform(-1, 1) for _ in range(100)]
    f.write(",".join(f"n{i}" for i in range(6)) + ",value\n")
    for _ in range(300):
        row = [rows.randrange(100) for _ in range(6)]
        f.write(",".join(str(v) for v in row) + f",{sum(worth[v] for v in row):.4f}\n")
with open(f"{sys.argv[1]}/numbers.csv", "w") as f:
    f.write(",".join(f"n{i}" for i in range(64)) + ",value\n")
    for _ in range(200):
        row = [random.uniform(-1, 1) for _ in range(64)]
        f.write(",".join(f"{v:.4f}" for v in row) + f",{sum(row[:8]):.4f}\n")
