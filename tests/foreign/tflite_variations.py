"""Operators of quantized .tflite models, drawn at random: LiteRT's reference kernels beside qat-import and qat-run.

    tflite_variations.py TOOLS [MODELS [SEED]]

For each operator and type, MODELS files of one operator are made, with random shapes, axes, broadcasting, scales and
options, and run on random inputs; those with states carry on from run to run. Every byte of every output must be equal. What the reference does not run is not
counted; what it runs must be imported. Prints a line "ok - ..." or "not ok - ..." for each operator and type.
"""
import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as fb
from ai_edge_litert.interpreter import Interpreter, OpResolverType

TOOLS = sys.argv[1]
MODELS = int(sys.argv[2]) if len(sys.argv) > 2 else 12
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
OPERATORS = {name: code for name, code in vars(fb.BuiltinOperator).items() if name.isupper()}
TYPES = {"int8": fb.TensorType.INT8, "uint8": fb.TensorType.UINT8, "int16": fb.TensorType.INT16,
         "int32": fb.TensorType.INT32, "int64": fb.TensorType.INT64, "bool": fb.TensorType.BOOL,
         "float32": fb.TensorType.FLOAT32}
OPTIMIZED = ("ELU", "SUM")  # the reference has none, or adds 1/2 too much
FIRST = ("PRELU LOGICAL_AND LOGICAL_OR LOGICAL_NOT REDUCE_ANY REDUCE_ALL ELU RELU_N1_TO_1 RELU_0_TO_1 HARD_SWISH "
         "DEPTH_TO_SPACE NEG EMBEDDING_LOOKUP EXPAND_DIMS SQUEEZE RESHAPE").split()  # operators that have one version


class Tensor:
    def __init__(self, type, shape, scale=None, zero=0, data=None, axis=0):
        self.type, self.shape, self.scale, self.zero, self.data, self.axis = type, shape, scale, zero, data, axis
        self.least = self.never = None  # the lowest code that is drawn, and one that is not
        self.role = None  # "variable", "intermediate"


class Draw:
    """Random numbers, and the tensors made of them."""

    def __init__(self, seed, type):
        self.rng, self.type = np.random.default_rng(seed), type

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def flag(self):
        return bool(self.int(0, 1))

    def pick(self, *items):
        return items[self.int(0, len(items) - 1)]

    def scale(self, low=-9, high=1):
        return float(np.float32(2.0 ** self.rng.uniform(low, high)))

    def zero(self):
        return {"int8": self.int(-128, 127), "uint8": self.int(0, 255)}.get(self.type, 0)

    def shape(self, least=1, most=4, side=6):
        return [self.int(1, side) for _ in range(self.int(least, most))]

    def codes(self, shape, scale=None, zero=None):
        return Tensor(self.type, shape, scale or self.scale(), self.zero() if zero is None else zero)

    def values(self, t):
        if t.type == "bool":
            return self.rng.integers(0, 2, t.shape).astype(bool)
        if t.type == "float32":
            return self.rng.uniform(-100, 100, t.shape).astype(np.float32)
        least, most = np.iinfo(t.type).min if t.least is None else t.least, np.iinfo(t.type).max
        if self.int(0, 9) == 0:
            least = most = self.pick(least, most)
        x = self.rng.integers(least, most + 1, t.shape).astype(t.type)
        return x if t.never is None else np.where(x == t.never, x ^ 1, x)

    def constant(self, t):
        t.data = self.values(t)
        return t

    def broadcast(self, shape):
        """A shape that broadcasts to this one."""
        part = shape[self.int(0, len(shape) - 1):] if self.flag() else list(shape)
        return [d if self.int(0, 3) else 1 for d in part]

    def axes(self, rank, most=4):
        chosen = [int(a) for a in self.rng.permutation(rank)[:self.int(1, min(rank, most))]]
        return [a - rank if self.int(0, 3) == 0 else a for a in chosen]


def ints(values, type="int32"):
    values = np.array(values, type)
    return Tensor(type, list(values.shape), data=values)


def plain(type, shape):
    return Tensor(type, shape)


def like(t, shape=None):
    return Tensor(t.type, shape or [1], t.scale, t.zero)


# ---------------------------------------------------------------- the operators: inputs, outputs, options

def options(name, **fields):
    o = getattr(fb, name + "OptionsT")()
    for key, value in fields.items():
        setattr(o, key, value)
    return name + "Options", o


ACTIVATION = (fb.ActivationFunctionType.NONE, fb.ActivationFunctionType.RELU, fb.ActivationFunctionType.RELU6,
              fb.ActivationFunctionType.RELU_N1_TO_1)


