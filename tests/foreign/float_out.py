"""float_out.py FLOAT_OUTPUTS CHECKPOINT FILE LIMIT: a float network's file beside the network itself.

FILE is a .tflite or an .onnx file that qat-export --float made of the checkpoint. It fails if an answer to one of
20 random inputs differs by more than LIMIT of the largest one.
"""

import os
import subprocess
import sys

import numpy

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
SAMPLES = 20


def lite(path):
    from ai_edge_litert.interpreter import Interpreter

    model = Interpreter(path)
    model.allocate_tensors()
    (x,) = model.get_input_details()
    y = model.get_output_details()[0]

    def run(sample):
        model.set_tensor(x["index"], sample)
        model.invoke()
        return model.get_tensor(y["index"])

    return x["shape"], run


def onnx(path):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (x,) = session.get_inputs()
    planes = len(x.shape) == 4
    shape = [1, *x.shape[1:]]
    shape = [1, shape[2], shape[3], shape[1]] if planes else shape

    def run(sample):
        y = session.run(None, {x.name: sample.transpose(0, 3, 1, 2) if planes else sample})[0]
        return y.transpose(0, 2, 3, 1) if y.ndim == 4 else y

    return shape, run


program, checkpoint, path, limit = sys.argv[1:]
shape, run = (lite if path.endswith(".tflite") else onnx)(path)
samples = numpy.random.default_rng(5).uniform(-1, 1, (SAMPLES, *shape)).astype(numpy.float32)
numpy.save("x.npy", samples.reshape(SAMPLES, *shape[1:]))
subprocess.run([program, checkpoint, "x.npy", "y.npy"], check=True)
want = numpy.load("y.npy")
got = numpy.stack([run(sample).reshape(-1) for sample in samples])
apart = float(numpy.abs(want - got).max() / numpy.abs(want).max())
print(f"{'ok' if apart <= float(limit) else 'not ok'} - {path}: {SAMPLES} samples, {want.shape[1]} values each, at most {apart:.1e} of the largest apart", flush=True)
sys.exit(apart > float(limit))
