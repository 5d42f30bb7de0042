"""Quantized networks of Keras and TensorFlow beside qat-import: LiteRT's reference kernels give the answers.

    tflite_quantized.py TOOLS [NAME...]

It writes into the current folder; files that are there already are not made again.
The networks are made of the blocks that public models are made of, with random weights. TensorFlow's converter
quantizes each to int8 and to int16 activations with int8 weights. All bytes of all outputs of several runs must be
equal; models with variables carry on from run to run. REFUSED says what must be refused, and why. Prints a line "ok - ..." or "not ok - ..." for each file.
"""
import contextlib
import os
import struct
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from ai_edge_litert import schema_py_generated as fb
from ai_edge_litert.interpreter import Interpreter, OpResolverType

tools, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
L, A = tf.keras.layers, tf.keras.activations
RUNS = 3
NETWORKS = {}  # name: shapes of inputs, function, options


def network(*shapes, batch=1, wide=True):
    """A function of tensors becomes a network. wide: also with int16 activations."""
    def add(f):
        NETWORKS[f.__name__] = shapes, f, batch, wide
        return f
    return add


def call(f, *x, **named):
    """TensorFlow's functions between Keras layers."""
    return L.Lambda(lambda v: f(*v, **named) if isinstance(v, (list, tuple)) else f(v, **named))(x if len(x) > 1 else x[0])


def conv(x, n, k=3, s=1, act="relu6", **more):
    x = L.Conv2D(n, k, strides=s, padding="same", use_bias=False, **more)(x)
    x = L.BatchNormalization()(x)
    return L.Activation(act)(x) if act else x


def depthwise(x, k=3, s=1, act="relu6"):
    x = L.BatchNormalization()(L.DepthwiseConv2D(k, strides=s, padding="same", use_bias=False)(x))
    return L.Activation(act)(x) if act else x