def arithmetic(name, **more):
    def make(d):
        shape = d.shape()
        pair = [d.codes(shape), d.codes(d.broadcast(shape))]
        if d.int(0, 2) == 0:
            pair.reverse()
        if d.int(0, 3) == 0:
            d.constant(pair[d.int(0, 1)])
        if pair[0].data is not None and pair[1].data is not None:
            pair[0].data = None
        least = pair[0].scale * pair[1].scale  # so that no shifted product of int16 leaves int32
        return pair, [d.codes([1], max(d.scale(), least) if name == "Mul" else None)], options(name, fusedActivationFunction=d.pick(*ACTIVATION), **more)
    return make


def quotient(d):
    """Scales with which no shift has more bits than an int32, which C++ does not define."""
    shape = d.shape()
    a, b = d.codes(shape), d.codes(d.broadcast(shape))
    b.never = b.zero
    m = 2 ** (d.rng.uniform(14.01, 14.99) if d.type == "int16" else d.rng.uniform(6.01, 12))
    return [a, b], [d.codes([1], a.scale / b.scale / m)], options("Div", fusedActivationFunction=d.pick(*ACTIVATION))


def pair_of(name=None, grid=False, out=None, scale=(-9, 1)):
    def make(d):
        shape = d.shape()
        a = d.codes(shape, d.scale(*scale))
        b = d.codes(d.broadcast(shape), a.scale if grid or d.flag() else d.scale(*scale), a.zero if grid else None)
        y = plain(out, [1]) if out else like(a) if grid else d.codes([1])
        return [a, b], [y], options(name) if name else None
    return make


def one(name=None, scale=None, zero=None, low=-7, high=-2, grid=False, **fields):
    def make(d):
        x = d.codes(d.shape(), d.scale(low, high))
        y = like(x) if grid else d.codes([1], scale and scale[d.type], None if zero is None else zero[d.type])
        return [x], [y], options(name, **fields) if name else None
    return make


def reverse(d):
    x = d.codes(d.shape())
    return [x, ints(d.axes(len(x.shape), 1))], [like(x)], options("ReverseV2")


def gelu(d):
    return one("Gelu", approximate=d.flag())(d)


def positive(make):
    """x with no negative real value."""
    def made(d):
        parts = make(d)
        parts[0][0].zero = {"int8": -128, "int16": 0}[d.type]
        parts[0][0].least = {"int8": -128, "int16": d.int(0, 1)}[d.type]
        return parts
    return made


def leaky(d):
    return one("LeakyRelu", alpha=float(d.rng.uniform(-1 if d.type != "int16" else 0, 1)))(d)


def softmax(d):
    return one("Softmax", {"int8": 1 / 256, "uint8": 1 / 256, "int16": 1 / 32768}, {"int8": -128, "uint8": 0, "int16": 0},
               low=-8, high=0, beta=float(d.rng.uniform(0.2, 2)))(d)


def over_axes(grid):
    def make(d):
        x = d.codes(d.shape())
        axes = d.axes(len(x.shape))
        return [x, ints(axes)], [like(x) if grid else d.codes([1])], options("Reducer", keepDims=d.flag())
    return make


def truths(name, count):
    def make(d):
        shape = d.shape()
        return ([plain("bool", shape if i == 0 else d.broadcast(shape)) for i in range(count)], [plain("bool", [1])],
                options(name) if name else None)
    return make


def truths_over_axes(d):
    shape = d.shape()
    return [plain("bool", shape), ints(d.axes(len(shape)))], [plain("bool", [1])], options("Reducer", keepDims=d.flag())


def select(d):
    shape = d.shape()
    a = d.codes(d.broadcast(shape))
    parts = [plain("bool", d.broadcast(shape)), a, like(a, d.broadcast(shape))]
    parts[d.int(0, 2)].shape = shape
    return parts, [like(a)], options("SelectV2")


def select_rows(d):
    a = d.codes(d.shape())
    return [plain("bool", d.pick(a.shape, a.shape[:1], [])), a, like(a, a.shape)], [like(a)], options("Select")


def cast(d):
    to = d.pick("int8", "uint8", "int16", "int32", "int64", "bool", "float32" if d.type != "int64" else "int8")
    scaled = d.type in ("int8", "uint8", "int16") and d.flag()
    x = d.codes(d.shape()) if scaled else plain(d.type, d.shape())
    return [x], [plain(to, [1])], options("Cast", inDataType=TYPES[d.type], outDataType=TYPES[to])


def position(name):
    def make(d):
        x = d.codes(d.shape())
        to = d.pick("int32", "int64")
        return [x, ints(d.int(-len(x.shape), len(x.shape) - 1))], [plain(to, [1])], options(name, outputType=TYPES[to])
    return make


def top(d):
    x = d.codes(d.shape(side=9))
    return [x, ints(d.int(1, x.shape[-1]))], [like(x), plain("int32", [1])], options("TopKV2")


def weights(d, shape, axis):
    """int8 weights with a scale for each channel, or uint8 with one."""
    if d.type == "uint8":
        return d.constant(d.codes(shape, d.scale(-9, -5)))
    n = shape[axis] if d.flag() else 1
    t = Tensor("int8", shape, [d.scale(-9, -5) for _ in range(n)], [0] * n, axis=axis)
    t.data = d.rng.integers(-127, 128, shape).astype("int8")
    return t


