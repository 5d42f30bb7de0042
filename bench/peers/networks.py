"""The nine networks that run.sh and ../roof_share measure: how their files are called, made and imported.

Reads the environment that run.sh describes. Needs Python's own library alone.
"""
import os
import subprocess

BUILD = os.environ.get('QAT_BUILD', 'build')
SCRIPTS = os.environ.get('PEERS_SCRIPTS', '../shared/peers')
MODELS = os.environ.get('PEERS_MODELS', os.path.join(BUILD, 'peers'))
PYTHON = os.environ.get('PEERS_PYTHON', 'python3')
TORCH = os.environ.get('PEERS_TORCH', PYTHON)

NETWORKS = {  # the stem of the files: what tables call it, runs of one measurement
    'mobilenet_v1_0.25_128': ('MobileNet v1 0.25/128', 600),
    'mobilenet_v1_0.5_160': ('MobileNet v1 0.5/160', 300),
    'mobilenet_v1_1.0_224': ('MobileNet v1 1.0/224', 100),
    'mobilenet_v2': ('MobileNet v2', 100),
    'mobilenet_v3_small': ('MobileNet v3 small', 200),
    'efficientnet_b0': ('EfficientNet-B0', 60),
    'resnet50': ('ResNet-50', 30),
    'inception_v3': ('Inception v3', 25),
    'densenet121': ('DenseNet-121', 30),
}
TFLITE = ('_float.tflite', '_int8.tflite')
ONNX = ('_float.onnx', '_qdq.onnx')
INT8 = '_int8.tflite'  # what qat-import reads


def title(net):
    return NETWORKS[net][0]


def path(net, ending):
    return os.path.join(MODELS, net + ending)


def missing(net, endings):
    return [ending for ending in endings if not os.path.isfile(path(net, ending))]


def chosen(text):
    """The networks that a list names; a message about one that is unknown."""
    nets = text.split(',') if text else list(NETWORKS)
    unknown = [net for net in nets if net not in NETWORKS]
    if unknown:
        raise SystemExit(f'no network {unknown[0]}; there are {", ".join(NETWORKS)}')
    return nets


def run(words):
    """None, or the last line of what the command complained of."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        return str(error)
    lines = done.stdout.strip().splitlines() or ['it ended without a word']
    return lines[-1][:200] if done.returncode else None


def make(net, endings):
    """Make the files that are missing; returns None, or a sentence about those that could not be made."""
    if not missing(net, endings):
        return None
    os.makedirs(MODELS, exist_ok=True)
    kind, _, size = net.partition('_v1_')
    if size:
        python, words = PYTHON, ['make_models.py', MODELS, '--sizes', size]
    else:
        python, words = (TORCH if endings == ONNX else PYTHON), ['make_zoo.py', MODELS, '--nets', net]
    complaint = run([python, os.path.join(SCRIPTS, words[0]), *words[1:]])
    lacking = missing(net, endings)
    if not lacking:
        return None
    why = complaint or f'{python} lacks a package that {words[0]} needs'
    return f'{title(net)}: no {" and ".join(net + ending for ending in lacking)}: {why}'


def imported(net):
    """The .qm of a network, and None; or None, and a sentence that says why there is none."""
    complaint = make(net, (INT8,))
    if complaint:
        return None, complaint
    qm = os.path.join(BUILD, net + '.qm')
    complaint = run([os.path.join(BUILD, 'tools/qat-import'), path(net, INT8), qm])
    return (None, f'{title(net)}: {complaint}') if complaint else (qm, None)