def squeeze_excite(x, gate="sigmoid"):
    n = x.shape[-1]
    s = L.GlobalAveragePooling2D(keepdims=True)(x)
    s = L.Conv2D(n, 1, activation=gate)(L.Conv2D(max(n // 4, 1), 1, activation="relu")(s))
    return L.Multiply()([x, s])


def inverted(x, n, s=1, act="relu6", se=None):
    y = depthwise(conv(x, 3 * x.shape[-1], 1, act=act), s=s, act=act)
    y = conv(squeeze_excite(y, se) if se else y, n, 1, act=None)
    return L.Add()([x, y]) if s == 1 and x.shape[-1] == n else y


def head(x, n=10):
    return L.Dense(n, activation="softmax")(L.GlobalAveragePooling2D()(x))


# ---------------------------------------------------------------- pictures

@network((32, 32, 3), batch=None)
def mobilenet_v1(x):
    return head(conv(depthwise(conv(x, 8, s=2)), 12, 1))


@network((32, 32, 3))
def mobilenet_v2(x):
    return head(inverted(inverted(conv(x, 8, s=2), 8), 12, 2))


@network((32, 32, 3))
def mobilenet_v3(x):
    x = inverted(conv(x, 8, s=2, act="hard_swish"), 8, act="hard_swish", se="hard_sigmoid")
    return L.Dense(10)(L.Dense(16, activation="hard_swish")(L.Flatten()(L.AveragePooling2D(4)(x))))


@network((32, 32, 3))
def keras_mobilenet_v3(x):
    return tf.keras.applications.MobileNetV3Small(input_tensor=x, alpha=0.35, weights=None, classes=10, minimalistic=False,
                                                  include_preprocessing=True).output


@network((32, 32, 3))
def efficientnet(x):
    x = L.Normalization(mean=[0.5, 0.4, 0.3], variance=[0.1, 0.2, 0.3])(L.Rescaling(1 / 255.0)(x))
    return head(inverted(inverted(conv(x, 8, s=2, act="swish"), 8, act="swish", se="sigmoid"), 12, 2, act="swish"))


@network((32, 32, 3))
def deeplab(x):
    size = x.shape[1:3]
    x = inverted(conv(x, 8, s=2), 8)
    y = [conv(x, 8, 1, act="relu")] + [conv(x, 8, dilation_rate=r, act="relu") for r in (2, 4)]
    pooled = conv(L.AveragePooling2D(x.shape[1:3])(x), 8, 1, act="relu")
    y.append(call(lambda v: tf.image.resize(v, x.shape[1:3]), pooled))
    y = L.Conv2D(5, 1)(conv(L.Concatenate()(y), 8, 1, act="relu"))
    y = call(lambda v: tf.image.resize(v, size), y)
    return y, call(lambda v: tf.argmax(v, -1, output_type=tf.int32), y)


@network((33, 33, 3))
def dilated(x):
    x = L.DepthwiseConv2D(3, dilation_rate=2, padding="same")(x)
    x = L.Conv2D(4, 3, dilation_rate=3, activation="relu")(x)
    return L.Conv1D(4, 3, dilation_rate=2, padding="causal")(L.Reshape((-1, 4))(x))


@network((32, 32, 3))
def posenet(x):
    x = inverted(conv(x, 8, s=2), 8)
    return L.Conv2D(17, 1, activation="sigmoid")(x), L.Conv2D(34, 1)(x), L.Conv2D(8, 1)(x)


@network((32, 32, 3))
def blazeface(x):
    x = conv(x, 8, 5, 2, act="relu")
    y = conv(depthwise(x, 5, 2, act=None), 12, 1, act=None)
    skip = call(lambda v: tf.pad(v, [[0, 0], [0, 0], [0, 0], [0, 4]]), L.MaxPooling2D(2)(x))
    x = L.PReLU(shared_axes=[1, 2], alpha_initializer="random_uniform")(L.Add()([y, skip]))
    a, b = L.Conv2D(2, 1)(x), L.Conv2D(6, 3, strides=2, padding="same")(x)
    return (L.Concatenate(axis=1)([L.Reshape((-1, 1))(a), L.Reshape((-1, 1))(b)]),
            L.Concatenate(axis=1)([L.Reshape((-1, 16))(L.Conv2D(32, 1)(x)), L.Reshape((-1, 16))(L.Conv2D(96, 3, 2, "same")(x))]))


@network((64, 64, 3))
def yolo_v3(x):
    x = conv(x, 8, s=4, act=L.LeakyReLU(0.1))
    route = conv(x, 8, s=2, act=L.LeakyReLU(0.1))
    y = conv(L.MaxPooling2D(2, 1, padding="same")(route), 12, act=L.LeakyReLU(0.1))
    up = L.Concatenate()([L.UpSampling2D(2)(conv(y, 6, 1, act=L.LeakyReLU(0.1))), x])
    return L.Conv2D(21, 1)(y), L.Conv2D(21, 1)(up)


def yolo_detect(x, stride, classes=3):
    h, w = x.shape[1:3]
    y = L.Conv2D(3 * (5 + classes), 1)(x)
    y = L.Permute((2, 1, 3))(L.Reshape((h * w, 3, 5 + classes))(y))
    y = L.Activation("sigmoid")(y)
    grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)), -1).reshape(1, 1, h * w, 2).astype("f") - 0.5
    anchors = np.array([[10, 13], [16, 30], [33, 23]], "f").reshape(1, 3, 1, 2) * 4 / 64
    xy = call(lambda v: (v[..., 0:2] * 2 + grid) * (stride / 64), y)
    wh = call(lambda v: (v[..., 2:4] * 2) ** 2 * anchors, y)
    y = L.Concatenate()([xy, wh, call(lambda v: v[..., 4:], y)])
    return L.Reshape((3 * h * w, 5 + classes))(y)


@network((64, 64, 3))
def yolo_v5(x):
    x = conv(x, 8, 6, 4, act="swish")
    y = conv(x, 4, 1, act="swish")
    y = L.Concatenate()([L.Add()([y, conv(conv(y, 4, 1, act="swish"), 4, act="swish")]), conv(x, 4, 1, act="swish")])
    p = [y]
    for _ in range(3):  # SPPF
        p.append(L.MaxPooling2D(5, 1, padding="same")(p[-1]))
    y = conv(L.Concatenate()(p), 8, 1, act="swish")
    return L.Concatenate(axis=1)([yolo_detect(y, 4), yolo_detect(conv(y, 8, s=2, act="swish"), 8)])


@network((64, 64, 3))
def yolo_v8(x):
    x = conv(x, 8, s=4, act="swish")
    y = conv(x, 8, 1, act="swish")
    a, b = call(lambda v: tf.split(v, 2, -1), y)
    y = conv(L.Concatenate()([a, b, conv(conv(b, 4, act="swish"), 4, act="swish")]), 8, 1, act="swish")
    levels = [y, conv(y, 8, s=2, act="swish")]
    both = [L.Reshape((-1, 68))(L.Conv2D(68, 1)(v)) for v in levels]
    y = L.Permute((2, 1))(L.Concatenate(axis=1)(both))
    box, score = call(lambda v: tf.split(v, [64, 4], 1), y)
    n = box.shape[-1]
    box = call(lambda v: tf.nn.softmax(tf.transpose(tf.reshape(v, [1, 4, 16, n]), [0, 3, 1, 2])), box)
    box = L.Reshape((n, 4))(L.Conv2D(1, 1, use_bias=False)(box))
    box = L.Permute((2, 1))(box)
    anchors = np.random.default_rng(1).uniform(0, 16, (1, 2, n)).astype("f")
    low, high = call(lambda v: tf.split(v, 2, 1), box)
    low, high = call(lambda v: anchors - v, low), call(lambda v: anchors + v, high)
    centre = call(lambda p, q: (p + q) / 2, low, high)
    box = L.Concatenate(axis=1)([centre, L.Subtract()([high, low])])
    return L.Concatenate(axis=1)([call(lambda v: v * 4, box), L.Activation("sigmoid")(score)])