def bias(d, x, w, n):
    scales = np.float32(x.scale) * np.float32(w.scale)
    type = "int64" if d.type == "int16" else "int32"
    count = len(w.scale) if isinstance(w.scale, list) else 1
    scale = [float(s) for s in np.atleast_1d(scales)]
    return Tensor(type, [n], scale, [0] * count, d.rng.integers(-3000, 3000, n).astype(type))


def conv(d):
    c, o, k, l = d.int(1, 8), d.int(1, 9), d.int(1, 3), d.int(1, 3)
    x = d.codes([d.int(1, 2), d.int(3, 9), d.int(3, 9), c])
    w = weights(d, [o, k, l, c], 0)
    dilation = d.pick(1, 1, 2) if min(x.shape[1:3]) > 5 else 1
    return ([x, w, bias(d, x, w, o)], [d.codes([1], d.scale(-6, 2))],
            options("Conv2D", padding=d.int(0, 1), strideW=d.int(1, 2), strideH=d.int(1, 2), dilationWFactor=dilation,
                    dilationHFactor=dilation, fusedActivationFunction=d.pick(*ACTIVATION)))


def depthwise(d):
    c, m, k, l = d.int(1, 8), d.pick(1, 1, 2), d.int(1, 3), d.int(1, 3)
    x = d.codes([d.int(1, 2), d.int(3, 9), d.int(3, 9), c])
    w = weights(d, [1, k, l, c * m], 3)
    stride = d.int(1, 2)
    return ([x, w, bias(d, x, w, c * m)], [d.codes([1], d.scale(-6, 2))],
            options("DepthwiseConv2D", padding=d.int(0, 1), strideW=stride, strideH=stride, depthMultiplier=m,
                    dilationWFactor=1, dilationHFactor=1, fusedActivationFunction=d.pick(*ACTIVATION)))


def grouped(d):
    g, c, o, k, l = d.int(2, 3), d.int(1, 4), d.int(1, 3), d.int(1, 3), d.int(1, 3)
    x = d.codes([d.int(1, 2), d.int(3, 9), d.int(3, 9), c * g])
    w = weights(d, [o * g, k, l, c], 0)
    return ([x, w, bias(d, x, w, o * g)], [d.codes([1], d.scale(-6, 2))],
            options("Conv2D", padding=d.int(0, 1), strideW=d.int(1, 2), strideH=d.int(1, 2), dilationWFactor=1, dilationHFactor=1,
                    fusedActivationFunction=d.pick(*ACTIVATION)))


def transposed(d):
    c, o, k, l = d.int(1, 6), d.int(1, 6), d.int(1, 4), d.int(1, 4)
    x = d.codes([d.int(1, 2), d.int(1, 6), d.int(1, 6), c])
    w = weights(d, [o, k, l, c], 0)
    padding, strides = d.int(0, 1), [d.int(1, 3), d.int(1, 3)]
    size = [n * s if padding == 0 else (n - 1) * s + m for n, s, m in zip(x.shape[1:3], strides, (k, l))]
    more = [bias(d, x, w, o)] if d.flag() else []
    return ([ints([x.shape[0]] + size + [o]), w, x] + more, [d.codes([1], d.scale(-6, 2))],
            options("TransposeConv", padding=padding, strideH=strides[0], strideW=strides[1], fusedActivationFunction=d.pick(*ACTIVATION)))


def connected(d):
    n, o = d.int(1, 30), d.int(1, 12)
    x = d.codes(d.shape(1, 3) + [n])
    w = weights(d, [o, n], 0)
    if isinstance(w.scale, list) and d.type == "int16":
        w.scale, w.zero = w.scale[:1], [0]
    return ([x, w, bias(d, x, w, o)], [d.codes([1], d.scale(-6, 2))],
            options("FullyConnected", keepNumDims=d.flag(), fusedActivationFunction=d.pick(*ACTIVATION)))


def matmul(d):
    m, k, n, left, right = d.int(1, 6), d.int(1, 20), d.int(1, 6), d.flag(), d.flag()
    batch = d.shape(1, 2)
    a = d.codes(batch + ([k, m] if left else [m, k]), d.scale(-9, -4))
    b = d.codes(d.broadcast(batch)[-len(batch):] + ([n, k] if right else [k, n]), d.scale(-9, -4))
    return [a, b], [d.codes([1])], options("BatchMatMul", adjX=left, adjY=right)


def short_bias(make):
    """int32 biases of int16 codes, as a converter option has it; the operator says so."""
    def made(d):
        inputs, outputs, table = make(d)
        if inputs[-1].type == "int64":
            inputs[-1].type, inputs[-1].data = "int32", inputs[-1].data.astype("int32")
            if hasattr(table[1], "quantizedBiasType"):
                table[1].quantizedBiasType = TYPES["int32"]
        return inputs, outputs, table
    return made


