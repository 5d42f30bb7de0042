#!/usr/bin/env python3
"""Writes the tensors that another runtime computes, for `qat-debug MODEL.qm --against DIR`.

    qat-eval model.qm --recipe r.ini --dump-inputs INPUTS --samples 32
    dump_tensors.py model.tflite INPUTS DIR         # TensorFlow Lite, its reference kernels
    dump_tensors.py model.onnx INPUTS DIR           # ONNX Runtime, without its optimizations

INPUTS holds 0.npy, 1.npy, ...: the bytes of one sample each. DIR gets one array for each tensor, [samples, ...], with
the tensor's name: every character but letters, digits, '.' and '-' becomes '_'. It needs numpy, and ai_edge_litert (or
tensorflow); or onnx and onnxruntime.
"""
import os
import re
import sys

import numpy as np


def samples_of(folder):
    """The arrays 0.npy, 1.npy, ... in this order."""
    n = 0
    while os.path.exists(os.path.join(folder, f"{n}.npy")):
        yield np.load(os.path.join(folder, f"{n}.npy"))
        n += 1
    if n == 0:
        sys.exit(f"dump_tensors.py: {folder} holds no 0.npy")


def fitted(sample, shape, dtype, name):
    """The sample in the input's shape; its type must be the input's."""
    if sample.dtype != dtype or sample.size != int(np.prod(shape)):
        sys.exit(f"dump_tensors.py: the samples are {sample.dtype} {list(sample.shape)}, but {name} is "
                 f"{np.dtype(dtype)} {list(shape)}")
    return sample.reshape(shape)


def run_tflite(path, inputs):
    """Each tensor that an operator writes, and the input, for each sample."""
    try:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    except ImportError:
        from tensorflow.lite.python.interpreter import Interpreter, OpResolverType
    net = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
                      experimental_preserve_all_tensors=True)
    net.allocate_tensors()
    written = {int(i) for op in net._get_ops_details() for i in op["outputs"]}
    tensors = [t for t in net.get_tensor_details() if t["index"] in written]
    first = net.get_input_details()[0]
    for sample in inputs:
        net.set_tensor(first["index"], fitted(sample, first["shape"], first["dtype"], first["name"]))
        net.invoke()
        yield {t["name"]: net.get_tensor(t["index"]) for t in tensors}


def run_onnx(path, inputs):
    """Each tensor of codes: what QuantizeLinear writes. qat-export adds a number to its tensor's name."""
    import onnx
    import onnxruntime
    model = onnx.load(path)
    names = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    for name in names:
        if name not in {o.name for o in model.graph.output}:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    net = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    first = net.get_inputs()[0]
    kinds = {"tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(float)": np.float32}
    shape = [d if isinstance(d, int) and d > 0 else 1 for d in first.shape]
    for sample in inputs:
        values = net.run(names, {first.name: fitted(sample, shape, kinds.get(first.type), first.name)})
        yield {re.sub(r"_\d+$", "", name): np.moveaxis(v, 1, -1) if v.ndim == 4 else v
               for name, v in zip(names, values)}


def main():
    if len(sys.argv) != 4 or not sys.argv[1].endswith((".tflite", ".onnx")):
        sys.exit(__doc__)
    path, inputs, folder = sys.argv[1:]
    run = run_tflite if path.endswith(".tflite") else run_onnx
    arrays = {}
    for tensors in run(path, samples_of(inputs)):
        for name, values in tensors.items():
            arrays.setdefault(name, []).append(values)
    os.makedirs(folder, exist_ok=True)
    for name, values in arrays.items():
        np.save(os.path.join(folder, re.sub(r"[^A-Za-z0-9.-]", "_", name) + ".npy"), np.concatenate(values))
    print(f"{folder}: {len(arrays)} tensors")


main()
