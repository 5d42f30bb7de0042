"""Operators between DequantizeLinear and QuantizeLinear: one case each, for onnx_quantized.py."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def model(path, nodes, shape, constants, opset=17, quantized=True, scale=0.03, zero=100):
    """Input x is quantized to xr; r is quantized to y. With quantized False the nodes give y."""
    all_constants = {"sx": np.float32(0.02), "zx": np.uint8(120), "sy": np.float32(scale), "zy": np.uint8(zero)} | constants
    nodes = [node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]), node("DequantizeLinear", ["xq", "sx", "zx"], ["xr"])] + nodes
    if quantized:
        nodes += [node("QuantizeLinear", ["r", "sy", "zy"], ["yq"]), node("DequantizeLinear", ["yq", "sy", "zy"], ["y"])]
    graph = helper.make_graph(
        nodes, "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [v if isinstance(v, TensorProto) else numpy_helper.from_array(np.asarray(v), n) for n, v in all_constants.items()])
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]), path)


def open_ends(rng):
    """Networks whose output is not quantized: name: the largest difference, as a share of the largest value, and the
    arguments of model."""
    weights = {"w": rng.integers(-127, 128, (8, 16, 3, 3)).astype(np.int8), "sw": rng.uniform(1e-3, 3e-3, 8).astype(np.float32),
               "zw": np.zeros(8, np.int8), "cb": rng.normal(size=8).astype(np.float32)}
    weight = node("DequantizeLinear", ["w", "sw", "zw"], ["wr"], axis=0)
    rows = weights | {"w": rng.integers(-127, 128, (8, 512)).astype(np.int8)}
    several = {"s16": rng.uniform(.01, .05, 16).astype(np.float32), "z16": rng.integers(0, 256, 16).astype(np.uint8)}
    up = {"w": rng.integers(0, 256, (16, 4, 3, 3)).astype(np.uint8), "sw": np.float32(2e-3), "zw": np.uint8(120)}
    return {
        "Conv": (1e-3, [weight, node("Conv", ["xr", "wr", "cb"], ["y"])], [1, 16, 5, 5], weights),
        "Conv, ReLU": (1e-3, [weight, node("Conv", ["xr", "wr", "cb"], ["c"]), node("Relu", ["c"], ["y"])], [1, 16, 5, 5],
                       weights),
        "Gemm": (1e-3, [weight, node("Gemm", ["xr", "wr", "cb"], ["y"], transB=1)], [1, 512], rows),
        "ConvTranspose": (1e-3, [node("DequantizeLinear", ["w", "sw", "zw"], ["wr"]),
                                 node("ConvTranspose", ["xr", "wr"], ["y"], strides=[2, 2], group=2)], [1, 16, 5, 5], up),
        "Softmax": (2e-2, [node("Softmax", ["xr"], ["y"], axis=1)], [1, 10], {}),
        "Sigmoid": (1e-2, [node("Sigmoid", ["xr"], ["y"])], [1, 10], {}),
        "product of two inputs": (1e-3, [node("Transpose", ["xr"], ["t"], perm=[0, 1, 3, 2]), node("MatMul", ["xr", "t"], ["y"])],
                                  [1, 3, 4, 20], {}),
        "scales along dimension 1": (0, [node("QuantizeLinear", ["xr", "s16", "z16"], ["q"], axis=1),
                                         node("DequantizeLinear", ["q", "s16", "z16"], ["y"], axis=1)], [1, 16, 5, 5], several),
        "GlobalAveragePool": (2e-2, [node("GlobalAveragePool", ["xr"], ["y"])], [1, 16, 5, 5], {}),
    }


def cases(rng):
    """name: (steps by which a code may differ, the arguments of model)."""
    c = 16

    def real(*shape):
        return rng.normal(size=shape).astype(np.float32)

    def codes(*shape):
        return rng.integers(-127, 128, shape).astype(np.int8)

    weights = {"w": codes(8, c, 3, 3), "sw": rng.uniform(1e-3, 3e-3, 8).astype(np.float32), "zw": np.zeros(8, np.int8),
               "cb": real(8)}
    norm = {"g": real(c), "b": real(c), "m": real(c), "v": rng.uniform(.5, 2, c).astype(np.float32)}
    narrow = {n: v[:8] for n, v in norm.items()}
    up = {"w": codes(c, 4, 3, 3), "sw": np.float32(2e-3), "zw": np.int8(0), "cb": real(4)}
    weight = node("DequantizeLinear", ["w", "sw", "zw"], ["wr"], axis=0)
    one_scale = node("DequantizeLinear", ["w", "sw", "zw"], ["wr"])
    conv = [weight, node("Conv", ["xr", "wr", "cb"], ["c"], pads=[1] * 4)]
    picture = [1, c, 5, 5]

    def resize(mode, place, nearest="floor"):
        return ([node("Resize", ["xr", "", "sc"], ["r"], mode=mode, coordinate_transformation_mode=place,
                      nearest_mode=nearest)], picture, {"sc": np.array([1, 1, 2, 2], np.float32)})

    def moved(shape, first, perm, then):
        return ([node("Reshape", ["xr", "s1"], ["t"]), node("Transpose", ["t"], ["u"], perm=perm),
                 node("Reshape", ["u", "s2"], ["r"])], shape, {"s1": np.array(first), "s2": np.array(then)})

    several = {"s16": rng.uniform(.01, .05, c).astype(np.float32), "z16": rng.integers(0, 256, c).astype(np.uint8)}

    def scaled(axis):
        return [node("QuantizeLinear", ["xr", "s16", "z16"], ["qq"], axis=axis),
                node("DequantizeLinear", ["qq", "s16", "z16"], ["qr"], axis=axis)]

    transposed = node("Transpose", ["xr"], ["xt"], perm=[0, 1, 3, 2])
    square = {"w": codes(c, c, 3, 3), "sw": np.float32(2e-3), "zw": np.int8(0)}
    sizes = rng.integers(-7, 8, 8 * c * 9)
    return {
        "batch norm": (0, [node("BatchNormalization", ["xr", "g", "b", "m", "v"], ["r"])], picture, norm),
        "batch norm, ReLU": (0, [node("BatchNormalization", ["xr", "g", "b", "m", "v"], ["t"]), node("Relu", ["t"], ["r"])],
                             picture, norm),
        "convolution, batch norm, ReLU": (
            1, conv + [node("BatchNormalization", ["c", "g", "b", "m", "v"], ["t"]), node("Relu", ["t"], ["r"])], picture,
            weights | narrow),
        "convolution and a constant": (1, conv + [node("Add", ["c", "k"], ["r"])], picture, weights | {"k": real(8, 1, 1)}),
        "MatMul and a constant": (
            1, [node("DequantizeLinear", ["w", "sw", "zw"], ["wr"], axis=1), node("MatMul", ["xr", "wr"], ["c"]),
                node("Add", ["c", "k"], ["r"])], [1, c], weights | {"w": codes(c, 8), "k": real(8)}),
        "a constant minus x": (0, [node("Sub", ["k", "xr"], ["r"])], picture, {"k": real(c, 1, 1)}),
        "(x - mean) / deviation": (0, [node("Sub", ["xr", "k"], ["t"]), node("Div", ["t", "d"], ["r"])], [1, 3, 5, 5],
                                   {"k": real(1, 3, 1, 1), "d": real(3, 1, 1) + 4}),
        "hard swish of parts": (
            0, [node("Add", ["xr", "three"], ["a"]), node("Clip", ["a", "zero", "six"], ["t"]), node("Mul", ["xr", "t"], ["u"]),
                node("Div", ["u", "six"], ["r"])], picture,
            {"three": np.float32(3), "zero": np.float32(0), "six": np.float32(6)}),
        "x sigmoid(x)": (1, [node("Sigmoid", ["xr"], ["a"]), node("Mul", ["xr", "a"], ["r"])], picture, {}),
        "PRelu": (0, [node("PRelu", ["xr", "k"], ["r"])], picture, {"k": real(c, 1, 1)}),
        "PRelu of codes": (0, [node("DequantizeLinear", ["w", "sw", "zw"], ["k"]), node("PRelu", ["xr", "k"], ["r"])],
                           picture, {"w": codes(c, 1, 1), "sw": np.float32(.01), "zw": np.int8(0)}),
        "weights quantized in the graph": (
            1, [node("QuantizeLinear", ["f", "sw", "zw"], ["w"], axis=0), weight, node("Conv", ["xr", "wr", "cb"], ["r"])],
            picture, {n: weights[n] for n in ("sw", "zw", "cb")} | {"f": real(8, c, 3, 3) / 10}),
        "weights quantized in the graph, narrow": (
            1, [node("QuantizeLinear", ["f", "sw", "zw"], ["wq"], axis=0), node("Clip", ["wq", "lo", "hi"], ["w"]), weight,
                node("Conv", ["xr", "wr", "cb"], ["r"])], picture,
            {n: weights[n] for n in ("sw", "zw", "cb")} | {"f": real(8, c, 3, 3), "lo": np.int8(-7), "hi": np.int8(7)}),
        "weights of 4 bits": (
            1, [weight, node("Conv", ["xr", "wr"], ["r"])], picture,
            {"w": helper.make_tensor("w", TensorProto.INT4, [8, c, 3, 3], sizes), "sw": np.float32(.03),
             "zw": helper.make_tensor("zw", TensorProto.INT4, [], [0])}, {"opset": 21}),
        "weights of uint8, several zero points": (
            1, [weight, node("Conv", ["xr", "wr"], ["r"])], picture,
            {"w": rng.integers(10, 240, (8, c, 3, 3)).astype(np.uint8), "sw": weights["sw"],
             "zw": rng.integers(120, 130, 8).astype(np.uint8)}),
        "sum of x and a convolution that is not quantized": (
            1, [one_scale, node("Conv", ["xr", "wr"], ["c"], pads=[1] * 4), node("Add", ["c", "xr"], ["t"]),
                node("Relu", ["t"], ["r"])], picture, square),
        "product of two inputs": (0, [transposed, node("MatMul", ["xr", "xt"], ["r"])], [2, 3, 5, c], {}, {"scale": .1}),
        "product with constant matrices": (
            0, [node("DequantizeLinear", ["w", "sw", "zw"], ["wr"]), node("MatMul", ["xr", "wr"], ["r"])], [2, 3, 5, c],
            {"w": codes(3, c, 8), "sw": np.float32(.01), "zw": np.int8(0)}),
        "a constant matrix before": (
            0, [node("DequantizeLinear", ["w", "sw", "zw"], ["wr"]), node("MatMul", ["wr", "xr"], ["r"])], [2, 3, c, 5],
            {"w": codes(8, c), "sw": np.float32(.01), "zw": np.int8(0)}),
        "scales along dimension 1": (0, scaled(1) + [node("Relu", ["qr"], ["r"])], picture, several),
        "scales along the last dimension": (0, scaled(-1) + [node("Relu", ["qr"], ["r"])], [3, 2, c], several),
        "Gather along dimension 1": (0, [node("Gather", ["xr", "at"], ["r"], axis=1)], picture, {"at": np.array([[3, -1], [0, 3]])}),
        "parts without values": (0, [node("Split", ["xr", "parts"], ["p0", "p1", "p2"], axis=1),
                                     node("Concat", ["p1", "p2", "p0"], ["r"], axis=1)], picture,
                                 {"parts": np.array([4, 0, 12])}),
        "channel shuffle": (0, *moved(picture, [1, 4, 4, 5, 5], [0, 2, 1, 3, 4], picture)),
        "pixel shuffle": (0, *moved([2, c, 5, 3], [2, 4, 2, 2, 5, 3], [0, 1, 4, 2, 5, 3], [2, 4, 10, 6])),
        "attention heads": (0, *moved([1, 10, 24], [1, 10, 3, 2, 4], [2, 0, 3, 1, 4], [3, 2, 10, 4])),
        "Sub": (1, [node("AveragePool", ["xr"], ["p"], kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
                    node("QuantizeLinear", ["p", "sx", "zx"], ["pq"]), node("DequantizeLinear", ["pq", "sx", "zx"], ["pr"]),
                    node("Sub", ["xr", "pr"], ["r"])], picture, {}),
        "average of what is inside": (1, [node("AveragePool", ["xr"], ["r"], kernel_shape=[3, 3], pads=[1] * 4)], picture, {}),
        "nearest, asymmetric": (0, *resize("nearest", "asymmetric")),
        "nearest, half pixel": (0, *resize("nearest", "half_pixel", "round_prefer_floor")),
        "linear, half pixel": (1, *resize("linear", "half_pixel")),
        "linear, PyTorch's half pixel": (1, *resize("linear", "pytorch_half_pixel")),
        "linear, aligned corners": (1, *resize("linear", "align_corners")),
        "ConvTranspose": (1, [one_scale, node("ConvTranspose", ["xr", "wr", "cb"], ["r"], strides=[2, 2], pads=[1] * 4,
                                              output_padding=[1, 1])], picture, up),
        "ConvTranspose, several scales": (
            1, [node("DequantizeLinear", ["w", "sw", "zw"], ["wr"], axis=1),
                node("ConvTranspose", ["xr", "wr", "cb"], ["r"], strides=[2, 2])], picture,
            up | {"sw": rng.uniform(1e-3, 3e-3, 4).astype(np.float32), "zw": np.zeros(4, np.int8)}),
        "ConvTranspose, groups, dilations": (
            1, [one_scale, node("ConvTranspose", ["xr", "wr"], ["r"], strides=[2, 3], group=2, dilations=[2, 1],
                                pads=[1, 0, 0, 2])], picture, up),
        "Softmax along dimension 1": (1, [node("Softmax", ["xr"], ["r"], axis=1)], picture, {}, {"scale": 1 / 256, "zero": 0}),
        "GlobalMaxPool": (0, [node("GlobalMaxPool", ["xr"], ["r"])], picture, {}),
        "ReduceMax": (0, [node("ReduceMax", ["xr"], ["r"], axes=[1, 3], keepdims=0)], picture, {}),
        "Flatten of a mean": (0, [node("GlobalAveragePool", ["xr"], ["p"]), node("Flatten", ["p"], ["r"])], picture, {}),
    }