def dead_channels(make):
    """Channels with scales next to nothing, of zeros or not, and with the largest biases that there are."""
    def made(d):
        inputs, outputs, table = make(d)
        while len(inputs) < 3 or inputs[-1].type not in ("int32", "int64"):
            inputs, outputs, table = make(d)
        w, b = inputs[1], inputs[-1]
        w.scale = w.scale if len(w.scale) == w.shape[w.axis] or table[0] == "FullyConnectedOptions" else w.scale * w.shape[w.axis]
        w.zero = [0] * len(w.scale)
        most = np.iinfo(b.data.dtype)
        for c in range(len(w.scale)):
            if d.flag():
                w.scale[c] = float(np.float32(10 ** d.rng.uniform(-44, -34)))
                if d.flag():
                    np.moveaxis(w.data, w.axis, 0)[c if len(w.scale) > 1 else slice(None)] = 0
                b.data[c if len(w.scale) > 1 else slice(None)] = d.pick(most.min, most.max, 0, 1000)
        b.scale, b.zero = [float(np.float32(s) * np.float32(1e-3)) for s in w.scale], [0] * len(w.scale)
        return inputs, outputs, table
    return made


def tiny_input(make):
    """An input with a scale down to the smallest that float32 has."""
    def made(d):
        parts = make(d)
        parts[0][0].scale = float(np.float32(10 ** d.rng.uniform(-44, -34)))
        return parts
    return made


def grown_softmax(d):
    """8 bits in, 16 out."""
    x = d.codes(d.shape(), d.scale(-8, 0))
    return [x], [Tensor("int16", [1], 1 / 65536, -32768)], options("Softmax", beta=float(d.rng.uniform(0.2, 2)))


def embedding(d):
    w = d.codes([d.int(2, 9)] + d.shape(1, 2))
    return [ints([d.int(0, w.shape[0] - 1) for _ in range(d.int(1, 4))]), w], [like(w)], None


def quantize(d):
    to = d.pick("int8", "uint8", "int16", "int32")
    y = Tensor(to, [1], d.scale(), {"int8": d.int(-128, 127), "uint8": d.int(0, 255)}.get(to, 0))
    return [d.codes(d.shape())], [y], options("Quantize")


def broadcast_to(d):
    shape = d.shape()
    x = d.codes(d.broadcast(shape))
    return [x, ints(shape)], [like(x)], options("BroadcastTo")


def gather_rows(d):
    x = d.codes(d.shape(2, 3))
    rows = d.rng.integers(0, x.shape[1], [x.shape[0], d.int(1, 3)])
    return [x, ints(rows)], [like(x)], options("Gather", axis=1, batchDims=1)


def expand(d):
    x = d.codes(d.shape(0, 3))
    return [x, ints(d.int(-len(x.shape) - 1, len(x.shape)))], [like(x)], options("ExpandDims")


def squeeze(d):
    x = d.codes([1] + d.shape(1, 3))
    return [x], [like(x)], options("Squeeze", squeezeDims=d.pick([0], []))


def reshape(d):
    x = d.codes(d.shape())
    return [x, ints([-1, x.shape[-1]])], [like(x)], options("Reshape", newShape=[1, 1])


def pool(d):
    k, l = d.int(1, 3), d.int(1, 3)
    x = d.codes([d.int(1, 2), d.int(3, 9), d.int(3, 9), d.int(1, 8)])
    return [x], [like(x)], options("Pool2D", padding=d.int(0, 1), strideW=d.int(1, 3), strideH=d.int(1, 3), filterWidth=k,
                                   filterHeight=l, fusedActivationFunction=d.pick(*ACTIVATION))


def prelu(d):
    x = d.codes([1] + d.shape(2, 3))
    return [x, d.constant(d.codes(d.broadcast(x.shape[1:])))], [d.codes([1])], None


def pad(name, with_value):
    def make(d):
        x = d.codes(d.shape())
        amounts = ints([[d.int(0, 2), d.int(0, 2)] for _ in x.shape])
        value = [d.constant(like(x, []))] if with_value else []
        return [x, amounts] + value, [like(x)], options(name)
    return make


def transpose(d):
    x = d.codes(d.shape())
    return [x, ints([int(a) for a in d.rng.permutation(len(x.shape))])], [like(x)], options("Transpose")


def concat(d):
    x = d.codes(d.shape())
    axis = d.int(0, len(x.shape) - 1)
    parts = [x] + [like(x, [d.int(1, 4) if i == axis else n for i, n in enumerate(x.shape)]) for _ in range(d.int(1, 3))]
    return parts, [like(x)], options("Concatenation", axis=d.pick(axis, axis - len(x.shape)),
                                     fusedActivationFunction=ACTIVATION[0])


