"""Networks of torchvision, exported by torch.onnx, beside the same networks here.

    onnx_networks.py TOOLS COMPARE [NETWORK...]

Weights and batch norm's averages are random, so nothing is downloaded. For each network and each
of PyTorch's two exporters:
  * the float outputs are those of PyTorch, within 1e-4 of the largest one (COMPARE),
  * with a new last layer it is fine-tuned for 20 steps with quantization on drawn shapes,
  * it becomes a .qm, 0 bytes of which differ between engine and exact evaluation,
  * qat-eval of the checkpoint needs the .onnx no more.
Prints a line "ok - ..." or "not ok - ..." each.
"""
import os
import re
import subprocess
import sys
import warnings

import onnx
import onnx.numpy_helper
import torch
import torchvision

warnings.filterwarnings("ignore")
tools, compare = sys.argv[1], sys.argv[2]
names = sys.argv[3:] or [
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0",
    "densenet121", "inception_v3", "squeezenet1_1", "shufflenet_v2_x1_0"]
failed = 0


def tell(good, text):
    global failed
    failed += not good
    print(("ok - " if good else "not ok - ") + text, flush=True)


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
dir = {folder}/run
"""


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
        train(folder, size)


def train(folder, size):
    with open(f"{folder}.ini", "w") as f:
        f.write(RECIPE.format(size=size, folder=folder))
    status, text = run(f"{tools}/qat-train", f"{folder}.ini", "--overwrite")
    tell(status == 0, f"{folder}: 20 steps: {text.strip().splitlines()[-1][:200]}")
    os.remove(f"{folder}/model.onnx")
    checkpoint = f"{folder}/run/last.ckpt"
    status, text = run(f"{tools}/qat-export", checkpoint, f"{folder}.qm", "--samples", "4")
    zero = re.search(r"bytes compared, 0 differing", text)
    last = [line for line in text.strip().splitlines() if "differing" in line or "qat-export:" in line]
    tell(status == 0 and zero is not None, f"{folder}: .qm: {(last or [text[-200:]])[0][:250]}")
    status, text = run(f"{tools}/qat-eval", checkpoint)
    tell(status == 0, f"{folder}: qat-eval without the .onnx: {text.strip().splitlines()[-1][:200]}")


for each in names:
    check(each)
sys.exit(failed > 0)
