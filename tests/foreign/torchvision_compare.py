#!/usr/bin/env python3
"""Weights from PyTorch, on the way that docs/from-pytorch.md describes.

1. Networks of torchvision with random weights, whose batch norms have seen random pictures: saved by the documented
   lines, loaded by a recipe. The float outputs must be equal within 1e-4 of the largest one. ResNet-18 is also
   quantized with --ptq, exported and thereby verified.
2. A small network that PyTorch trains on Fashion-MNIST, by order of its layers and with a linear layer behind a
   flattened feature map: the top-1 of step 0 must be PyTorch's within 0.1 points; then it is quantized.

    torchvision_compare.py FLOAT_OUTPUTS      run by torchvision.sh; FLOAT_OUTPUTS: the program of float_outputs.c
"""
import os
import re
import subprocess
import sys
import tempfile

import numpy
import torch
import torchvision

LIMIT = 1e-4
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
TOOLS = os.path.join(os.environ['QAT_BUILD_ROOT'], 'tools')
ROOT = os.environ['QAT_SOURCE_ROOT']
FLOAT_OUTPUTS = os.path.abspath(sys.argv[1])
DATA = os.environ.get('QAT_DATA') or os.path.join(ROOT, '../shared/data')
failed = False

RECIPE = """[data]
kind = npy
path = {folder}
classes = {classes}
mean = {mean}
std = {std}
[model]
arch = {arch}
[train]
init = {folder}/weights.npz
init_layout = pytorch
epochs = 0
batch = {batch}
eval_batch = 8
[output]
dir = {folder}/run
{more}"""


def judge(good, text):
    global failed
    failed |= not good
    print(('ok - ' if good else 'not ok - ') + text, flush=True)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        judge(False, f'{" ".join(command)}: exit status {done.returncode}')
        print(done.stdout[-2000:] + done.stderr[-2000:])
        sys.exit(1)
    return done.stdout


def save(model, folder):
    """The two lines of the page."""
    path = os.path.join(folder, 'weights.npz')
    numpy.savez(path, **{k: v.cpu().numpy() for k, v in model.state_dict().items()})


def pictures(n, side):
    """Smooth random pictures: noise at several scales, [N, H, W, 3] of bytes."""
    total = torch.zeros(n, 3, side, side)
    for scale in (4, 16, 64):
        noise = torch.randn(n, 3, scale, scale)
        total += torch.nn.functional.interpolate(noise, size=(side, side), mode='bilinear')
    bytes_ = (total * 45 + 128).clamp(0, 255).to(torch.uint8)
    return bytes_.permute(0, 2, 3, 1).contiguous().numpy()


def normalised(x):
    return ((x.astype(numpy.float32) - numpy.float32(MEAN)) / numpy.float32(STD)).astype(numpy.float32)


