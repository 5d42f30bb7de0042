"""Networks of torchvision, exported by torch.onnx, beside the same networks here.

    onnx_networks.py TOOLS COMPARE [NETWORK...]

Weights and batch norm's averages are random, so nothing is downloaded. For each network and each
of PyTorch's two exporters:
  * the float outputs are those of PyTorch, within 1e-4 of the largest one (COMPARE),
  * with a new last layer it is fine-tuned for 20 steps with quantization on drawn shapes,
  * it becomes a .qm, 0 bytes of which differ between engine and exact evaluation,
  * qat-eval of the checkpoint needs the .onnx no more,
  * (of the first exporter) it leaves as .tflite, whose bytes are those of LiteRT's reference kernels, if PEERS_PYTHON
    has LiteRT; and as .onnx, in all forms, in ONNX Runtime.
Prints a line "ok - ..." or "not ok - ..." each. NETWORK.DIGEST.said keeps the lines of a network without a failure: in the
same folder, a run that was stopped goes on behind it. DIGEST is that of the scripts and the programs, so what others said
is not taken for what these say.
"""
import glob
import hashlib
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime
import torch
import torchvision

warnings.filterwarnings("ignore")
tools, compare = sys.argv[1], sys.argv[2]
names = sys.argv[3:] or [
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0",
    "densenet121", "inception_v3", "squeezenet1_1", "shufflenet_v2_x1_0"]
scripts = os.path.dirname(os.path.abspath(__file__))
failed = 0
said = []
parts = [__file__, f"{scripts}/onnx_out.py", f"{scripts}/tflite_compare.py", compare] + [
    f"{tools}/qat-{tool}" for tool in ("train", "export", "eval", "run")] + sorted(
    glob.glob(f"{tools}/../lib/**/*.so", recursive=True))
digest = hashlib.sha256(b"".join(open(part, "rb").read() for part in parts)).hexdigest()[:12]


def tell(good, text):
    global failed
    failed += not good
    said.append(("ok - " if good else "not ok - ") + text)
    print(said[-1], flush=True)


def network(name):
    torch.manual_seed(1)
    make = getattr(torchvision.models, name)
    model = make(weights=None, init_weights=True) if name == "inception_v3" else make(weights=None)
    for module in model.modules():  # averages as after a training, so that folding them counts
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.8, 1.2)
            torch.nn.init.uniform_(module.bias, -0.2, 0.2)
    return model.eval()


def export(model, size, folder, dynamo):
    x = torch.randn(1, 3, size, size)
    os.makedirs(folder + "/test_data_set_0", exist_ok=True)
    with torch.no_grad():
        y = model(x)
    torch.onnx.export(model, (x,), folder + "/model.onnx", dynamo=dynamo, verbose=False)
    for kind, value in (("input", x), ("output", y)):
        with open(f"{folder}/test_data_set_0/{kind}_0.pb", "wb") as f:
            f.write(onnx.numpy_helper.from_array(value.numpy()).SerializeToString())


def run(*command):
    p = subprocess.run(command, capture_output=True, text=True)
    return p.returncode, p.stdout + p.stderr


RECIPE = """[data]
kind = shapes
train_count = 160
test_count = 40
height = {size}
width = {size}
mean = 123.675, 116.28, 103.53
std = 58.395, 57.12, 57.375
[model]
onnx = {folder}/model.onnx
head = 10
[train]
steps = 20
batch = 4
eval_batch = 8
lr = 0.00001
clip_norm = 1
eval_every = never
[quant]
enabled = yes
layout = int8
quant_delay = 5
bn_freeze_delay = 10
[output]
dir = {folder}.run
"""
SAMPLES = "20"


def check(name):
    size = 96 if name == "inception_v3" else 64
    model = network(name)
    for dynamo in (True, False):
        which = "dynamo" if dynamo else "script"
        folder = f"{name}_{which}"
        try:
            export(model, size, folder, dynamo)
        except Exception as e:  # an exporter that is not there, or cannot
            print(f"SKIP {folder}: torch.onnx.export: {str(e).splitlines()[0]}")
            continue
        status, text = run(compare, "-r", "1e-4", folder)
        tell(status == 0 and text.startswith("ok"), f"{folder}: float outputs: {text.strip()[:200]}")
        round_trip(folder, size)
        train(folder, size)
        if dynamo:
            leave_tflite(folder)
            leave_onnx(folder)


