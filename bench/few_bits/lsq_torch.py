#!/usr/bin/env python3
"""LSQ in PyTorch, as a peer of recipes/few_bits/resnet20.ini: the same network, data, float start, teacher,
epochs, batch, optimizer, learning rates and augmentation. Only the quantizer is another one.

Learned step size quantization (Esser et al. 2020, "Learned Step Size Quantization", ICLR): with a step s,
Q_N = 2^(b-1) and Q_P = 2^(b-1) - 1 for weights, Q_N = 0 and Q_P = 2^b - 1 for what convolutions read,

    v' = round(clip(v / s, -Q_N, Q_P)) s
    dv'/ds = round(v / s) - v / s inside, -Q_N or Q_P outside; dv'/dv = 1 inside, 0 outside

The gradient of s is multiplied by 1 / sqrt(n Q_P): n is the number of weights, or of values of one sample. s begins
with 2 mean(|v|) / sqrt(Q_P), of the weights or of the first batch. One step a tensor, as in the paper. The first and the
last layer have 8 bits. Batch norm is not folded, and there is no integer engine: accuracy is that of the simulation.

    qat-train recipes/cifar10_resnet20.ini --set quant.enabled=no --out runs/float
    qat-export runs/float/last.ckpt runs/float.npz --float
    bench/few_bits/lsq_torch.py runs/float.npz --data ../shared/data/cifar-10 --bits 4 --out runs/lsq4

The same command continues a run that was interrupted. It prints a line an epoch, and at the end the accuracy over all
test pictures. Needs PyTorch 2 and NumPy.
"""
import argparse
import glob
import gzip
import hashlib
import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MEAN, STD = (125.3, 123.0, 113.9), (63.0, 62.1, 66.7)
STAGES, BLOCKS, EPSILON, KEEP = (16, 32, 64), 3, 1e-3, 0.99
RECORD = 1 + 3 * 32 * 32  # of a CIFAR-10 file: class, then planes


class Step(torch.autograd.Function):
    """v' of v and s, with the gradients of the paper."""

    @staticmethod
    def forward(context, v, s, low, high, scale):
        x = v / s
        inside = (x > low) & (x < high)
        rounded = x.clamp(low, high).round()
        context.save_for_backward(torch.where(inside, rounded - x, rounded), inside)
        context.scale = scale
        return rounded * s

    @staticmethod
    def backward(context, gradient):
        of_step, inside = context.saved_tensors
        return gradient * inside, (gradient * of_step).sum() * context.scale, None, None, None


class Quantizer(nn.Module):
    def __init__(self, bits, signed):
        super().__init__()
        self.low, self.high = (-2.0 ** (bits - 1), 2.0 ** (bits - 1) - 1) if signed else (0.0, 2.0 ** bits - 1)
        self.signed = signed
        self.step = nn.Parameter(torch.tensor(1.0))
        self.register_buffer('begun', torch.tensor(False))

    def forward(self, v):
        if not self.begun:
            self.step.data.fill_(max(2 * v.detach().abs().mean().item() / math.sqrt(self.high), 1e-8))
            self.begun.fill_(True)
        count = v.numel() if self.signed else v[0].numel()
        return Step.apply(v, self.step, self.low, self.high, 1 / math.sqrt(count * self.high))


def same(size, kernel, stride):
    """The padding of both ends: as TensorFlow's SAME, the end gets the odd pixel."""
    total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


class Conv(nn.Module):
    """Convolution and batch norm; of bits, unless bits is None."""

    def __init__(self, name, inputs, outputs, kernel, stride, bits, signed_input=False):
        super().__init__()
        self.name, self.stride = name, stride
        self.weight = nn.Parameter(torch.empty(outputs, inputs, kernel, kernel))
        self.bn = nn.BatchNorm2d(outputs, eps=EPSILON, momentum=1 - KEEP)
        self.of_weights = Quantizer(bits, True) if bits else nn.Identity()
        self.of_input = Quantizer(bits, signed_input) if bits else nn.Identity()

    def forward(self, x):
        up, down = same(x.shape[2], self.weight.shape[2], self.stride)
        x = F.pad(self.of_input(x), (up, down, up, down))
        return self.bn(F.conv2d(x, self.of_weights(self.weight), stride=self.stride))


