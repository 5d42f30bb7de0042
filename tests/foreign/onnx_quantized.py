"""Quantized ONNX graphs through qat-import and qat-run, beside ONNX Runtime.

    onnx_quantized.py TOOLS [NAME...]

Small networks with random weights and, by name, networks of torchvision are quantized by
onnxruntime's quantize_static: QDQ and QOperator, uint8 and int8, per tensor and per channel. Also
single operators with random scales. Prints for each how many bytes of the answers differ.
"""
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases"))
import onnx_qdq  # noqa: E402

ort.set_default_logger_severity(3)
failed = False


def say(good, text):
    global failed
    failed = failed or not good
    print(("ok - " if good else "not ok - ") + text, flush=True)


def channels_last(x):
    return np.ascontiguousarray(np.transpose(x, (0, 2, 3, 1))) if x.ndim == 4 else x


def in_order(x, rank, dims):
    """An answer of qat-run in the file's order."""
    return np.transpose(x, (0, 3, 1, 2)) if rank == 4 else x.reshape(dims)


def theirs(path, inputs, level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {i.name: x for i, x in zip(session.get_inputs(), inputs)})


def ours(tools, folder, path, inputs, count):
    """The answers, or the sentence of a refusal."""
    qm = os.path.join(folder, "m.qm")
    made = subprocess.run([tools + "/qat-import", path, qm], capture_output=True, text=True)
    if made.returncode:
        return made.stderr.strip()
    arguments = [tools + "/qat-run", qm]
    for i, x in enumerate(inputs):
        np.save(f"{folder}/in{i}.npy", channels_last(x))
        arguments += ["--input", f"{folder}/in{i}.npy"]
    for i in range(count):
        arguments += ["--output", f"{folder}/out{i}.npy"]
    run = subprocess.run(arguments, capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    return [np.load(f"{folder}/out{i}.npy") for i in range(count)]


def steps_of(path):
    """The scale of each output: that of its DequantizeLinear, or 1 of codes."""
    graph = onnx.load(path).graph
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    scales = {n.output[0]: float(constants[n.input[1]].item()) for n in graph.node
              if n.op_type == "DequantizeLinear" and constants.get(n.input[1], np.zeros(2)).size == 1}
    return [scales.get(output.name, 1) for output in graph.output]


def compare(tools, folder, path, samples):
    """How many values differ, of how many, and the largest difference in steps of the answers."""
    differing = values = largest = 0
    steps = steps_of(path)
    for inputs in samples:
        want = theirs(path, inputs)
        got = ours(tools, folder, path, inputs, len(want))
        if isinstance(got, str):
            return got
        for w, g, step in zip(want, got, steps):
            g = in_order(g, w.ndim, w.shape)
            differing += int((w != g).sum())
            values += w.size
            largest = max(largest, round(float(np.abs(w.astype(float) - g.astype(float)).max()) / step))
    return differing, values, largest


# ---------------------------------------------------------------- networks


class Residual(nn.Module):
    """Convolutions of all kinds, sums, pools, a linear layer."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 16, 3, padding=1)
        self.b = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.c = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.d = nn.Conv2d(16, 24, 3, stride=2, dilation=2, padding=2)
        self.e = nn.Conv2d(24, 24, 1)
        self.f = nn.Linear(24, 10)

    def forward(self, x):
        x = torch.relu(self.a(x))
        x = torch.relu(x + self.b(x))
        x = nn.functional.relu6(self.c(x))
        x = nn.functional.max_pool2d(x, 3, 2, 1)
        x = torch.relu(self.d(x))
        x = torch.relu(x + self.e(x))
        return self.f(torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1))


class Gates(nn.Module):
    """Products, functions, concatenation, averages, flattened pictures."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 1)
        self.c = nn.Conv2d(8, 8, 1)
        self.d = nn.Linear(16 * 25, 12)
        self.e = nn.Linear(12, 5)

    def forward(self, x):
        x = nn.functional.leaky_relu(self.a(x), 0.1)
        gate = torch.sigmoid(self.b(nn.functional.adaptive_avg_pool2d(x, 1)))
        x = x * gate
        y = nn.functional.hardswish(self.c(x))
        x = torch.cat([x, y], 1)
        x = nn.functional.avg_pool2d(x, 2)
        x = nn.functional.avg_pool2d(x, 3, 2, 1)
        return self.e(torch.tanh(self.d(torch.flatten(x, 1))))


class Reader(CalibrationDataReader):
    def __init__(self, shape, count):
        rng = np.random.default_rng(1)
        self.items = iter([{"x": rng.normal(size=shape).astype(np.float32)} for _ in range(count)])

    def get_next(self):
        return next(self.items, None)


def export(net, shape, path):
    net.eval()
    torch.onnx.export(net, torch.zeros(shape), path, input_names=["x"], output_names=["y"],
                      opset_version=17, dynamo=False)


def quantized(source, path, shape, form, activations, weights, each, reduced=False, count=4):
    quantize_static(source, path, Reader(shape, count), quant_format=form, per_channel=each,
                    activation_type=activations, weight_type=weights, reduce_range=reduced)


def own_differences(path, samples):
    """How many answers of ONNX Runtime depend on its optimizations, which choose what is computed in float32."""
    plain = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return sum(int((a != b).sum()) for inputs in samples for a, b in zip(theirs(path, inputs), theirs(path, inputs, plain)))


def networks(tools, folder):
    torch.manual_seed(0)
    rng = np.random.default_rng(2)
    for net, shape in ((Residual(), (1, 3, 16, 16)), (Gates(), (1, 3, 18, 18))):
        name = type(net).__name__
        source, path = f"{folder}/{name}.onnx", f"{folder}/q.onnx"
        export(net, shape, source)
        samples = [[rng.normal(size=shape).astype(np.float32)] for _ in range(8)]
        kinds = itertools.product((QuantFormat.QDQ, QuantFormat.QOperator),
                                  (QuantType.QUInt8, QuantType.QInt8),
                                  (QuantType.QUInt8, QuantType.QInt8), (False, True))
        for form, activations, weights, each in kinds:
            what = f"{name} {form.name} {activations.name} {weights.name}{' per channel' if each else ''}"
            try:
                quantized(source, path, shape, form, activations, weights, each)
                theirs(path, samples[0])
            except Exception as e:
                print("skipped", what, str(e)[:100].replace("\n", " "))
                continue
            result = compare(tools, folder, path, samples)
            if isinstance(result, str):
                say("differ from their zero points" in result and each and weights == QuantType.QUInt8, f"{what}: {result}")
            else:  # ONNX Runtime computes parts of Gates in float32 if it is QDQ
                floats = name == "Gates" and form == QuantFormat.QDQ
                own = f"; ONNX Runtime from itself without optimizations: {own_differences(path, samples)}"
                say(result[2] <= 2 if floats else result[0] == 0,
                    f"{what}: {result[0]} of {result[1]} differ, at most {result[2]} steps{own if floats else ''}")


# ---------------------------------------------------------------- torchvision


def of_torchvision(tools, folder, names):
    import torchvision
    for name in names:
        torch.manual_seed(0)
        net = getattr(torchvision.models, name)()
        for module in net.modules():  # biases that are equal would be one constant, which ONNX Runtime does not fuse
            if getattr(module, "bias", None) is not None:
                nn.init.normal_(module.bias, std=0.1)
        side = 299 if name.startswith("inception") else 224
        if hasattr(net, "transform_input"):
            net.transform_input = False
        source, path, shape = f"{folder}/{name}.onnx", f"{folder}/q.onnx", (1, 3, side, side)
        export(net, shape, source)
        rng = np.random.default_rng(3)
        samples = [[rng.normal(size=shape).astype(np.float32)] for _ in range(2)]
        for form in (QuantFormat.QDQ, QuantFormat.QOperator):
            quantized(source, path, shape, form, QuantType.QUInt8, QuantType.QInt8, True, count=1)
            result = compare(tools, folder, path, samples)
            if isinstance(result, str):
                say(False, f"{name} {form.name}: {result}")
            else:
                say(True, f"{name} {form.name}: {result[0]} of {result[1]} differ, at most {result[2]} steps; ONNX "
                          f"Runtime from itself without optimizations: {own_differences(path, samples)}")


# ---------------------------------------------------------------- single operators


def operator(folder, nodes, inputs, constants, path, kind):
    values = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
              for n, x in inputs.items()]
    graph = helper.make_graph(nodes, "one", values, [helper.make_tensor_value_info("y", kind, None)],
                              [numpy_helper.from_array(np.asarray(x), n) for n, x in constants.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])
    onnx.save(model, path)