@network((16, 16, 8))
def shufflenet(x):
    a, b = call(lambda v: tf.split(v, 2, -1), x)
    b = conv(depthwise(conv(b, 4, 1, act="relu"), act=None), 4, 1, act="relu")
    y = L.Concatenate()([a, b])
    return call(lambda v: tf.reshape(tf.transpose(tf.reshape(v, [-1, 16, 16, 2, 4]), [0, 1, 2, 4, 3]), [-1, 16, 16, 8]), y)


@network((16, 16, 3))
def super_resolution(x):
    y = L.Conv2D(12, 3, padding="same")(L.Conv2D(8, 5, padding="same", activation="tanh")(x))
    y = call(lambda v: tf.nn.depth_to_space(v, 2), y)
    skip = call(lambda v: tf.image.resize(v, [32, 32], method="nearest"), x)
    y = L.Add()([y, skip])
    return call(lambda v: tf.clip_by_value(v, 0.0, 1.0), y)


@network((16, 16, 3))
def anchored_super_resolution(x):
    y = L.Conv2D(27, 3, padding="same", activation="relu")(x)
    y = L.Add()([y, L.Concatenate()([x] * 9)])
    return call(lambda v: tf.clip_by_value(tf.nn.depth_to_space(v, 3), 0.0, 255.0), y)


@network((16, 16, 3))
def style_transfer(x):
    x = call(lambda v: tf.pad(v, [[0, 0], [2, 2], [2, 2], [0, 0]], "REFLECT"), x)
    x = L.Conv2D(8, 5)(x)

    def instance_norm(v):
        mean = tf.reduce_mean(v, [1, 2], keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(v, mean), [1, 2], keepdims=True)
        return (v - mean) * tf.math.rsqrt(variance + 1e-3)
    y = L.ReLU()(call(instance_norm, x))
    y = L.Conv2D(6, 3, padding="same")(L.UpSampling2D(2)(L.Conv2D(8, 3, strides=2, padding="same")(y)))
    y = L.Conv2DTranspose(3, 3, strides=2, padding="same")(y)
    return call(lambda v: tf.tanh(v) * 127.5 + 127.5, y)


@network((16, 16, 3))
def unet(x):
    a = conv(x, 6, act="relu")
    b = conv(L.MaxPooling2D(2)(a), 8, act="relu")
    c = L.Conv2DTranspose(6, 2, strides=2, activation="relu")(b)
    d = L.UpSampling2D(2, interpolation="bilinear")(b)
    y = L.Concatenate()([a, c, d])
    return L.Conv2D(4, 1, activation="softmax")(L.Cropping2D(1)(L.ZeroPadding2D(1)(y)))


@network((16, 16, 3))
def resizes(x):
    make = lambda how, size, corners, half: call(
        lambda v: getattr(tf.compat.v1.image, "resize_" + how)(v, size, align_corners=corners, half_pixel_centers=half), x)
    return (make("bilinear", [20, 24], True, False), make("bilinear", [24, 9], False, False),
            make("nearest_neighbor", [20, 24], True, False), make("nearest_neighbor", [8, 33], False, True))


@network((16, 16, 6))
def convnext(x):
    y = L.LayerNormalization(epsilon=1e-3)(L.DepthwiseConv2D(7, padding="same")(x))
    y = L.Dense(6)(L.Dense(24, activation="gelu")(y))
    return head(L.Add()([x, y]))


@network((8, 8, 8))
def normalizations(x):
    a = L.GroupNormalization(2)(x)
    b = L.UnitNormalization()(x)
    c = call(lambda v: tf.math.l2_normalize(v, -1), x)
    return L.Add()([a, b]), c


