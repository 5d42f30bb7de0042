#!/usr/bin/env python3
"""Tiny data sets for the networks of mutants.sh, drawn from a fixed seed: make_data.py FOLDER.

    FOLDER/pictures   train/CLASS/*.png, val/CLASS/*.png: colour pictures of several sizes
    FOLDER/list       train.txt, test.txt: the same pictures, one `picture class` a line
    FOLDER/table.csv  the same pictures with attributes, an age and a split
    FOLDER/idx        grey pictures in MNIST's format
    FOLDER/npy2       real values [N, 6, 10, 2]
    FOLDER/npy6       real values [N, 16, 6]
"""
import os
import random
import struct
import sys
import zlib

CLASSES = ["amber", "birch", "cedar"]
SIZES = [(26, 34), (31, 22), (24, 40), (37, 29)]  # height, width
SAMPLES = {"train": 24, "val": 9}


def png(path, height, width, pixels):
    def chunk(tag, body):
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))

    rows = b"".join(b"\0" + pixels[y * width * 3:(y + 1) * width * 3] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
                chunk(b"IEND", b""))


def picture(rng, kind, height, width):
    """Noise over a ramp; its class shifts the balance of the three colours."""
    out = bytearray()
    for y in range(height):
        for x in range(width):
            ramp = [255 * x / (width - 1), 255 * y / (height - 1), 255 * (x + y) / (width + height - 2)]
            for c in range(3):
                level = ramp[(c + kind) % 3] * (0.55 if c == kind else 1.0)
                out.append(max(0, min(255, int(level + rng.uniform(-60, 60)))))
    return bytes(out)


def make_pictures(root, rng):
    table = ["file,split,colour,light,age"]
    lists = {"train": [], "val": []}
    for split, count in SAMPLES.items():
        for i in range(count):
            kind = i % len(CLASSES)
            folder = os.path.join(root, "pictures", split, CLASSES[kind])
            os.makedirs(folder, exist_ok=True)
            height, width = SIZES[rng.randrange(len(SIZES))]
            png(os.path.join(folder, "%02d.png" % i), height, width, picture(rng, kind, height, width))
            name = "%s/%s/%02d.png" % (split, CLASSES[kind], i)
            lists[split].append("../pictures/%s %d" % (name, kind))
            table.append("%s,%s,%s,%s,%d" % (name, split, CLASSES[kind], rng.choice(["dim", "bright"]),
                                             20 + 9 * kind + rng.randrange(9)))
    os.makedirs(os.path.join(root, "list"))
    for split, name in (("train", "train.txt"), ("val", "test.txt")):
        write(os.path.join(root, "list", name), "\n".join(lists[split]) + "\n")
    write(os.path.join(root, "table.csv"), "\n".join(table) + "\n")


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def make_idx(root, rng):
    os.makedirs(root)
    for split, count in (("train", 24), ("t10k", 9)):
        labels = [i % 3 for i in range(count)]
        body = bytearray()
        for kind in labels:
            for y in range(10):
                for x in range(14):
                    level = 90 * kind + (12 * x if kind == 1 else 12 * y)
                    body.append(max(0, min(255, int(level + rng.uniform(-70, 70)))))
        with open(os.path.join(root, split + "-images-idx3-ubyte"), "wb") as f:
            f.write(struct.pack(">IIII", 0x803, count, 10, 14) + body)
        with open(os.path.join(root, split + "-labels-idx1-ubyte"), "wb") as f:
            f.write(struct.pack(">II", 0x801, count) + bytes(labels))


def npy(path, kind, shape, body):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (kind, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode("ascii") + body)


def make_npy(root, rng, shape):
    os.makedirs(root)
    each = 1
    for side in shape:
        each *= side
    for split, count in (("train", 24), ("test", 9)):
        labels = [i % 3 for i in range(count)]
        values = [rng.gauss(5 + 4 * (k % shape[-1]) + 2 * kind, 3) for kind in labels for k in range(each)]
        npy(os.path.join(root, split + "_x.npy"), "<f4", (count,) + shape, struct.pack("<%df" % len(values), *values))
        npy(os.path.join(root, split + "_y.npy"), "|u1", (count,), bytes(labels))


def main():
    root, rng = sys.argv[1], random.Random(2024)
    make_pictures(root, rng)
    make_idx(os.path.join(root, "idx"), rng)
    make_npy(os.path.join(root, "npy2"), rng, (6, 10, 2))
    make_npy(os.path.join(root, "npy6"), rng, (16, 6))


if __name__ == "__main__":
    main()