class Block(nn.Module):
    def __init__(self, name, inputs, outputs, bits):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1 = Conv(name + '/conv1', inputs, outputs, 3, stride, bits)
        self.conv2 = Conv(name + '/conv2', outputs, outputs, 3, 1, bits)
        self.shortcut = Conv(name + '/shortcut', inputs, outputs, 1, stride, bits) if stride > 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.conv2(F.relu(self.conv1(x))) + self.shortcut(x))


class ResNet20(nn.Module):
    def __init__(self, bits):
        super().__init__()
        ends = bits and 8
        self.first = Conv('conv1', 3, STAGES[0], 3, 1, ends, signed_input=True)
        widths = [STAGES[0]] + [width for width in STAGES for _ in range(BLOCKS)]
        self.blocks = nn.Sequential(*(
            Block(f'stage{i // BLOCKS + 1}/block{i % BLOCKS + 1}', widths[i], widths[i + 1], bits)
            for i in range(len(widths) - 1)))
        self.last = nn.Linear(STAGES[-1], 10)
        self.of_weights = Quantizer(ends, True) if ends else nn.Identity()
        self.of_input = Quantizer(ends, False) if ends else nn.Identity()

    def forward(self, x):
        x = self.blocks(F.relu(self.first(x))).mean((2, 3))
        return F.linear(self.of_input(x), self.of_weights(self.last.weight), self.last.bias)

    def load(self, path):
        """Take the parameters of a float network that qat-export --float wrote."""
        with np.load(path) as file:
            there = {key: torch.from_numpy(file[key].astype(np.float32)) for key in file.files}
        try:
            for conv in (m for m in self.modules() if isinstance(m, Conv)):
                conv.weight.data.copy_(there[conv.name + '/weights'].permute(0, 3, 1, 2))
                conv.bn.weight.data.copy_(there[conv.name + '/bn/gamma'])
                conv.bn.bias.data.copy_(there[conv.name + '/bn/beta'])
                conv.bn.running_mean.copy_(there[conv.name + '/bn/ema_mean'])
                conv.bn.running_var.copy_(there[conv.name + '/bn/ema_variance'])
            self.last.weight.data.copy_(there['logits/weights'])
            self.last.bias.data.copy_(there['logits/bias/bias'])
        except (KeyError, RuntimeError) as error:
            raise SystemExit(f'{path}: not the parameters of recipes/cifar10_resnet20.ini: {error}')


def read(folder, pattern, most):
    """Pixels [N,3,32,32] and classes of CIFAR-10's binary files, .gz or not."""
    paths = sorted(glob.glob(os.path.join(folder, pattern)))
    if not paths:
        raise SystemExit(f'{folder}: no files {pattern}')
    data = b''
    for path in paths:
        with (gzip.open if path.endswith('.gz') else open)(path, 'rb') as file:
            data += file.read()
    if len(data) % RECORD:
        raise SystemExit(f'{folder}/{pattern}: {len(data)} bytes, not a multiple of {RECORD}')
    records = torch.frombuffer(bytearray(data), dtype=torch.uint8).view(-1, RECORD)[:most]
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].long()


def normal(pixels):
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (MEAN, STD))
    return (pixels.float() - mean) / std


def augmented(pixels, random):
    """Crops of pictures with four pixels of black around them, half of them turned left to right."""
    padded, count = F.pad(pixels, (4, 4, 4, 4)), len(pixels)
    at = torch.randint(0, 9, (count, 2), generator=random).tolist()
    flip = torch.rand(count, generator=random) < 0.5
    cut = torch.stack([padded[i, :, y:y + 32, x:x + 32] for i, (y, x) in enumerate(at)])
    return torch.where(flip.view(-1, 1, 1, 1), cut.flip(3), cut)


def accuracy(network, pixels, classes):
    network.eval()
    with torch.no_grad():
        right = sum((network(normal(p)).argmax(1) == c).sum().item()
                    for p, c in zip(pixels.split(500), classes.split(500)))
    network.train()
    return 100 * right / len(classes)


def loss_of(answers, teacher, classes, weight, temperature):
    hard = F.cross_entropy(answers, classes)
    if not weight:
        return hard
    soft = F.kl_div(F.log_softmax(answers / temperature, 1), F.softmax(teacher / temperature, 1), reduction='batchmean')
    return (1 - weight) * hard + weight * temperature ** 2 * soft