def slices(d):
    x = d.codes(d.shape())
    begin = [d.int(-n, n - 1) for n in x.shape]
    end = [b % n + 1 + d.int(0, n - 1 - b % n) for b, n in zip(begin, x.shape)]
    return ([x, ints(begin), ints(end), ints([d.int(1, 2) for _ in x.shape])], [like(x)],
            options("StridedSlice", beginMask=d.int(0, 15), endMask=d.int(0, 15), shrinkAxisMask=d.pick(0, 0, 1)))


def resize(name):
    def make(d):
        x = d.codes([d.int(1, 2), d.int(1, 6), d.int(1, 6), d.int(1, 4)])
        how = d.int(0, 2)
        return ([x, ints([d.int(1, 12), d.int(1, 12)])], [like(x)],
                options(name, alignCorners=how == 1, halfPixelCenters=how == 2))
    return make


def gather(d):
    x = d.codes(d.shape())
    axis = d.int(0, len(x.shape) - 1)
    return ([x, ints([d.int(0, x.shape[axis] - 1) for _ in range(d.int(1, 5))])], [like(x)],
            options("Gather", axis=d.pick(axis, axis - len(x.shape))))


def gather_nd(d):
    x = d.codes(d.shape())
    depth, rows = d.int(1, len(x.shape)), d.shape(0, 2, 4)
    at = [d.rng.integers(0, n, rows) for n in x.shape[:depth]]
    return [x, ints(np.stack(at, -1), d.pick("int32", "int64"))], [like(x)], options("GatherNd")


def tile(d):
    x = d.codes(d.shape())
    return [x, ints([d.int(1, 3) for _ in x.shape])], [like(x)], options("Tile")


def pack(d):
    x = d.codes(d.shape(1, 3))
    n = d.int(1, 4)
    return ([x] + [like(x, x.shape) for _ in range(n - 1)], [like(x)],
            options("Pack", valuesCount=n, axis=d.int(0, len(x.shape))))


def unpack(d):
    x = d.codes(d.shape(2, 4))
    axis = d.int(0, len(x.shape) - 1)
    return [x], [like(x) for _ in range(x.shape[axis])], options("Unpack", num=x.shape[axis], axis=axis)


def split(d):
    x = d.codes(d.shape())
    axis, n = d.int(0, len(x.shape) - 1), d.int(1, 3)
    x.shape[axis] *= n
    return [ints(axis), x], [like(x) for _ in range(n)], options("Split", numSplits=n)


def split_v(d):
    x = d.codes(d.shape())
    axis, sizes = d.int(0, len(x.shape) - 1), [d.int(1, 4) for _ in range(d.int(1, 4))]
    x.shape[axis] = sum(sizes)
    return [x, ints(sizes), ints(axis)], [like(x) for _ in sizes], options("SplitV", numSplits=len(sizes))


def to_batch(d):
    block = [d.int(1, 3), d.int(1, 3)]
    before = [d.int(0, 2), d.int(0, 2)]
    sides = [b * d.int(1, 3) for b in block]
    x = d.codes([d.int(1, 2)] + [s - p if s > p else s for s, p in zip(sides, before)] + [d.int(1, 4)])
    pads = [[p, 0] if s > p else [0, 0] for s, p in zip(sides, before)]
    return [x, ints(block), ints(pads)], [like(x)], options("SpaceToBatchND")


def from_batch(d):
    block = [d.int(1, 3), d.int(1, 3)]
    x = d.codes([d.int(1, 2) * block[0] * block[1], d.int(2, 4), d.int(2, 4), d.int(1, 4)])
    return [x, ints(block), ints([[d.int(0, 1), 0], [0, d.int(0, 1)]])], [like(x)], options("BatchToSpaceND")


def depth(name, to_depth):
    def make(d):
        b = d.int(1, 3)
        grow, channels = (b, 1) if to_depth else (1, b * b)
        x = d.codes([d.int(1, 2), d.int(1, 3) * grow, d.int(1, 3) * grow, d.int(1, 4) * channels])
        return [x], [like(x)], options(name, blockSize=b)
    return make


def mirror(d):
    mode = d.int(0, 1)
    x = d.codes([n + 1 for n in d.shape()])
    most = [n - 1 + mode for n in x.shape]
    return [x, ints([[d.int(0, m), d.int(0, m)] for m in most])], [like(x)], options("MirrorPad", mode=mode)


def cut(d):
    """Its output's shape must be in the file."""
    x = d.codes(d.shape())
    begin = [d.int(0, n - 1) for n in x.shape]
    size = [d.int(1, n - b) for n, b in zip(x.shape, begin)]
    stated = [-1 if b + s == n else s for n, b, s in zip(x.shape, begin, size)]
    return [x, ints(begin), ints(stated)], [like(x, size)], options("Slice")


def variable(t):
    t.role = "variable"
    return t


def dense(d, shape):
    """int8 weights with one scale."""
    t = Tensor("int8", shape, d.scale(-9, -5))
    t.data = d.rng.integers(-127, 128, shape).astype("int8")
    return t


def biases(d, n, scale):
    return Tensor("int32", [n], scale, 0, d.rng.integers(-3000, 3000, n).astype("int32"))


