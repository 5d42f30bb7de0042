"""Top-1 of a .tflite model under LiteRT's reference kernels, on the very bytes that qat-eval gave the engine.

    qat-eval MODEL.qm --data list:labels.txt --central-crop 0.875 --json --dump-inputs DIR
    python3 imagenet_check.py MODEL.tflite DIR

DIR holds <sample>.npy and labels.txt, as --dump-inputs writes them. Needs ai-edge-litert and numpy; prints one JSON line.
"""
import argparse
import json
import os

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def samples(folder):
    with open(os.path.join(folder, 'labels.txt')) as file:
        for line in file:
            name, label = line.split()
            yield np.load(os.path.join(folder, name)), int(label)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('model')
    parser.add_argument('folder')
    parser.add_argument('--threads', type=int, default=2)
    args = parser.parse_args()
    interpreter = Interpreter(model_path=args.model, num_threads=args.threads,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    source = interpreter.get_input_details()[0]['index']
    answer = interpreter.get_output_details()[0]['index']
    count = right = 0
    for pixels, label in samples(args.folder):
        interpreter.set_tensor(source, pixels)
        interpreter.invoke()
        scores = interpreter.get_tensor(answer)[0]
        right += int(np.argmax(scores)) == label  # of equal scores the lowest class
        count += 1
    print(json.dumps({'model': os.path.basename(args.model), 'kernels': 'LiteRT BUILTIN_REF', 'n': count,
                      'top1': right / count}))


main()