@network((8, 8, 6))
def activations(x):
    names = "relu relu6 softplus swish mish hard_sigmoid hard_swish exponential leaky_relu gelu tanh sigmoid"
    y = [L.Activation(n)(L.Conv2D(3, 1)(x)) for n in names.split()]
    y += [L.LeakyReLU(0.3)(x), L.PReLU(alpha_initializer="random_uniform")(x), L.ReLU(1.0)(x), L.ReLU(max_value=4.0, threshold=0.5)(x)]
    return tuple(y)


@network((8, 8, 6))
def squares(x):
    return call(tf.square, x), call(tf.abs, x), call(tf.negative, x), call(lambda v: tf.sqrt(tf.nn.relu(v)), x), call(
        lambda v: tf.maximum(v, 0.1), x), call(lambda v: 1.0 - v, x), call(lambda v: v / 3.0, x)


@network((8, 6), (8, 6))
def binary(x, y):
    return (call(tf.maximum, x, y), call(tf.minimum, x, y), call(lambda a, b: a * b - b, x, y),
            call(lambda a, b: tf.where(a > b, a, b * 2), x, y), call(tf.math.squared_difference, x, y))


@network((8, 8, 6))
def reductions(x):
    return (call(lambda v: tf.reduce_max(v, [1, 2]), x), call(lambda v: tf.reduce_min(v, -1), x),
            call(lambda v: tf.reduce_mean(v, [1, 2], keepdims=True), x),
            call(lambda v: tf.reduce_mean(v, 3), x), L.GlobalMaxPooling2D()(x))


@network((8, 8, 6), wide=False)
def sums(x):
    return call(lambda v: tf.reduce_sum(v, 1), x), call(lambda v: tf.reduce_sum(v, [1, 2], keepdims=True), x)


@network((8, 8, 6))
def moves(x):
    y = L.Conv2D(6, 1)(x)
    return (call(lambda v: tf.tile(v, [1, 2, 1, 1]), y), call(lambda v: tf.gather(v, [3, 1, 1], axis=2), y),
            call(lambda v: tf.reverse(v, [1]), y), call(lambda v: tf.roll(v, 3, 1), y), call(lambda v: v[:, ::-2, 1:-1, 2], y),
            call(lambda v: tf.stack([v, v * 2], 1), y), call(lambda v: tf.unstack(v, axis=1)[3], y),
            call(lambda v: tf.nn.space_to_depth(v, 2), y), call(lambda v: tf.broadcast_to(v[:, :1], [1, 5, 8, 6]), y),
            call(lambda v: tf.repeat(v, 2, axis=1), y), call(lambda v: tf.expand_dims(tf.squeeze(v[:, :1], 1), -1), y))


@network((8, 8, 6))
def positions(x):
    y = L.Conv2D(6, 1)(x)
    best = call(lambda v: tf.math.top_k(v, 2).values, y)
    first = call(lambda v: tf.argmax(tf.reshape(v, [1, 64, 6]), 1, output_type=tf.int32), y)
    return best, first, call(lambda v: tf.expand_dims(tf.transpose(v), 0), first)


@network((8, 8, 6))
def top_positions(x):
    return tuple(call(lambda v: tuple(tf.math.top_k(tf.reshape(v, [1, -1]), 5)), L.Conv2D(2, 1)(x)))


@network((8, 8, 3), batch=None)
def free_batch(x):
    y = L.Flatten()(L.Conv2D(4, 3)(x))
    return L.Reshape((-1, 4))(L.Dense(8)(y)), L.Dense(5)(x)


@network((16, 16, 3))
def attention_picture(x):
    x = conv(x, 8, s=2)
    s = L.Concatenate()([call(lambda v: tf.reduce_mean(v, -1, keepdims=True), x), call(lambda v: tf.reduce_max(v, -1, keepdims=True), x)])
    return head(L.Multiply()([x, L.Conv2D(1, 7, padding="same", activation="sigmoid")(s)]))


@network((32, 32, 3))
def ssd(x):
    """Heads of two levels, one behind the other."""
    a = inverted(conv(x, 8, s=2), 8)
    b = inverted(a, 12, 2)
    boxes = [L.Reshape((-1, 4))(L.Conv2D(12, 3, padding="same")(v)) for v in (a, b)]
    scores = [L.Reshape((-1, 5))(L.Conv2D(15, 3, padding="same")(v)) for v in (a, b)]
    return L.Concatenate(axis=1)(boxes), L.Activation("sigmoid")(L.Concatenate(axis=1)(scores))