def operators(tools, folder, rounds):
    rng = np.random.default_rng(4)
    path = folder + "/one.onnx"
    counts = {}
    for _ in range(rounds):
        signed = bool(rng.integers(2))
        dtype = np.int8 if signed else np.uint8
        lo, hi = (-128, 127) if signed else (0, 255)
        kind = TensorProto.INT8 if signed else TensorProto.UINT8

        def codes(*shape):
            return rng.integers(lo, hi + 1, shape).astype(dtype)

        def scale(least=0.01, most=0.05):
            return np.float32(rng.uniform(least, most))

        zero = lambda: dtype(rng.integers(lo, hi + 1))
        deep = int(rng.integers(1, 40))
        w = rng.integers(-127, 128, (6, deep, 3, 3)).astype(np.int8)
        cases = {
            "QLinearAdd": ("com.microsoft", {"a": codes(1, 8, 16, 16), "b": codes(1, 8, 16, 16)},
                           ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], {}),
            "QLinearMul": ("com.microsoft", {"a": codes(1, 8, 16, 16), "b": codes(1, 8, 1, 1)},
                           ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], {}),
            "QLinearConv": ("", {"a": codes(1, deep, 9, 9)},
                            ["a", "sa", "za", "w", "sw", "zw", "sy", "zy", "bias"],
                            {"w": w, "sw": rng.uniform(1e-4, 2e-3, 6).astype(np.float32), "zw": np.zeros(6, np.int8),
                             "bias": rng.integers(-9999, 9999, 6).astype(np.int32)}),
            "QLinearMatMul": ("", {"a": codes(4, deep)}, ["a", "sa", "za", "w", "sw", "zw", "sy", "zy"],
                              {"w": w[:, :, 0, 0].T.copy(), "sw": np.float32(rng.uniform(1e-4, 2e-3)),
                               "zw": np.int8(0)}),
            "QLinearMatMul of two inputs": ("", {"a": codes(2, 3, 5, deep), "b": codes(3, deep, 7)},
                                            ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"],
                                            {"sb": np.float32(rng.uniform(1e-4, 2e-3))}),
            "QLinearMatMul of a list": ("", {"a": codes(deep), "b": codes(4, deep, 6)},
                                        ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"],
                                        {"sb": np.float32(rng.uniform(1e-4, 2e-3))}),
            "QLinearMatMul by a constant list": ("", {"a": codes(4, deep)}, ["a", "sa", "za", "w", "sw", "zw", "sy", "zy"],
                                                 {"w": w[0, :, 0, 0].copy(), "sw": np.float32(rng.uniform(1e-4, 2e-3)),
                                                  "zw": np.int8(0)}),
            "QLinearGlobalAveragePool": ("com.microsoft", {"a": codes(1, 32, 7, 7)},
                                         ["a", "sa", "za", "sy", "zy"], {}),
            "QLinearAveragePool": ("com.microsoft", {"a": codes(1, 16, 8, 8)}, ["a", "sa", "za", "sy", "zy"],
                                   {}),
            "QLinearSigmoid": ("com.microsoft", {"a": codes(1, 256)}, ["a", "sa", "za", "sy", "zy"], {}),
            "QLinearLeakyRelu": ("com.microsoft", {"a": codes(1, 256)}, ["a", "sa", "za", "sy", "zy"], {}),
            "QLinearSoftmax": ("com.microsoft", {"a": codes(4, 20)}, ["a", "sa", "za", "sy", "zy"],
                               {"sy": np.float32(1 / 256), "zy": dtype(lo)}),
            "QLinearConcat": ("com.microsoft", {"a": codes(1, 4, 5, 5), "b": codes(1, 3, 5, 5)},
                              ["sy", "zy", "a", "sa", "za", "b", "sb", "zb"], {}),
        }
        for op, (domain, inputs, names, constants) in cases.items():
            attributes = {"QLinearConv": {"pads": [1, 1, 1, 1], "strides": [2, 1]}, "QLinearConcat": {"axis": 1},
                          "QLinearAveragePool": {"kernel_shape": [2, 3], "strides": [2, 2]},
                          "QLinearSoftmax": {"axis": -1, "opset": 17}}.get(op, {})
            all_constants = {n: scale() if n[0] == "s" else zero() for n in names if n[0] in "sz"} | constants
            operator(folder, [helper.make_node(op.split()[0], names, ["y"], domain=domain, **attributes)], inputs,
                     all_constants, path, kind)
            result = compare(tools, folder, path, [list(inputs.values())])
            if isinstance(result, str):
                say(False, f"{op}: {result}")
                continue
            seen = counts.setdefault(op, [0, 0, 0])
            counts[op] = [seen[0] + result[0], seen[1] + result[1], max(seen[2], result[2])]
    for op, (differing, values, largest) in counts.items():
        exact = op not in ("QLinearAveragePool", "QLinearSigmoid", "QLinearSoftmax")
        say(differing == 0 if exact else largest <= 1,
            f"{op}: {differing} of {values} differ, at most {largest} steps")


