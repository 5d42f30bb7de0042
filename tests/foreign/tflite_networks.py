"""Networks of Keras, as float .tflite files, beside the same networks here.

    tflite_networks.py TOOLS FLOAT_OUTPUTS

Weights are random. Each file becomes a checkpoint by a run of zero steps, and the outputs of its
float network (FLOAT_OUTPUTS) are those of TensorFlow Lite, within 1e-4 of the largest one.
Prints a line "ok - ..." or "not ok - ..." each.
"""
import os
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tools, float_outputs = sys.argv[1:3]
layers = tf.keras.layers
failed = 0

RECIPE = """[data]
kind = shapes
train_count = 20
test_count = 20
height = 64
width = 64
mean = 0
std = 1
[model]
tflite = {name}.tflite
[train]
epochs = 0
batch = 4
eval_batch = 4
[quant]
enabled = no
[output]
dir = {name}
"""


def convolutions(x):
    x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu6")(x)
    x = layers.DepthwiseConv2D(3, padding="valid", depth_multiplier=2)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2D(12, 3, dilation_rate=2, padding="valid")(x)
    x = layers.SeparableConv2D(16, (3, 5), padding="same", activation="tanh")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(10, activation="softmax")(x)


def joins(x):
    a = layers.Conv2D(8, 3, padding="same", activation="hard_swish")(x)
    b = layers.LeakyReLU(0.2)(layers.Conv2D(8, 1)(layers.ZeroPadding2D(((1, 0), (0, 2)))(x)))
    b = layers.Cropping2D(((0, 1), (1, 1)))(b)
    gate = layers.Reshape((1, 1, 8))(layers.GlobalAveragePooling2D()(a))
    gate = layers.Conv2D(8, 1, activation="sigmoid")(gate)
    x = layers.Concatenate()([layers.Multiply()([a, gate]), layers.Add()([a, b]), b])
    x = layers.PReLU(shared_axes=[1, 2], alpha_initializer="random_uniform")(x)
    x = layers.AveragePooling2D(3, 2, padding="same")(layers.MaxPooling2D(2)(x))
    x = layers.Concatenate(axis=1)([x, x[:, ::2, :, :]])
    x = layers.Conv2DTranspose(6, 3, strides=2, padding="same")(x)
    x = layers.Conv2DTranspose(4, 2, strides=2, padding="valid", activation="relu")(x)
    x = layers.Permute((2, 1, 3))(layers.ReLU()(x))
    x = layers.UpSampling2D(2, interpolation="bilinear")(x)
    return layers.Dense(10)(layers.Flatten()(x))


def mobilenet(x):
    return tf.keras.applications.MobileNetV2(input_tensor=x, alpha=0.35, weights=None, classes=10).output


def convert(name, make, halves):
    tf.keras.utils.set_random_seed(1)
    x = tf.keras.Input((64, 64, 3), batch_size=1)
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(x, make(x)))
    if halves:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.target_spec.supported_types = [tf.float16]
    with open(name + ".tflite", "wb") as f:
        f.write(converter.convert())


def answers(name, x):
    interpreter = tf.lite.Interpreter(name + ".tflite")
    interpreter.allocate_tensors()
    rows = []
    for one in x:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], one[None])
        interpreter.invoke()
        rows.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
    return np.array(rows)


def check(name, make, halves=False):
    global failed
    convert(name, make, halves)
    x = np.random.default_rng(1).standard_normal((8, 64, 64, 3)).astype(np.float32)
    np.save("x.npy", x)
    want = answers(name, x)
    with open(name + ".ini", "w") as f:
        f.write(RECIPE.format(name=name))
    for command in ([f"{tools}/qat-train", name + ".ini", "--overwrite"],
                    [float_outputs, f"{name}/last.ckpt", "x.npy", "y.npy"]):
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode:
            print(f"not ok - {name}: {(p.stdout + p.stderr).strip().splitlines()[-1][:300]}", flush=True)
            failed = 1
            return
    worst = np.abs(np.load("y.npy") - want).max() / np.abs(want).max()
    failed |= not worst <= 1e-4
    print(f"{'ok' if worst <= 1e-4 else 'not ok'} - {name}: differs by {worst:.2g} of the largest output", flush=True)


check("convolutions", convolutions)
check("convolutions_float16", convolutions, halves=True)
check("joins", joins)
check("mobilenet_v2", mobilenet)
sys.exit(failed)