def round_trip(folder, size):
    """
    Read, trained for 0 steps and written, three times: ONNX Runtime's answers, which the files written give alike, and the
    bytes of the last two. (The first has names that exporters chose, of which the second may lack a / in front.)
    """
    for part in "train", "test":
        np.save(f"{part}_x.npy", np.zeros([8, size, size, 3], np.uint8))
        np.save(f"{part}_y.npy", np.arange(992, 1000))
    recipe = RECIPE.format(size=size, folder=folder).replace("head = 10\n", "").replace("kind = shapes", "kind = npy\npath = .")
    with open(f"{folder}.ini", "w") as f:
        f.write(re.sub(r"(\w+_count|height|width) = .*\n", "", recipe.replace("steps = 20", "epochs = 0")))
    x = onnx.numpy_helper.to_array(onnx.load_tensor(f"{folder}/test_data_set_0/input_0.pb"))
    sources = f"{folder}/model.onnx", f"{folder}_1.onnx", f"{folder}_2.onnx", f"{folder}_3.onnx"
    for source, to in zip(sources, sources[1:]):
        for command in (
                ("train", f"{folder}.ini", "--overwrite", "--set", f"model.onnx={source}", "--set", "quant.enabled=no"),
                ("export", "--float", f"{folder}.run/last.ckpt", to)):
            status, text = run(f"{tools}/qat-{command[0]}", *command[1:])
            if status:
                tell(False, f"{folder}: {source}, trained for 0 steps, to {to}: {text.strip()[-250:]}")
                return
    answers = []
    for path in sources:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        answers.append(session.run(None, {session.get_inputs()[0].name: x})[0])
    far = max(abs(y - answers[0]).max() for y in answers) / abs(answers[0]).max()
    alike = all((y == answers[1]).all() for y in answers[1:])
    same = open(sources[2], "rb").read() == open(sources[3], "rb").read()
    tell(far <= 1e-5 and alike and same, f"{folder}: 0 steps and .onnx again: ONNX Runtime's answers differ by {far:.2g}; once "
         f"more: {'the same' if alike else 'other'} answers; and again: {'the same bytes' if same else 'other bytes'}")


def train(folder, size):
    with open(f"{folder}.ini", "w") as f:
        f.write(RECIPE.format(size=size, folder=folder))
    status, text = run(f"{tools}/qat-train", f"{folder}.ini", "--overwrite")
    tell(status == 0, f"{folder}: 20 steps: {text.strip().splitlines()[-1][:200]}")
    os.remove(f"{folder}/model.onnx")
    checkpoint = f"{folder}.run/last.ckpt"
    status, text = run(f"{tools}/qat-export", checkpoint, f"{folder}.qm", "--samples", "4")
    zero = re.search(r"bytes compared, 0 differing", text)
    last = [line for line in text.strip().splitlines() if "differing" in line or "qat-export:" in line]
    tell(status == 0 and zero is not None, f"{folder}: .qm: {(last or [text[-200:]])[0][:250]}")
    status, text = run(f"{tools}/qat-eval", checkpoint)
    tell(status == 0, f"{folder}: qat-eval without the .onnx: {text.strip().splitlines()[-1][:200]}")


def judged(text):
    """The lines of another script."""
    for line in text.splitlines():
        judgement = re.match(r"(not ok|ok) - (.*)", line)
        if judgement:
            tell(judgement[1] == "ok", judgement[2])


def leave_tflite(folder):
    python = os.environ.get("PEERS_PYTHON")
    if not python:
        print(f"SKIP {folder}: .tflite: PEERS_PYTHON names no Python with LiteRT")
        return
    for command in (f"{folder}.run/last.ckpt", f"{folder}.qm", "--samples", "4", "--profile", "tflite"), (f"{folder}.qm", f"{folder}.tflite"):
        status, text = run(f"{tools}/qat-export", *command)
        if status:
            tell(False, f"{folder}: {command[1]}: {text.strip()[-250:]}")
            return
    status, text = run(python, f"{scripts}/tflite_compare.py", f"{tools}/qat-run", SAMPLES, folder)
    judged(text if "ok - " in text else f"not ok - {folder}: .tflite: {text[-250:]}")


def leave_onnx(folder):
    """How far the forms qdq and qoperator are away is counted, not judged: random weights amplify each rounding."""
    judged(run(sys.executable, f"{scripts}/onnx_out.py", tools, "network", folder, f"{folder}.ini", SAMPLES, "1", "255", "100")[1])


for each in names:
    kept = f"{each}.{digest}.said"
    if os.path.exists(kept):
        print(open(kept).read(), end="", flush=True)
        continue
    before, said = failed, []
    check(each)
    if failed == before:
        with open(kept, "w") as f:
            f.write("".join(line + "\n" for line in said))
sys.exit(failed > 0)
