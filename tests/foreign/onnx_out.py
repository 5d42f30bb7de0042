"""Models as ONNX files, beside the models: qat-export's .onnx in ONNX Runtime.

    onnx_out.py TOOLS ops FOLDER...                operator cases: model.tflite, in0.npy, ...
    onnx_out.py TOOLS network NAME RECIPE LIMIT    trained in the folder NAME.run; 200 samples

Prints a line "ok - ..." or "not ok - ..." each, with how many codes differ and by how many quanta at most. In the form
integer none may. In the others ONNX Runtime multiplies an accumulator by a float32 and rounds half to even; the .qm
multiplies by 31 bits and rounds twice.
"""
import glob
import os
import re
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

tools = sys.argv[1]
failed = 0
FORMS = {f"{form}, opset {opset}": ["--form", form, "--opset", opset] for form, opset in
         (("integer", "17"), ("integer", "13"), ("integer", "21"), ("qdq", "17"), ("qdq", "13"), ("qdq", "21"), ("qoperator", "17"))}


def tell(good, text):
    global failed
    failed += not good
    print(("ok - " if good else "not ok - ") + text, flush=True)


def run(*command):
    p = subprocess.run(command, capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


def planes(x):
    """[N, H, W, C] as [N, C, H, W]"""
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if x.ndim == 4 else x


def fits(x, i):
    """Is the array one for this input? Cases also have arrays of what is known: shapes, axes."""
    same = i.type == f"tensor({x.dtype})" or (i.type == "tensor(float)" and x.dtype == np.float32)
    return same and all(a == b or isinstance(b, str) for a, b in zip(x.shape, i.shape)) and x.ndim == len(i.shape)


def session(path):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def answers(s, inputs):
    return s.run(None, {i.name: x for i, x in zip(s.get_inputs(), inputs)})


def compare_ops(folders):
    """Each case alone: then a difference is one rounding."""
    for form, options in FORMS.items():
        compared = cases = differing = furthest = 0
        refused, bad = {}, []
        for folder in folders:
            if run(tools + "/qat-import", folder + "/model.tflite", "op.qm")[0]:
                continue
            code, text = run(tools + "/qat-export", "op.qm", "op.onnx", *options)
            if code:
                op = re.search(r"\((\w+)\) cannot be written as ONNX: (.*)", text)
                refused[op.group(1) if op else text.strip()] = op and op.group(2)
                continue
            arrays = [[planes(np.load(f)) for f in sorted(glob.glob(f"{folder}/{kind}[0-9].npy"))] for kind in ("in", "out")]
            cases += 1
            try:
                s = session("op.onnx")
                wanted = arrays[1]
                given = answers(s, [next(x for x in arrays[0] if fits(x, i)) for i in s.get_inputs()] if len(
                    s.get_inputs()) < len(arrays[0]) else arrays[0])
            except Exception as e:
                bad.append(f"{folder}: {str(e)[:300]}")
                continue
            for a, b in zip(given, wanted):
                if a.shape != b.shape or a.dtype != b.dtype:
                    bad.append(f"{folder}: {a.dtype} {a.shape}, expected {b.dtype} {b.shape}")
                    continue
                d = np.abs(a.astype(float) - b.astype(float)) / (1 if b.dtype != np.float32 else max(1e-30, np.abs(b).max()))
                compared += d.size
                differing += int((d > (1e-6 if b.dtype == np.float32 else 0)).sum())
                furthest = max(furthest, d.max(initial=0))
                rounded = "integer" not in form or "quantize_f32" in folder  # QuantizeLinear of an input rounds half to even
                if d.max(initial=0) > (1 if rounded else 1e-6):
                    bad.append(f"{folder}: {d.max()} quanta")
        tell(cases > 0 and not bad, f"{form}: {cases} operators, {differing} of {compared} codes differ, by at most "
             f"{furthest:g} quanta; refused: {', '.join(sorted(refused)) or 'none'}" + "".join("\n  " + b for b in bad))


def engine_answers(x, given):
    """The .qm's outputs. Of a detector, whose outputs are boxes, those tensors that the .onnx gives; sample by sample."""
    outputs = sum((["--output", f"y{i}.npy"] for i in range(len(given))), [])
    np.save("x.npy", x)
    if run(tools + "/qat-run", "net.qm", "--steps", "--input", "x.npy", *outputs)[0] == 0:
        return [np.load(f"y{i}.npy") for i in range(len(given))]
    names = re.findall(r"^ *(t\d+) output ", run(tools + "/qat-inspect", "net.qm")[1], re.M)
    rows = []
    for sample in x:
        np.save("x.npy", sample)
        run(tools + "/qat-run", "net.qm", "--input", "x.npy", "--dump-tensors", "dumped")
        tensors = [np.load(f"dumped/{n}.npy") for n in names]
        rows.append([next(t for t in tensors if t.shape[1:] == g.shape[1:]) for g in given])
    return [np.stack([r[i] for r in rows]) for i in range(len(given))]


def known_answer(s, path, dtype):
    """How far the file's own known answer is away."""
    said = {p.key: np.frombuffer(bytes.fromhex(p.value), np.uint8) for p in onnx.load(path).metadata_props
            if p.key.startswith("known_answer")}
    given = answers(s, [said["known_answer/input_0"].view(dtype).reshape([1] + s.get_inputs()[0].shape[1:])])
    return max(np.abs(g.astype(int).ravel() - said[f"known_answer/output_{i}"].view(g.dtype).astype(int)).max()
               for i, g in enumerate(given))


def compare_network(name, recipe, limit, profile="paper"):
    """Differences of single operators add up: by at most `limit` quanta in this network, and by 0 in the form integer."""
    if run(tools + "/qat-export", f"{name}.run/last.ckpt", "net.qm", "--samples", "20", "--profile", profile)[0]:
        return tell(False, f"{name}: no .qm")
    name += f", {profile}"
    run("rm", "-rf", "inputs")
    run(tools + "/qat-eval", "net.qm", "--recipe", recipe, "--samples", "200", "--dump-inputs", "inputs")
    files = sorted(glob.glob("inputs/*.npy"))  # none for data that are no pictures
    x = np.stack([np.load(f) for f in files]) if files else np.random.RandomState(1).randint(0, 256, (200, 1, 1, 64, 1)).astype("uint8")
    wanted = None
    for form, options in FORMS.items():
        code, text = run(tools + "/qat-export", "net.qm", "net.onnx", *options)
        if code:
            tell(False, f"{name}, {form}: {text}")
            continue
        s = session("net.onnx")
        given = answers(s, [planes(x.reshape((-1,) + x.shape[2:]))])
        wanted = wanted or [planes(y.reshape((-1,) + y.shape[2:])) for y in engine_answers(x, given)]
        d = np.concatenate([np.abs(a.astype(int) - b.astype(int)).ravel() for a, b in zip(given, wanted)])
        largest = sum(a.argmax() == b.argmax() for a, b in zip(given[0], wanted[0]))
        known = known_answer(s, "net.onnx", x.dtype)
        most = 0 if "integer" in form else int(limit)
        tell(d.max() <= most and known <= most and largest >= (0.8 if most else 1) * len(x),
             f"{name}, {form}: {(d > 0).sum()} of {d.size} codes differ, by at most {d.max()} quanta; the largest is "
             f"the same in {largest} of {len(x)} samples")


if sys.argv[2] == "ops":
    compare_ops(sys.argv[3:])
else:
    compare_network(*sys.argv[3:])
sys.exit(1 if failed else 0)