@network((32, 32, 3))
def efficientdet(x):
    """Levels go down and up again, weighted."""
    a = conv(x, 8, s=4, act="swish")
    b = conv(a, 8, s=2, act="swish")
    c = L.MaxPooling2D(3, 2, padding="same")(b)
    up = L.Activation("swish")(L.Add()([call(lambda v: v * 0.4, b), call(lambda v: v * 0.6, L.UpSampling2D(2)(c))]))
    top = L.Activation("swish")(L.Add()([a, L.UpSampling2D(2)(up)]))
    down = L.Add()([b, up, L.MaxPooling2D(3, 2, padding="same")(top)])
    heads = [L.Reshape((-1, 9))(L.Conv2D(9, 1)(L.SeparableConv2D(8, 3, padding="same")(v))) for v in (top, down, c)]
    return L.Concatenate(axis=1)(heads)


@network((32, 32, 3))
def east(x):
    """Text: pictures of scores, distances and angles."""
    a = conv(x, 8, s=2, act="relu")
    b = conv(a, 12, s=2, act="relu")
    y = L.Concatenate()([L.UpSampling2D(2, interpolation="bilinear")(b), a])
    y = conv(conv(y, 8, 1, act="relu"), 8, act="relu")
    score, box, angle = (L.Conv2D(n, 1, activation="sigmoid")(y) for n in (1, 4, 1))
    return score, L.Concatenate()([call(lambda v: v * 512.0, box), call(lambda v: (v - 0.5) * 3.14159, angle)])


@network((32, 32, 3))
def centernet(x):
    y = conv(conv(x, 8, s=2, act="relu"), 12, s=2, act="relu")
    y = L.ReLU()(L.BatchNormalization()(L.Conv2DTranspose(8, 4, strides=2, padding="same", use_bias=False)(y)))
    heat = L.Conv2D(3, 1, activation="sigmoid")(y)
    best = L.MaxPooling2D(3, 1, padding="same")(heat)
    return heat, best, L.Conv2D(2, 1)(y)


@network((16,), wide=False)
def generator(x):
    y = L.Reshape((4, 4, 8))(L.LeakyReLU(0.2)(L.Dense(128)(x)))
    y = L.LeakyReLU(0.2)(L.BatchNormalization()(L.Conv2DTranspose(8, 5, strides=2, padding="same")(y)))
    return L.Conv2DTranspose(3, 5, strides=2, padding="same", activation="tanh")(y)


@network((24, 32, 1))
def plates(x):
    """Letters along one axis: convolutions of one row or column, pooled context."""
    y = conv(conv(x, 8, (3, 1), act="relu"), 8, (1, 3), act="relu")
    context = L.AveragePooling2D((24, 4), (24, 4))(x)
    y = L.MaxPooling2D((24, 1), (1, 1))(y)
    y = L.AveragePooling2D((1, 4))(y)
    y = L.Concatenate()([y, L.Conv2D(4, 1)(context)])
    return L.Softmax()(call(lambda v: tf.squeeze(v, 1), L.Conv2D(12, 1)(y)))


# ---------------------------------------------------------------- transformers