class Run:
    """A training, which is saved after each epoch."""

    def __init__(self, o):
        self.o, self.path, self.epoch = o, os.path.join(o.out, 'last.pt'), 0
        torch.manual_seed(o.seed)
        self.random = torch.Generator().manual_seed(o.seed)
        self.network, self.teacher = ResNet20(o.bits), ResNet20(None).eval()
        self.network.load(o.float)
        self.teacher.load(o.float)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=o.lr)
        self.settings = {k: v for k, v in vars(o).items() if k not in ('out', 'data', 'threads', 'float')}
        with open(o.float, 'rb') as file:
            self.settings['float_sha256'] = hashlib.sha256(file.read()).hexdigest()
        if os.path.exists(self.path):
            self.restore()

    def restore(self):
        state = torch.load(self.path, weights_only=True)
        if state['settings'] != self.settings:
            raise SystemExit(f'{self.path}: a run with other settings: {state["settings"]}')
        self.epoch = state['epoch']
        self.network.load_state_dict(state['network'])
        self.optimizer.load_state_dict(state['optimizer'])
        self.random.set_state(state['random'])

    def save(self):
        state = {'settings': self.settings, 'epoch': self.epoch, 'network': self.network.state_dict(),
                 'optimizer': self.optimizer.state_dict(), 'random': self.random.get_state()}
        torch.save(state, self.path + '.new')
        os.replace(self.path + '.new', self.path)

    def step(self, pixels, classes, done, steps):
        o = self.o
        for group in self.optimizer.param_groups:
            group['lr'] = o.lr * (1 + math.cos(math.pi * done / steps)) / 2
        x = normal(augmented(pixels, self.random))
        with torch.no_grad():
            teacher = self.teacher(x) if o.distill else None
        loss = loss_of(self.network(x), teacher, classes, o.distill, o.temperature)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def train(self, pixels, classes, test):
        o, each = self.o, len(classes) // self.o.batch
        self.network.train()
        while self.epoch < o.epochs:
            order = torch.randperm(len(classes), generator=self.random)
            total = 0.0
            for i in range(each):
                batch = order[i * o.batch:(i + 1) * o.batch]
                total += self.step(pixels[batch], classes[batch], self.epoch * each + i, o.epochs * each)
            self.epoch += 1
            self.save()
            print(f'epoch {self.epoch}/{o.epochs}  loss {total / each:.4f}  test, top-1: '
                  f'{accuracy(self.network, *test):.2f} %', flush=True)


def options():
    p = argparse.ArgumentParser(description='LSQ in PyTorch, beside recipes/few_bits/resnet20.ini.')
    p.add_argument('float', help='parameters of the float network: qat-export last.ckpt FILE.npz --float')
    p.add_argument('--data', default='../shared/data/cifar-10', help="the folder of CIFAR-10's binary files")
    p.add_argument('--out', required=True, help='the folder of the run; a run that is there continues')
    p.add_argument('--bits', type=int, default=4, choices=range(2, 9), help='of weights and of what convolutions read')
    p.add_argument('--epochs', type=int, default=15)
    p.add_argument('--batch', type=int, default=64)
    p.add_argument('--lr', type=float, default=0.001)
    p.add_argument('--distill', type=float, default=0.5, help="share of the float network's answers; 0: labels alone")
    p.add_argument('--temperature', type=float, default=4)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--train-count', type=int, default=None, help='at most so many training pictures')
    p.add_argument('--test-count', type=int, default=None, help='at most so many test pictures')
    p.add_argument('--threads', type=int, default=1)
    return p.parse_args()


def main():
    o = options()
    torch.set_num_threads(o.threads)
    training = read(o.data, 'data_batch_*.bin*', o.train_count)
    test = read(o.data, 'test_batch.bin*', o.test_count)
    if len(training[1]) < o.batch:
        raise SystemExit(f'{len(training[1])} training pictures: fewer than a batch of {o.batch}')
    os.makedirs(o.out, exist_ok=True)
    run = Run(o)
    print(f'{len(training[1])} training pictures, {len(test[1])} test pictures; float, top-1: '
          f'{accuracy(run.teacher.eval(), *test):.2f} %', flush=True)
    run.teacher.eval()
    run.train(*training, test)
    print(f'LSQ, {o.bits} bits, seed {o.seed}: top-1 {accuracy(run.network, *test):.2f} % of {len(test[1])} test pictures')


if __name__ == '__main__':
    main()