def svdf(d):
    n, units, rank, batch, memory = d.int(1, 20), d.int(1, 8), d.int(1, 3), d.int(1, 3), d.int(1, 9)
    x, w = d.codes([batch, n], d.scale(-8, -3)), dense(d, [units * rank, n])
    most = 65000 // (rank * memory)  # so that no sum of products of int16 leaves int32
    time = Tensor("int16", [units * rank, memory], d.scale(-17, -12))
    time.data = d.rng.integers(-min(most, 32767), min(most, 32767), time.shape).astype("int16")
    state = variable(Tensor("int16", [batch, units * rank * memory], d.scale(-14, -10)))
    return ([x, w, time, biases(d, units, state.scale * time.scale) if d.flag() else None, state], [d.codes([1], d.scale(-7, -3))],
            options("SVDF", rank=rank, fusedActivationFunction=fb.ActivationFunctionType.RELU))


def time_major(d):
    inputs, outputs, table = lstm(d)
    x = inputs[0]
    x.shape = [x.shape[1], x.shape[0], x.shape[2]]
    table[1].timeMajor = True
    return inputs, outputs, table


def lstm(d):
    n, units, batch, steps = d.int(1, 16), d.int(1, 12), d.int(1, 3), d.int(1, 6)
    x, y = d.codes([batch, steps, n], d.scale(-8, -4)), d.codes([1], d.scale(-8, -6))
    to = [dense(d, [units, n]) for _ in range(4)] + [dense(d, [units, units]) for _ in range(4)]
    cell = Tensor("int16", [batch, units], 2.0 ** d.int(-15, -11))
    parts = [x] + to + [None] * 3 + [biases(d, units, x.scale * w.scale) for w in to[:4]] + [None] * 2
    parts += [variable(like(y, [batch, units])), variable(cell)] + [None] * 4
    for kind in ["int16"] * 4 + ["int8"]:
        parts.append(like(y) if kind == "int8" else Tensor(kind, [1], 2.0 ** -12))
        parts[-1].role = "intermediate"
    return parts, [y], options("UnidirectionalSequenceLSTM", fusedActivationFunction=fb.ActivationFunctionType.TANH,
                               cellClip=d.pick(0.0, 0.0, float(d.rng.uniform(0.1, 4))), timeMajor=False)


