"""Models as ONNX files, beside the models: qat-export's .onnx in ONNX Runtime.

    onnx_out.py TOOLS ops FOLDER...                            operator cases: model.tflite, in0.npy, ...
    onnx_out.py TOOLS network NAME RECIPE SAMPLES EVEN [MOST OTHERS]  trained in the folder NAME.run
    onnx_out.py TOOLS random SAMPLES MODEL.qm...               networks that are drawn

Prints a line "ok - ..." or "not ok - ..." each, with how many codes differ and by how many quanta at most. In the form
integer none may. In the others ONNX Runtime multiplies an accumulator by a float32 and rounds half to even. So does a
.qm of profile onnx; the others multiply by 31 bits and round twice.
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
FORMS = {form: ["--form", form] for form in ("integer", "qdq", "qoperator")}
OPSETS = {f"{form}, opset {opset}": ["--form", form, "--opset", str(opset)] for form in FORMS for opset in (13, 21)}


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


def states_of(s):
    """What the metadata say of states: [input, output, value before the first run]"""
    lines = s.get_modelmeta().custom_metadata_map.get("states", "").splitlines()
    return [(i, o, int(first)) for i, o, first in (line.split() for line in lines)]


def sequence(s, samples):
    """The answers, one step after another; states are fed with what they became."""
    states, given = states_of(s), []
    ends = {i.name: i for i in s.get_inputs()}
    kept = {i: np.full([1] + ends[i].shape[1:], first, re.search(r"u?int\d+", ends[i].type).group()) for i, _, first in states}
    names = [o.name for o in s.get_outputs()]
    for sample in samples:
        y = dict(zip(names, s.run(None, {**dict(zip(ends, sample)), **kept})))
        kept = {i: y[o] for i, o, _ in states}
        given.append([y[n] for n in names[: len(names) - len(states)]])
    return given


def compare_ops(folders):
    """Each case alone: then a difference is one rounding."""
    for form, options in {**FORMS, **OPSETS}.items():
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


def engine_answers(inputs, given):
    """The .qm's outputs. Of a detector, whose outputs are boxes, those tensors that the .onnx gives; sample by sample."""
    outputs = sum((["--output", f"y{i}.npy"] for i in range(len(given))), [])

    def engine(arrays, *options):
        for i, x in enumerate(arrays):
            np.save(f"x{i}.npy", x)
        return run(tools + "/qat-run", "net.qm", *sum((["--input", f"x{i}.npy"] for i in range(len(arrays))), []), *options)[0]

    if engine(inputs, "--steps", *outputs) == 0:
        return [np.load(f"y{i}.npy") for i in range(len(given))]
    names = re.findall(r"^ *(t\d+) output ", run(tools + "/qat-inspect", "net.qm")[1], re.M)
    rows = []
    for sample in zip(*inputs):
        engine(sample, "--dump-tensors", "dumped")
        tensors = [np.load(f"dumped/{n}.npy") for n in names]
        rows.append([next(t for t in tensors if t.shape[1:] == g.shape[1:]) for g in given])
    return [np.stack([r[i] for r in rows]) for i in range(len(given))]


def flat(x):
    """Samples, of one each, as [N, C, H, W]"""
    return planes(x.reshape((-1,) + x.shape[2:]))


def known_answer(s, path, dtype):
    """How far the file's own known answer is away; 0 if it has none."""
    said = {p.key: np.frombuffer(bytes.fromhex(p.value), np.uint8) for p in onnx.load(path).metadata_props
            if p.key.startswith("known_answer")}
    if not said:
        return 0
    (given,) = sequence(s, [[said["known_answer/input_0"].view(dtype).reshape([1] + s.get_inputs()[0].shape[1:])]])
    return max(np.abs(g.astype(int).ravel() - said[f"known_answer/output_{i}"].view(g.dtype).astype(int)).max()
               for i, g in enumerate(given))


def compare_form(inputs, wanted, options):
    """net.qm in a form: its answers, how far they and the known answer are away, how many largest ones are the same."""
    code, text = run(tools + "/qat-export", "net.qm", "net.onnx", *options)
    if code:
        raise RuntimeError(text)
    s = session("net.onnx")
    together = isinstance(s.get_inputs()[0].shape[0], str) and not states_of(s)
    batches = [[flat(x) for x in inputs]] if together else [[planes(x) for x in sample] for sample in zip(*inputs)]
    given = [np.concatenate(parts) for parts in zip(*sequence(s, batches))]
    wanted = wanted or [flat(y) for y in engine_answers(inputs, given)]
    d = np.concatenate([np.abs(a.astype(int) - b.astype(int)).ravel() for a, b in zip(given, wanted)])
    same = sum(a.argmax() == b.argmax() for a, b in zip(given[0], wanted[0]))
    return wanted, d, known_answer(s, "net.onnx", inputs[0].dtype), same