def calibrate(model, side):
    """Random gammas and betas, and averages that are those of pictures: momentum None averages all batches alike."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.3, 0.3)
                module.momentum = None
        model.train()
        for _ in range(3):
            model(torch.from_numpy(normalised(pictures(16, side))).permute(0, 3, 1, 2))
    model.eval()


def write_data(folder, x, y):
    for split in ('train', 'test'):
        numpy.save(os.path.join(folder, f'{split}_x.npy'), x)
        numpy.save(os.path.join(folder, f'{split}_y.npy'), y)


def compare(name, arch, side, classes=1000, more='', **options):
    torch.manual_seed(7)
    model = getattr(torchvision.models, name)(weights=None, num_classes=classes, **options)
    calibrate(model, side)
    with tempfile.TemporaryDirectory() as folder:
        x = pictures(8, side)
        write_data(folder, x, numpy.arange(8))
        save(model, folder)
        recipe = os.path.join(folder, 'r.ini')
        with open(recipe, 'w') as file:
            file.write(RECIPE.format(folder=folder, classes=classes, arch=arch, batch=8, more=more,
                                     mean=', '.join(map(str, MEAN)), std=', '.join(map(str, STD))))
        run(f'{TOOLS}/qat-train', recipe)
        numpy.save(f'{folder}/x.npy', normalised(x))
        run(FLOAT_OUTPUTS, f'{folder}/run/last.ckpt', f'{folder}/x.npy', f'{folder}/y.npy')
        ours = numpy.load(f'{folder}/y.npy')
        with torch.no_grad():
            theirs = model(torch.from_numpy(normalised(x)).permute(0, 3, 1, 2)).numpy()
        far = numpy.abs(ours - theirs).max() / numpy.abs(theirs).max()
        spread = (theirs.max(axis=0) - theirs.min(axis=0)).max() / numpy.abs(theirs).max()
        judge(far <= LIMIT and spread > 0.01,
              f'{name} {side} x {side}: outputs differ by {far:.2g} of the largest one at most (limit {LIMIT:g}); '
              f'over 8 pictures they vary by {spread:.2g} of it')
        if name == 'resnet18':
            quantize(folder, name)


def quantize(folder, name):
    qm = f'{folder}/x.qm'
    text = run(f'{TOOLS}/qat-export', f'{folder}/run/last.ckpt', qm, '--ptq', 'recipe')
    judge(os.path.exists(qm) and 'certified' in text and ', 0 differing' in text,
          f'{name} is quantized, exported, certified and verified')
    print('    ' + '\n    '.join(text.strip().splitlines()))


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 3, stride=2, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(16)
        self.conv2 = torch.nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.bn2 = torch.nn.BatchNorm2d(16)
        self.conv3 = torch.nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.bn3 = torch.nn.BatchNorm2d(32)
        self.fc1 = torch.nn.Linear(32 * 7 * 7, 64)
        self.fc2 = torch.nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        x = torch.relu(self.bn3(self.conv3(x)))
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


SMALL = """[layer.conv1]
op = conv2d
filters = 16
stride = 2
padding = 1
batch_norm = yes
activation = relu
[layer.conv2]
op = depthwise_conv2d
padding = 1
batch_norm = yes
activation = relu
[layer.conv3]
op = conv2d
filters = 32
stride = 2
padding = 1
batch_norm = yes
activation = relu
[layer.flat]
op = flatten
[layer.fc1]
op = fully_connected
units = 64
bias = yes
activation = relu
[layer.logits]
op = fully_connected
units = 10
bias = yes
"""


def fashion(split):
    import gzip
    def read(kind, skip):
        with gzip.open(f'{DATA}/fashion-mnist/{split}-{kind}-ubyte.gz') as file:
            return numpy.frombuffer(file.read(), numpy.uint8, offset=skip)
    return read('images-idx3', 16).reshape(-1, 28, 28), read('labels-idx1', 8)


def as_input(x):
    return torch.from_numpy((x.astype(numpy.float32) - 127.5) / 127.5)[:, None]


def train_small():
    torch.manual_seed(1)
    model, (x, y) = Small(), fashion('train')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    order = torch.randperm(len(x)).numpy()
    for i in range(0, len(x) - 63, 64):
        batch = order[i:i + 64]
        loss = torch.nn.functional.cross_entropy(model(as_input(x[batch])), torch.from_numpy(y[batch]).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def top1(model):
    x, y = fashion('t10k')
    with torch.no_grad():
        return 100 * (model(as_input(x)).argmax(1).numpy() == y).mean()


def fine_tune():
    if not os.path.exists(f'{DATA}/fashion-mnist'):
        print('SKIP a network of Fashion-MNIST: QAT_DATA has no fashion-mnist')
        return
    model = train_small()
    with tempfile.TemporaryDirectory() as folder:
        save(model, folder)
        recipe = os.path.join(folder, 'r.ini')
        text = RECIPE.format(folder=folder, classes=10, arch='layers', batch=64, more=SMALL, mean='127.5', std='127.5')
        with open(recipe, 'w') as file:
            file.write(text.replace('kind = npy', 'kind = idx').replace(f'path = {folder}', f'path = {DATA}/fashion-mnist'))
        printed = run(f'{TOOLS}/qat-train', recipe)
        print('    ' + '\n    '.join(printed.strip().splitlines()))
        ours = float(re.search(r'step 0/0 .*float ([0-9.]+) %', printed).group(1))
        theirs = top1(model)
        judge(abs(ours - theirs) <= 0.1, f'Fashion-MNIST, step 0: top-1 {ours:.2f} %, PyTorch has {theirs:.2f} %')
        quantize(folder, 'the network of Fashion-MNIST')
        evaluated = run(f'{TOOLS}/qat-eval', f'{folder}/x.qm', '--recipe', recipe)
        found = re.search(r'quantized.*?([0-9.]+) %', evaluated)
        quantized = float(found.group(1)) if found else 0
        judge(abs(quantized - theirs) <= 1, f'Fashion-MNIST, quantized without training: top-1 {quantized:.2f} %')


compare('resnet18', 'resnet18', 224)
compare('mobilenet_v2', 'mobilenet_v2', 224)
compare('mobilenet_v2', 'mobilenet_v2', 97, 20)
compare('resnet50', 'resnet50', 65, 20)
fine_tune()
sys.exit(failed)