def between(tools, folder):
    """Operators of reals, as cases/onnx_qdq.py has them."""
    rng = np.random.default_rng(5)
    path = folder + "/between.onnx"
    for name, (steps, nodes, shape, constants, *how) in onnx_qdq.cases(rng).items():
        onnx_qdq.model(path, nodes, shape, constants, **(how[0] if how else {}))
        samples = [[rng.normal(size=shape).astype(np.float32) * 2] for _ in range(4)]
        result = compare(tools, folder, path, samples)
        if isinstance(result, str):
            say(False, f"{name}: {result}")
        else:
            say(result[2] <= steps, f"{name}: {result[0]} of {result[1]} differ, at most {result[2]} steps")
    for name, (share, nodes, shape, constants) in onnx_qdq.open_ends(rng).items():
        onnx_qdq.model(path, nodes, shape, constants, quantized=False)
        x = [rng.normal(size=shape).astype(np.float32) * 2]
        want, got = theirs(path, x)[0], ours(tools, folder, path, x, 1)
        if isinstance(got, str):
            say(False, f"{name} at the end: {got}")
        else:
            far = float(np.abs(want - in_order(got[0], want.ndim, want.shape)).max() / np.abs(want).max())
            say(far <= share, f"{name} at the end, not quantized: differs by {far:.1e} of the largest value")