S8, S8_U8, S8_S16, ALL = ["int8"], ["int8", "uint8"], ["int8", "int16"], ["int8", "uint8", "int16"]
TINY = "RELU LEAKY_RELU ABS PAD RESIZE_BILINEAR MEAN MUL MAXIMUM STRIDED_SLICE GREATER EXP BATCH_MATMUL".split()  # run with any scale
UNIT = {"int8": 1 / 256, "uint8": 1 / 256, "int16": 1 / 32768}
LOWEST = {"int8": -128, "uint8": 0, "int16": 0}
CASES = {  # types, what makes it
    "ADD": (ALL, arithmetic("Add", potScaleInt16=False)), "SUB": (ALL, arithmetic("Sub", potScaleInt16=False)),
    "MUL": (ALL, arithmetic("Mul")), "DIV": (ALL, quotient), "REVERSE_V2": (ALL, reverse),
    "MAXIMUM": (ALL, pair_of("MaximumMinimum", True)),
    "MINIMUM": (ALL, pair_of("MaximumMinimum", True)), "PRELU": (S8_U8, prelu),
    "SQUARED_DIFFERENCE": (S8, pair_of("SquaredDifference", scale=(-6, -4))), "BATCH_MATMUL": (S8_S16, matmul),
    "EQUAL": (S8_U8, pair_of("Equal", out="bool", scale=(-9, -0.01))),
    "NOT_EQUAL": (S8_U8, pair_of("NotEqual", out="bool", scale=(-9, -0.01))),
    "GREATER": (S8_U8, pair_of("Greater", out="bool", scale=(-9, -0.01))),
    "GREATER_EQUAL": (S8_U8, pair_of("GreaterEqual", out="bool", scale=(-9, -0.01))),
    "LESS": (S8_U8, pair_of("Less", out="bool", scale=(-9, -0.01))),
    "LESS_EQUAL": (S8_U8, pair_of("LessEqual", out="bool", scale=(-9, -0.01))),
    "LOGICAL_AND": (["bool"], truths("LogicalAnd", 2)), "LOGICAL_OR": (["bool"], truths("LogicalOr", 2)),
    "LOGICAL_NOT": (["bool"], truths("LogicalNot", 1)), "SELECT_V2": (ALL, select), "SELECT": (ALL, select_rows),
    "SUM": (ALL, over_axes(False)), "MEAN": (S8_S16, over_axes(False)), "REDUCE_MAX": (ALL, over_axes(True)),
    "REDUCE_MIN": (ALL, over_axes(True)), "REDUCE_ANY": (["bool"], truths_over_axes),
    "REDUCE_ALL": (["bool"], truths_over_axes), "CAST": (list(TYPES)[:6], cast),
    "ARG_MAX": (S8_U8, position("ArgMax")), "ARG_MIN": (S8_U8, position("ArgMin")), "TOPK_V2": (S8_U8, top),
    "CONV_2D": (ALL, conv), "DEPTHWISE_CONV_2D": (ALL, depthwise), "FULLY_CONNECTED": (ALL, connected),
    "AVERAGE_POOL_2D": (ALL, pool), "MAX_POOL_2D": (ALL, pool),
    "ABS": (S8_S16, one("Abs")), "ELU": (S8, one()), "EXP": (S8_S16, one("Exp")), "GELU": (ALL, gelu),
    "LOG": (S8_S16, positive(one())), "RSQRT": (S8_S16, positive(one())), "SQRT": (S8, positive(one())),
    "RELU": (ALL, one()), "RELU6": (ALL, one()), "RELU_N1_TO_1": (S8_U8, one()), "RELU_0_TO_1": (S8_U8, one()),
    "HARD_SWISH": (S8_U8, one("HardSwish", low=-5, high=-3)), "LEAKY_RELU": (ALL, leaky),
    "LOGISTIC": (ALL, one(None, UNIT, LOWEST)), "TANH": (ALL, one(None, {k: 2 * v if k != "int16" else v for k, v in UNIT.items()}, {"int8": 0, "uint8": 128, "int16": 0})),
    "SOFTMAX": (ALL, softmax), "LOG_SOFTMAX": (S8, one("LogSoftmax", {"int8": 1 / 16}, {"int8": 127})),
    "L2_NORMALIZATION": (S8_U8, one("L2Norm", {"int8": 1 / 128, "uint8": 1 / 128}, {"int8": 0, "uint8": 128})),
    "PAD": (ALL, pad("Pad", False)), "PADV2": (ALL, pad("PadV2", True)), "TRANSPOSE": (ALL, transpose),
    "CONCATENATION": (ALL, concat), "STRIDED_SLICE": (ALL, slices), "SPLIT": (ALL, split), "SPLIT_V": (S8_S16, split_v),
    "RESIZE_BILINEAR": (ALL, resize("ResizeBilinear")), "RESIZE_NEAREST_NEIGHBOR": (ALL, resize("ResizeNearestNeighbor")),
    "GATHER": (ALL, gather), "GATHER_ND": (ALL, gather_nd), "TILE": (S8_S16, tile), "PACK": (ALL, pack), "UNPACK": (ALL, unpack),
    "SPACE_TO_BATCH_ND": (S8_U8, to_batch), "BATCH_TO_SPACE_ND": (S8_U8, from_batch),
    "SPACE_TO_DEPTH": (S8_U8, depth("SpaceToDepth", True)), "DEPTH_TO_SPACE": (S8_U8, depth("DepthToSpace", False)),
    "NEG": (S8, one("Neg")), "EMBEDDING_LOOKUP": (ALL, embedding), "QUANTIZE": (ALL, quantize), "BROADCAST_TO": (ALL, broadcast_to),
    "TRANSPOSE_CONV": (ALL, transposed), "EXPAND_DIMS": (ALL, expand), "SQUEEZE": (ALL, squeeze), "RESHAPE": (ALL, reshape),
    "MIRROR_PAD": (ALL, mirror), "SLICE": (ALL, cut), "SVDF": (S8, svdf), "UNIDIRECTIONAL_SEQUENCE_LSTM": (S8, lstm),
}
WIDE, KERNELS = ["int16"], {"CONV_2D": conv, "DEPTHWISE_CONV_2D": depthwise, "FULLY_CONNECTED": connected, "TRANSPOSE_CONV": transposed}
FORMS = {  # of operators above, with a word behind the name
    "CONV_2D groups": (ALL, grouped), "GATHER rows": (ALL, gather_rows), "SOFTMAX grown": (S8_U8, grown_softmax),
    "UNIDIRECTIONAL_SEQUENCE_LSTM time": (S8, time_major), "SPACE_TO_BATCH_ND wide": (WIDE, to_batch), "BATCH_TO_SPACE_ND wide": (WIDE, from_batch),
    **{name + " short": (WIDE, short_bias(make)) for name, make in KERNELS.items() if name != "DEPTHWISE_CONV_2D"},
    **{name + " dead": (S8_S16, dead_channels(make)) for name, make in KERNELS.items()},
    **{name + " tiny": (types, tiny_input(make)) for name, (types, make) in CASES.items() if name in TINY},
}
CASES.update(FORMS)


# ---------------------------------------------------------------- files and runs

def is_given(t):
    """Is it one of the model's inputs?"""
    return t is not None and t.data is None and not t.role


