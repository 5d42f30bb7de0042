"""float_out.py FLOAT_OUTPUTS CHECKPOINT FILE LIMIT [STEPS]: a float network's file beside the network itself.

FILE is a .tflite or an .onnx file that qat-export --float made of the checkpoint. It fails if an answer to one of
20 random inputs differs by more than LIMIT of the largest one. States are inputs and outputs of the file, behind the
others: then an input is a sequence of so many STEPS, and its answer that of the last one.
"""

import os
import subprocess
import sys

import numpy

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
SAMPLES = 20


def lite(path):
    """The shape of an input, the shapes of the states, and a function: from an input and states to an answer and states."""
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(path)
    model.allocate_tensors()
    ends = model.get_input_details()
    results = model.get_output_details()

    def run(*values):
        for end, value in zip(ends, values):
            model.set_tensor(end["index"], value)
        model.invoke()
        given = [model.get_tensor(y["index"]) for y in results]
        return given[0], given[len(given) - len(ends) + 1 :]

    return ends[0]["shape"], [s["shape"] for s in ends[1:]], run


def onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x, *states = session.get_inputs()
    planes = len(x.shape) == 4
    shape = [1, *x.shape[1:]]
    shape = [1, shape[2], shape[3], shape[1]] if planes else shape

    def run(value, *more):
        value = value.transpose(0, 3, 1, 2) if planes else value
        given = session.run(None, {x.name: value, **{s.name: v for s, v in zip(states, more)}})
        y = given[0]
        return y.transpose(0, 2, 3, 1) if y.ndim == 4 else y, given[len(given) - len(states) :]

    return shape, [[1, *s.shape[1:]] for s in states], run


program, checkpoint, path, limit, steps = [*sys.argv[1:], "1"][:5]
shape, states, run = (lite if path.endswith(".tflite") else onnx)(path)
samples = numpy.random.default_rng(5).uniform(-1, 1, (SAMPLES, int(steps), *shape)).astype(numpy.float32)
numpy.save("x.npy", samples.reshape(SAMPLES, int(steps), -1))
subprocess.run([program, checkpoint, "x.npy", "y.npy"], check=True)
want = numpy.load("y.npy")
got = []
for sample in samples:
    kept = [numpy.zeros(s, numpy.float32) for s in states]
    for x in sample:
        y, kept = run(x, *kept)
    got.append(y.reshape(-1))
apart = float(numpy.abs(want - numpy.stack(got)).max() / numpy.abs(want).max())
print(f"{'ok' if apart <= float(limit) else 'not ok'} - {path}: {SAMPLES} samples, {want.shape[1]} values each, at most {apart:.1e} of the largest apart", flush=True)
sys.exit(not apart <= float(limit))  # what is no number fails too