def gathers(tools, folder):
    """Rows of a table at positions that are an input: of codes, of reals, of floats; other axes and ranks."""
    rng = np.random.default_rng(6)
    path = folder + "/gather.onnx"
    node = helper.make_node
    ends = [node("QuantizeLinear", ["g", "sy", "zy"], ["yq"]), node("DequantizeLinear", ["yq", "sy", "zy"], ["y"])]
    dequantized = node("DequantizeLinear", ["w", "sw", "zw"], ["t"])
    base = {"sw": np.float32(.02), "zw": np.int8(3), "sy": np.float32(.03), "zy": np.uint8(110)}
    for name, shape, axis, at, kind in (("of 1000 rows", (1000, 16), 0, (2, 7), np.int64), ("along axis 1", (4, 50), 1, (3,), np.int32),
                                        ("of rows of two dimensions", (30, 2, 3), 0, (1, 4), np.int64)):
        codes = rng.integers(-128, 128, shape).astype(np.int8)
        gather = node("Gather", ["t", "x"], ["g"], axis=axis)
        cases = {
            "reals": ([dequantized, gather] + ends, base | {"w": codes}),
            "several scales": ([node("DequantizeLinear", ["w", "sw", "zw"], ["t"], axis=0), gather] + ends,
                               base | {"w": codes, "sw": rng.uniform(.01, .02, shape[0]).astype(np.float32),
                                       "zw": np.zeros(shape[0], np.int8)}),
            "floats": ([gather] + ends, base | {"t": rng.normal(size=shape).astype(np.float32)}),
            "codes": ([node("Gather", ["w", "x"], ["gq"], axis=axis), node("DequantizeLinear", ["gq", "sw", "zw"], ["y"])],
                      base | {"w": codes}),
        }
        for kind_of, (nodes, constants) in cases.items():
            positions = rng.integers(0, shape[axis], at).astype(kind)
            operator(folder, nodes, {"x": positions}, constants, path, TensorProto.FLOAT)
            result = compare(tools, folder, path, [[positions]])
            say(not isinstance(result, str) and result[0] == 0, f"Gather {name}, {kind_of}: {result}")


def joined(tools, folder):
    """Concat of values with a scale for each index of another dimension."""
    rng = np.random.default_rng(7)
    path = folder + "/joined.onnx"
    node = helper.make_node
    for shape, axis, along in (((1, 2, 5), 1, 2), ((1, 3, 3, 3), 1, 2), ((1, 4, 6, 2), 1, 3)):
        codes = rng.integers(0, 256, shape).astype(np.uint8)
        several = {"s": rng.uniform(.5, 4, shape[axis]).astype(np.float32),
                   "z": rng.integers(0, 256, shape[axis]).astype(np.uint8)}
        nodes = [node("DequantizeLinear", ["x", "s", "z"], ["r"], axis=axis), node("Concat", ["r", "r"], ["c"], axis=along),
                 node("QuantizeLinear", ["c", "sy", "zy"], ["q"]), node("DequantizeLinear", ["q", "sy", "zy"], ["y"])]
        operator(folder, nodes, {"x": codes}, several | {"sy": np.float32(8), "zy": np.uint8(90)}, path, TensorProto.FLOAT)
        # its optimizer makes a model of this that it cannot load
        want = theirs(path, [codes], ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0]
        got = ours(tools, folder, path, [codes], 1)
        if isinstance(got, str):
            say(False, f"Concat of several scales, {shape}: {got}")
        else:
            differing = int((in_order(got[0], want.ndim, want.shape) != want).sum())
            say(differing == 0, f"Concat of several scales, {shape}: {differing} of {want.size} differ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        between(sys.argv[1], temporary)
        gathers(sys.argv[1], temporary)
        joined(sys.argv[1], temporary)
        operators(sys.argv[1], temporary, int(os.environ.get("ONNX_ROUNDS", "4")))
        networks(sys.argv[1], temporary)
        of_torchvision(sys.argv[1], temporary, sys.argv[2:])
    sys.exit(failed)