def transformer(x, heads=2, act="gelu"):
    n = x.shape[-1]
    y = L.LayerNormalization(epsilon=1e-3)(x)
    x = L.Add()([x, L.MultiHeadAttention(heads, n // heads)(y, y)])
    y = L.LayerNormalization(epsilon=1e-3)(x)
    return L.Add()([x, L.Dense(n)(L.Dense(2 * n, activation=act)(y))])


@network((16, 16, 3))
def vision_transformer(x):
    y = L.Reshape((16, 8))(L.Conv2D(8, 4, strides=4)(x))
    y = call(lambda v: tf.concat([tf.ones([1, 1, 8]), v], 1) + tf.reshape(tf.linspace(-1.0, 1.0, 17 * 8), [17, 8]), y)
    return L.Dense(10)(call(lambda v: v[:, 0], transformer(y)))


@network((12, 8), batch=None)
def free_batch_transformer(x):
    return L.GlobalAveragePooling1D()(transformer(x, act="relu"))


@network((16, 16, 8))
def window_attention(x):
    y = call(lambda v: tf.reshape(tf.transpose(tf.reshape(v, [1, 4, 4, 4, 4, 8]), [0, 1, 3, 2, 4, 5]), [16, 16, 8]), x)
    y = transformer(y)
    return call(lambda v: tf.reshape(tf.transpose(tf.reshape(v, [1, 4, 4, 4, 4, 8]), [0, 1, 3, 2, 4, 5]), [1, 16, 16, 8]), y)


@network((8, 8, 8))
def mobile_vit(x):
    y = call(lambda v: tf.reshape(tf.transpose(tf.reshape(v, [4, 2, 4, 16]), [0, 2, 1, 3]), [1, 16, 4, 8]), x)
    y = call(lambda v: tf.transpose(v, [0, 2, 1, 3]), y)
    y = L.Reshape((4, 16, 8))(y)
    return L.Add()([y, L.MultiHeadAttention(2, 4, attention_axes=(2,))(y, y)])


@network((10, 8), (6, 8))
def dot_attention(x, y):
    return L.Attention(use_scale=False)([x, y]), L.Dot(axes=2)([x, y]), L.Dot(axes=-1, normalize=True)([x, y])


# ---------------------------------------------------------------- sounds and signals

@network((49, 10, 1))
def ds_cnn(x):
    x = depthwise(conv(x, 8, (10, 4), 2, act="relu"), act="relu")
    x = L.AveragePooling2D(x.shape[1:3])(L.Dropout(0.2)(conv(x, 8, 1, act="relu")))
    return L.Dense(12, activation="softmax")(L.Flatten()(x))


@network((128, 3))
def signal(x):
    x = L.Conv1D(8, 5, strides=2, padding="same", activation="relu")(x)
    x = L.MaxPooling1D(2)(L.SeparableConv1D(8, 3, activation="relu")(x))
    x = L.AveragePooling1D(2)(L.ZeroPadding1D(1)(L.DepthwiseConv1D(3)(x)))
    x = L.Conv1DTranspose(4, 3, strides=2)(L.UpSampling1D(2)(x))
    return L.Dense(6, activation="softmax")(L.GlobalAveragePooling1D()(L.BatchNormalization()(x))), L.GlobalMaxPooling1D()(x)


@network((40, 10))
def tc_resnet(x):
    x = L.Reshape((40, 1, 10))(x)
    y = conv(conv(x, 12, (9, 1), (2, 1), act="relu"), 12, (9, 1), act=None)
    return head(L.ReLU()(L.Add()([y, conv(x, 12, 1, (2, 1), act="relu")])))


@network((96, 16))
def wav2letter(x):
    y = L.Reshape((96, 1, 16))(x)
    for n, k, s in ((24, 48, 2), (24, 7, 1), (32, 1, 1)):
        y = L.LeakyReLU(0.2)(L.Conv2D(n, (k, 1), strides=(s, 1), padding="same")(y))
    return L.Softmax()(L.Conv2D(29, 1)(y))


@network((48, 32, 1))
def yamnet(x):
    y = conv(x, 8, s=2, act="relu")
    for n, s in ((12, 1), (16, 2)):
        y = conv(depthwise(y, s=s, act="relu"), n, 1, act="relu")
    y = L.GlobalAveragePooling2D()(y)
    return L.Dense(21, activation="sigmoid")(y), y


@network((1, 42), (8,), (12,), (10,))
def noise_suppression(x, a, b, c):
    """One frame through three recurrent layers whose states are inputs and outputs."""
    gru = lambda n, act: L.GRU(n, unroll=True, return_state=True, return_sequences=True, activation=act, reset_after=False)
    dense = L.Dense(8, activation="tanh")(x)
    voice, new_a = gru(8, "relu")(dense, initial_state=a)
    noise, new_b = gru(12, "relu")(L.Concatenate()([dense, voice, x]), initial_state=b)
    gains, new_c = gru(10, "relu")(L.Concatenate()([voice, noise, x]), initial_state=c)
    return L.Dense(22, activation="sigmoid")(gains), L.Dense(1, activation="sigmoid")(voice), new_a, new_b, new_c


@network((64,))
def autoencoder(x):
    y = x
    for n in (32, 8, 32):
        y = L.ReLU()(L.BatchNormalization()(L.Dense(n)(y)))
    return L.Dense(64)(y)


@network((12, 6))
def lstm(x):
    return L.Dense(4, activation="softmax")(L.LSTM(8)(x))


@network((12, 6))
def lstm_sequence(x):
    return L.LSTM(5, return_sequences=True, go_backwards=True)(L.LSTM(8, return_sequences=True)(x))


@network((12, 6))
def lstm_both_ways(x):
    return L.Dense(4)(L.Bidirectional(L.LSTM(5, return_sequences=True))(x))


@network((6, 6))
def lstm_unrolled(x):
    return L.Dense(4)(L.LSTM(5, unroll=True)(x))


@network((6, 6))
def gru_unrolled(x):
    return L.Dense(4)(L.GRU(5, unroll=True)(x))


@network((6, 6), (5,))
def gru_with_state(x, state):
    y, new = L.GRU(5, unroll=True, return_state=True, return_sequences=True, reset_after=False)(x, initial_state=state)
    return L.Dense(4, activation="sigmoid")(y), new


@network((1, 6), (8,), (8,))
def lstm_with_state(x, h, c):
    y, new_h, new_c = L.LSTM(8, unroll=True, return_state=True, return_sequences=True)(x, initial_state=[h, c])
    return L.Dense(4)(y), new_h, new_c


@network((6, 6))
def rnn_unrolled(x):
    return L.SimpleRNN(5, unroll=True)(x)


@network((6, 6))
def gru(x):
    return L.Dense(4)(L.GRU(5)(x))


@network((8, 5, 1))
def time_distributed(x):
    return L.TimeDistributed(L.Dense(4))(L.TimeDistributed(L.Flatten())(x))


@network((4, 8, 8, 2))
def frames(x):
    return L.GlobalAveragePooling3D()(L.TimeDistributed(L.Conv2D(4, 3))(x))


# ---------------------------------------------------------------- variables

class Streaming(tf.Module):
    """Frames go through windows that variables keep, as in streaming keyword spotters."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(1)
        self.w = [tf.Variable(rng.standard_normal(s).astype("f") * 0.3, trainable=False) for s in ((3, 1, 8, 6), (4, 6, 1, 1))]
        self.dense = tf.Variable(rng.standard_normal((6, 4)).astype("f"))
        self.windows = [tf.Variable(tf.zeros((1, 2, 1, 8))), tf.Variable(tf.zeros((1, 3, 1, 6)))]

    @tf.function(input_signature=[tf.TensorSpec([1, 1, 8])])
    def __call__(self, x):
        y = tf.concat([self.windows[0], tf.reshape(x, [1, 1, 1, 8])], 1)
        self.windows[0].assign(y[:, 1:])
        y = tf.nn.relu(tf.nn.conv2d(y, self.w[0], 1, "VALID"))
        y = tf.concat([self.windows[1], y], 1)
        self.windows[1].assign(y[:, -3:])
        y = tf.nn.relu(tf.nn.depthwise_conv2d(y, tf.transpose(self.w[1], [0, 3, 1, 2]), [1, 1, 1, 1], "VALID"))
        return tf.nn.sigmoid(tf.matmul(tf.reshape(y, [1, 6]), self.dense))


# ---------------------------------------------------------------- files and runs

def samples(shapes):
    rng = np.random.default_rng(3)
    return lambda: ([rng.uniform(-1, 1, (1,) + s).astype(np.float32) for s in shapes] for _ in range(20))


def write(path, name, kind):
    """kind: int8, int8 with float32 or uint8 outside, 16x8, or float32 with int8 weights."""
    tf.keras.utils.set_random_seed(1)
    if name == "streaming":
        module = Streaming()
        c = tf.lite.TFLiteConverter.from_concrete_functions([module.__call__.get_concrete_function()], module)
        c.experimental_enable_resource_variables = c._experimental_variable_quantization = True
        shapes = [(1, 8)]
    else:
        shapes, make, batch, _ = NETWORKS[name]
        x = [tf.keras.Input(s, batch_size=batch) for s in shapes]
        model = tf.keras.Model(x, make(*x))
        for w in model.weights:
            if "kernel" not in w.name and "variance" not in w.name:
                w.assign(w + tf.random.uniform(w.shape, -0.2, 0.2))
        function = tf.function(lambda *v: model(v if len(v) > 1 else v[0]), input_signature=[
            tf.TensorSpec((batch,) + s) for s in shapes])
        c = tf.lite.TFLiteConverter.from_concrete_functions([convert_variables_to_constants_v2(function.get_concrete_function())])
    c.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind != "weights":
        c.representative_dataset = samples(shapes)
    wide = kind == "int16"
    c.target_spec.supported_ops = [
        tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 if wide
        else tf.lite.OpsSet.TFLITE_BUILTINS if kind == "weights" else tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if kind not in ("float", "weights"):
        c.inference_input_type = c.inference_output_type = {"int8": tf.int8, "uint8": tf.uint8, "int16": tf.int16}[kind]
    with open(path, "wb") as f:
        f.write(c.convert())
    return shapes


def draw(rng, detail):
    if detail["dtype"] == np.float32:
        return rng.uniform(-1, 1, detail["shape"]).astype(np.float32)
    info = np.iinfo(detail["dtype"])
    return rng.integers(info.min, info.max + 1, detail["shape"]).astype(detail["dtype"])


OLDER = {fb.BuiltinOperator.TILE: 2, fb.BuiltinOperator.DEPTH_TO_SPACE: 1}  # as the reference kernels know them
NO_REFERENCE = {fb.BuiltinOperator.ELU, fb.BuiltinOperator.SUM}  # none, or one that adds 1/2 too much


def reference(path):
    """Drawn inputs of RUNS runs, and what LiteRT answers."""
    data = bytearray(open(path, "rb").read())
    m, how = fb.Model.GetRootAs(data, 0), OpResolverType.BUILTIN_REF
    for k in range(m.OperatorCodesLength()):
        code = m.OperatorCodes(k)
        operator, at = max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), code._tab.Offset(8)
        if at and operator in OLDER:
            struct.pack_into("<i", data, code._tab.Pos + at, OLDER[operator])
        if operator in NO_REFERENCE:
            how = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    i = Interpreter(model_content=bytes(data), experimental_op_resolver_type=how)
    i.allocate_tensors()
    rng, inputs, answers = np.random.default_rng(5), [], []
    for _ in range(RUNS):
        inputs.append([draw(rng, d) for d in i.get_input_details()])
        for d, x in zip(i.get_input_details(), inputs[-1]):
            i.set_tensor(d["index"], x)
        i.invoke()
        answers.append([i.get_tensor(d["index"]) for d in i.get_output_details()])
    return inputs, answers


def run(command):
    p = subprocess.run(command, capture_output=True, text=True)
    return p.stderr.strip() if p.returncode else ""


def at_most_four(x):
    """Of more axes the first are one in a .qm."""
    return x.reshape((-1,) + x.shape[-3:]) if x.ndim > 4 else x


def compare(path):
    """"" or what is wrong."""
    inputs, want = reference(path)
    problem = run([tools + "/qat-import", path, "m.qm"])
    if problem:
        return problem
    command = [tools + "/qat-run", "m.qm", "--steps"]
    for k in range(len(inputs[0])):
        np.save("x%d.npy" % k, np.stack([at_most_four(run[k]) for run in inputs]))
        command += ["--input", "x%d.npy" % k]
    for k in range(len(want[0])):
        command += ["--output", "y%d.npy" % k]
    problem = run(command)
    if problem:
        return problem
    for k in range(len(want[0])):
        a, b = np.stack([run[k] for run in want]), np.load("y%d.npy" % k)
        if a.tobytes() != b.tobytes():
            return "output %d: %d of %d bytes differ" % (k, np.count_nonzero(
                np.frombuffer(a.tobytes(), "u1") != np.frombuffer(b.tobytes().ljust(a.nbytes, b"?")[:a.nbytes], "u1")), a.nbytes)
    return ""


def converted(path, name, kind):
    """The converter may refuse, or crash: it has a process of its own."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            print("# %s %s: not converted: TensorFlow ends with signal %d" % (name, kind, os.WTERMSIG(status)), flush=True)
        return status == 0
    try:
        with contextlib.redirect_stdout(None):
            write(path, name, kind)
        status = 0
    except Exception as error:  # the converter's own refusal
        print("# %s %s: not converted: %s" % (name, kind, str(error).strip().split("\n")[0][:150]), flush=True)
        status = 1
    os._exit(status)


# The converter leaves a square of the model's float32 input in float32, before anything is quantized.
FLOAT_INPUT = "tensor 0 (v_0) is float32, and not a function of one 8-bit code"
REFUSED = {("squares", "float"): FLOAT_INPUT, ("normalizations", "float"): FLOAT_INPUT,
           ("generator", "weights"): "only the weights were quantized"}


def check(name, kind):
    """None: TensorFlow has no file or no answer."""
    path = "%s_%s.tflite" % (name, kind)
    if not (os.path.exists(path) and os.path.getsize(path)) and not converted(path, name, kind):
        return None
    try:
        problem = compare(path)
    except (RuntimeError, ValueError) as error:
        print("# %s %s: not run by LiteRT: %s" % (name, kind, str(error).split("\n")[0][:150]), flush=True)
        return None
    reason = REFUSED.get((name, kind), "")
    good = reason in problem if reason else not problem
    print("%s - %s %s%s" % ("ok" if good else "not ok", name, kind, problem and ": " + problem), flush=True)
    return good


results = []
for number, name in enumerate(list(NETWORKS) + ["streaming"]):
    if chosen and name not in chosen:
        continue
    kinds = ["int8", ("uint8", "float")[number % 2]] + (["int16"] if name == "streaming" or NETWORKS[name][3] else [])
    kinds += [kind for refused, kind in REFUSED if refused == name and kind not in kinds]
    results += [check(name, kind) for kind in kinds]
judged = [r for r in results if r is not None]
print("%d of %d files are equal, or refused as they must be; %d were not converted or not run" % (
    sum(judged), len(judged), len(results) - len(judged)))
sys.exit(0 if judged and all(judged) else 1)