def write(path, name, inputs, outputs, table):
    """A model of one operator; its inputs are those without data. None: the operator has no such input."""
    name = name.split()[0]
    code = OPERATORS[name]
    m, graph, op = fb.ModelT(), fb.SubGraphT(), fb.OperatorT()
    m.version, m.buffers = 3, [fb.BufferT()]
    graph.tensors = []
    at = {id(t): i for i, t in enumerate(t for t in inputs + outputs if t is not None)}
    for i, t in enumerate(t for t in inputs + outputs if t is not None):
        tensor, quantization = fb.TensorT(), fb.QuantizationParametersT()
        tensor.name, tensor.type, tensor.shape, tensor.buffer = "t%d" % i, TYPES[t.type], t.shape, 0
        if t.data is not None:
            buffer = fb.BufferT()
            buffer.data = list(np.asarray(t.data).tobytes())
            tensor.buffer = len(m.buffers)
            m.buffers.append(buffer)
        if t.scale is not None:
            quantization.scale = t.scale if isinstance(t.scale, list) else [t.scale]
            quantization.zeroPoint = t.zero if isinstance(t.zero, list) else [t.zero]
            quantization.quantizedDimension = t.axis
            tensor.quantization = quantization
        tensor.isVariable = t.role == "variable"
        graph.tensors.append(tensor)
    op.inputs = [-1 if t is None else at[id(t)] for t in inputs if t is None or t.role != "intermediate"]
    op.outputs = [at[id(t)] for t in outputs]
    op.intermediates = [at[id(t)] for t in inputs if t is not None and t.role == "intermediate"]
    if table:
        op.builtinOptionsType = getattr(fb.BuiltinOptions, table[0])
        op.builtinOptions = table[1]
    graph.operators = [op]
    graph.inputs, graph.outputs = [at[id(t)] for t in inputs if is_given(t)], op.outputs
    operator = fb.OperatorCodeT()
    operator.builtinCode, operator.deprecatedBuiltinCode = code, min(code, 127)
    operator.version = 1 if name in FIRST else 4 if name == "FULLY_CONNECTED" else 2
    m.operatorCodes, m.subgraphs = [operator], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(m.Pack(builder), b"TFL3")
    with open(path, "wb") as file:
        file.write(builder.Output())


def reference(path, name, arrays):
    """The outputs for each of the runs; None: LiteRT does not run it."""
    how = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if name in OPTIMIZED else OpResolverType.BUILTIN_REF
    try:
        i = Interpreter(model_path=path, experimental_op_resolver_type=how)
        i.allocate_tensors()
        answers = []
        for run in arrays:
            for detail, x in zip(i.get_input_details(), run):
                i.set_tensor(detail["index"], x)
            i.invoke()
            answers.append([i.get_tensor(detail["index"]) for detail in i.get_output_details()])
        return answers
    except (RuntimeError, ValueError) as error:
        global why
        why = str(error).split("\n")[0]
        return None


why = ""


def imported(path, arrays, outputs):
    """The same of qat-import and qat-run, or a sentence."""
    made = subprocess.run([TOOLS + "/qat-import", path, "m.qm"], capture_output=True, text=True)
    if made.returncode:
        return made.stderr.strip()
    command = [TOOLS + "/qat-run", "m.qm", "--steps"]
    for k in range(len(arrays[0])):
        np.save("x%d.npy" % k, np.stack([run[k] for run in arrays]))
        command += ["--input", "x%d.npy" % k]
    for k in range(outputs):
        command += ["--output", "y%d.npy" % k]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        return ran.stderr.strip()
    together = [np.load("y%d.npy" % k) for k in range(outputs)]
    return [[y[run] for y in together] for run in range(len(arrays))]


def compare(name, type):
    models = differing = 0
    first = ""
    for number in range(MODELS):
        d = Draw([SEED, number, OPERATORS[name.split()[0]], list(TYPES).index(type)], type)
        inputs, outputs, table = CASES[name][1](d)
        path = "%s_%s_%d.tflite" % (name.replace(" ", "_"), type, number)
        write(path, name, inputs, outputs, table)
        has_state = any(t is not None and t.role for t in inputs)
        arrays = [[d.values(t) for t in inputs if is_given(t)] for _ in range(6 if has_state else 2)]
        want = reference(path, name, arrays)
        if want is None:
            continue
        models += 1
        got = imported(path, arrays, len(outputs))
        bad = got if isinstance(got, str) else "" if all(
            np.asarray(a).tobytes() == np.asarray(b).tobytes() for w, g in zip(want, got) for a, b in zip(w, g)
        ) else "another answer"
        if bad:
            differing += 1
            first = first or "; the first, %s: %s" % (path, bad)
        else:
            os.remove(path)
    good = models > 0 and not differing
    print("%s - %s %s: %d models, %d differ or are refused%s" % ("ok" if good else "not ok", name, type, models, differing,
                                                                first or ("" if models else ": " + why)), flush=True)
    return good


chosen = sys.argv[4:] or CASES
results = [compare(name, type) for name in chosen for type in CASES[name][0]]
print("%d of %d operators, forms and types are equal" % (sum(results), len(results)))
sys.exit(0 if all(results) else 1)