def random_inputs(samples, seed):
    """Codes for net.qm."""
    code, text = run(tools + "/qat-export", "net.qm", "net.onnx", "--form", "integer")
    if code:
        raise RuntimeError(text)
    rng, inputs, s = np.random.RandomState(seed), [], session("net.onnx")
    states = [i for i, _, _ in states_of(s)]
    for i in s.get_inputs():
        if i.name in states:
            continue
        shape = i.shape[1:] if len(i.shape) != 4 else [i.shape[2], i.shape[3], i.shape[1]]
        codes = np.iinfo(re.search(r"u?int\d+", i.type).group())
        inputs.append(rng.randint(codes.min, codes.max + 1, [samples, 1] + shape).astype(codes.dtype))
    return inputs


def compare_network(name, recipe, samples, even, *limits):
    """
    Differences of single operators add up: by at most limits[0] quanta in this network, and limits[1] of 100 samples have
    another largest score; by 0 in the form integer. Without limits: that form alone. In profile onnx: all forms, by at
    most `even` quanta.
    """
    for profile in "paper", "tflite", "onnx":
        most, others = (int(even), 0) if profile == "onnx" else (int(n) for n in limits or (0, 0))
        if run(tools + "/qat-export", f"{name}.run/last.ckpt", "net.qm", "--samples", "8", "--profile", profile)[0]:
            tell(False, f"{name}, {profile}: no .qm")
            continue
        run("rm", "-rf", "inputs")
        run(tools + "/qat-eval", "net.qm", "--recipe", recipe, "--samples", samples, "--dump-inputs", "inputs")
        files = sorted(glob.glob("inputs/*.npy"))  # none for data that are no pictures
        inputs = [np.stack([np.load(f) for f in files])] if files else random_inputs(int(samples), 1)
        wanted = None
        for form, options in FORMS.items():
            exact = "integer" in form
            if not exact and not limits and profile != "onnx":
                continue
            wanted, d, known, same = compare_form(inputs, wanted, options)
            tell(max(d.max(), known) <= (0 if exact else most) and len(inputs[0]) - same <= (0 if exact else others * len(inputs[0]) / 100),
                 f"{name}, {profile}, {form}: {(d > 0).sum()} of {d.size} codes differ, by at most {d.max()} quanta; the "
                 f"largest is the same in {same} of {len(inputs[0])} samples")


def compare_random(samples, models):
    """Networks that are drawn, with random codes, in the form integer; those of profile onnx in all forms."""
    differing, codes, networks, furthest = ({form: 0 for form in FORMS} for _ in range(4))
    refused = 0
    for seed, model in enumerate(models):
        run("cp", model, "net.qm")
        is_even = "round=even" in run(tools + "/qat-inspect", "net.qm")[1]
        wanted = None
        try:
            inputs = random_inputs(samples, seed)
            for form in FORMS if is_even else ["integer"]:
                wanted, d, known, _ = compare_form(inputs, wanted, ["--form", form])
                differing[form] += (d > 0).sum() + known
                codes[form] += d.size
                networks[form] += 1
                furthest[form] = max(furthest[form], d.max())
        except RuntimeError as e:
            refused += 1
            print(str(e).strip())
    tell(not differing["integer"] and networks["integer"] >= 100,
         f"{networks['integer']} random networks, integer: {differing['integer']} of {codes['integer']} codes differ; "
         f"refused: {refused}")
    for form in "qdq", "qoperator":
        tell(furthest[form] <= 1 and differing[form] <= codes[form] / 10000 and networks[form] >= 15,
             f"{networks[form]} random networks of profile onnx, {form}: {differing[form]} of {codes[form]} codes differ, by "
             f"at most {furthest[form]} quanta")


if sys.argv[2] == "ops":
    compare_ops(sys.argv[3:])
elif sys.argv[2] == "random":
    compare_random(int(sys.argv[3]), sys.argv[4:])
else:
    compare_network(*sys.argv[3:])
sys.exit(1 if failed else 0)
