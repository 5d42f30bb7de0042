"""tflite_compare.py QAT_RUN SAMPLES MODEL...: each MODEL.tflite beside MODEL.qm.

Random samples run in the engine (qat-run) and in LiteRT, with its reference kernels, its optimized kernels and XNNPACK.
A line a model says how many output bytes differ. It fails if one differs from the reference kernels'. States of the
.qm are inputs and outputs of the file, behind the others: the samples are then one sequence.

Where PEERS_TFLM names a Python with tflite_micro, TensorFlow Lite Micro runs the file, too. It fails if a byte of a model
whose name ends in -paper differs from Micro's; the reference kernels need not agree with such a model. Micro has no
kernels of uint8 for most operators, nor of INT4 for all: what it refuses has "Micro none", and the reason in a line before.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

MICRO = os.environ.get("PEERS_TFLM")
ARENA = 64 << 20


def micro(path, arrays, answers):
    """In the Python of tflite_micro: answer all samples of a file of inputs, and of what its states begin with."""
    from tflite_micro import runtime

    given = np.load(arrays)
    inputs = [given[f"input{i}"] for i in range(sum(name.startswith("input") for name in given))]
    states = [given[f"state{i}"] for i in range(sum(name.startswith("state") for name in given))]
    outputs = int(given["outputs"])
    model = runtime.Interpreter.from_file(path, arena_size=ARENA)
    got = [[] for _ in range(outputs)]
    for s in range(len(inputs[0])):
        for i, x in enumerate([x[s] for x in inputs] + states):
            model.set_input(x, i)
        model.invoke()
        for i in range(outputs):
            got[i].append(model.get_output(i).reshape(-1).copy())
        states = [model.get_output(outputs + i).copy() for i in range(len(states))]
    np.savez(answers, *[np.stack(y) for y in got])


if sys.argv[1] == "--micro":
    micro(*sys.argv[2:])
    sys.exit()

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: E402

KERNELS = [
    ("reference", OpResolverType.BUILTIN_REF),
    ("optimized", OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES),
    ("XNNPACK", OpResolverType.AUTO),
]


def random_samples(rng, detail, count):
    """Codes of the input, all equally likely; a .qm has the shape of one sample."""
    info = np.iinfo(detail["dtype"])
    return rng.integers(info.min, info.max, (count, *detail["shape"]), detail["dtype"], endpoint=True)


def run_engine(qat_run, qm, inputs, options):
    subprocess.run([qat_run, qm, *options, *sum((["--input", x] for x in inputs), [])], check=True, stdout=subprocess.DEVNULL)


def inspect(qat_run, qm):
    said = subprocess.run([qat_run.replace("qat-run", "qat-inspect"), qm, "--json"], check=True, capture_output=True).stdout
    return json.loads(said)


def engine(qat_run, qm, inputs, count):
    """All samples as steps, which do not matter to a model without states; of a detector, its tensors, one by one."""
    said = inspect(qat_run, qm)
    outputs = said["outputs"]
    with tempfile.TemporaryDirectory() as d:
        names = [f"{d}/in{i}.npy" for i in range(len(inputs))]
        if not said["epilogue"]:
            for name, x in zip(names, inputs):
                np.save(name, x)
            run_engine(qat_run, qm, names, ["--steps", *sum((["--output", f"{d}/out{o}.npy"] for o in outputs), [])])
            return [np.load(f"{d}/out{o}.npy").reshape(count, -1) for o in outputs]
        answers = []
        for s in range(count):
            for name, x in zip(names, inputs):
                np.save(name, x[s])
            run_engine(qat_run, qm, names, ["--dump-tensors", d])
            answers.append([np.load(f"{d}/t{o}.npy").reshape(-1) for o in outputs])
        return [np.stack(a) for a in zip(*answers)]


def first_state(detail):
    return np.full(detail["shape"], detail["quantization"][1], detail["dtype"])


def in_micro(path, inputs):
    """The same in another process. What it says, if it refuses the file."""
    model = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    states = [first_state(d) for d in model.get_input_details()[len(inputs) :]]
    named = {f"input{i}": x for i, x in enumerate(inputs)} | {f"state{i}": x for i, x in enumerate(states)}
    with tempfile.TemporaryDirectory() as d:
        np.savez(d + "/in.npz", **named, outputs=len(model.get_output_details()) - len(states))
        done = subprocess.run([MICRO, __file__, "--micro", path, d + "/in.npz", d + "/out.npz"], capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip().split("\n")[0]
        with np.load(d + "/out.npz") as answers:
            return [answers[name] for name in answers], None


def lite(path, kind, inputs, count):
    model = Interpreter(path, experimental_op_resolver_type=kind, num_threads=1)
    model.allocate_tensors()
    states = model.get_input_details()[len(inputs) :]
    details = model.get_output_details()
    nexts = details[len(details) - len(states) :]
    details = details[: len(details) - len(states)]
    answers = [[] for _ in details]
    for d in states:
        model.set_tensor(d["index"], first_state(d))
    for s in range(count):
        for detail, x in zip(model.get_input_details(), inputs):
            model.set_tensor(detail["index"], x[s])
        model.invoke()
        for answer, detail in zip(answers, details):
            answer.append(model.get_tensor(detail["index"]).reshape(-1))
        for state, value in zip(states, [model.get_tensor(d["index"]) for d in nexts]):
            model.set_tensor(state["index"], value)
    return [np.stack(a) for a in answers]


def differing(ours, theirs):
    """How many bytes."""
    return sum(int(np.count_nonzero(a.view(np.uint8) != b.view(np.uint8))) for a, b in zip(ours, theirs))


def compare(qat_run, model, count):
    rng = np.random.default_rng(7)
    file = Interpreter(model + ".tflite", experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    details = file.get_input_details()[: len(inspect(qat_run, model + ".qm")["inputs"])]
    inputs = [random_samples(rng, d, count) for d in details]
    ours = engine(qat_run, model + ".qm", inputs, count)
    total = sum(y.nbytes for y in ours)
    said, equal = [], True
    for name, kind in KERNELS:
        theirs = lite(model + ".tflite", kind, inputs, count)
        different = differing(ours, theirs)
        equal = equal and (different == 0 or name != "reference")
        said.append(f"{name} {different}")
    if MICRO:
        theirs, why = in_micro(model + ".tflite", inputs)
        said.append(f"Micro {differing(ours, theirs) if theirs else 'none'}")
        if why:
            print(f"# {model}: Micro: {why}")
        if model.endswith("-paper"):
            equal = not theirs or not differing(ours, theirs)
    print(f"{'ok' if equal else 'not ok'} - {model}: {count} samples, {total} bytes, differing: {', '.join(said)}", flush=True)
    return equal


def main():
    results = [compare(sys.argv[1], model, int(sys.argv[2])) for model in sys.argv[3:]]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
