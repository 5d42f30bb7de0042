# Sourced by mutants.sh: the networks that mutated copies of qat-export have to convert. They are tiny,
# and trained for a few steps. Together they have every feature of the conversion: see the comment of
# each. Paths are relative to the folder they are made in.

cat >rich.ini <<'INI'
[data]
kind = folder
path = data/pictures
height = 12
width = 20
mean = 120, 110, 90
std = 60, 70, 55
[model]
name = every op that there is
arch = layers
bn_momentum = 0.6
bn_epsilon = 0.01
[layer.conv1]
op = conv2d
filters = 6
kernel = 3
kernel_w = 5
stride = 2
stride_w = 1
batch_norm = yes
activation = relu6
[layer.conv2]
op = conv2d
filters = 6
kernel = 3
groups = 2
dilation = 2
dilation_w = 1
bias = yes
batch_norm = yes
activation = relu
[layer.dw]
op = depthwise_conv2d
multiplier = 2
kernel = 2
kernel_w = 3
stride = 1
stride_w = 2
batch_norm = yes
activation = relu
[layer.largest]
op = max_pool2d
kernel = 3
kernel_w = 2
stride = 2
stride_w = 1
padding = same
[layer.mean]
op = average_pool2d
input = dw
kernel = 2
kernel_w = 3
stride = 2
stride_w = 1
padding = same
[layer.both]
op = concat
input = largest, mean
[layer.a]
op = conv2d
filters = 8
kernel = 1
batch_norm = yes
[layer.b]
op = conv2d
input = both
filters = 8
kernel = 3
kernel_w = 2
padding = same
bias = yes
[layer.sum]
op = add
input = a, b
activation = relu
[layer.difference]
op = sub
input = a, b
[layer.product]
op = mul
input = sum, difference
activation = relu6
[layer.squashed]
op = tanh
input = difference
[layer.scaled]
op = batch_norm
input = product
[layer.alone]
op = relu6
input = a
[layer.joined]
op = concat
input = squashed, scaled, alone
[layer.square]
op = conv2d
filters = 24
kernel = 3
batch_norm = yes
activation = relu
[layer.stacked]
op = concat
axis = 1
input = joined, square
[layer.gate]
op = logistic
[layer.smooth]
op = swish
input = stacked
[layer.gated]
op = mul
input = gate, smooth
[layer.pool]
op = global_average_pool
[layer.drop]
op = dropout
rate = 0.2
[layer.hidden]
op = fully_connected
units = 24
bias = yes
activation = relu
[layer.logits]
op = fully_connected
units = 3
bias = yes
[layer.answer]
op = softmax
[train]
steps = 16
batch = 8
optimizer = adam
lr = 0.03
eval_every = never
[quant]
enabled = yes
quant_delay = 4
[plugin]
path = libswish.so
INI

cat >plain.ini <<'INI'
[data]
kind = digits
train_count = 48
test_count = 9
[model]
name = a plain one
arch = convnet
filters = 5, 6
strides = 3, 2
bn_momentum = 0.6
bn_epsilon = 0.01
[train]
steps = 16
batch = 8
optimizer = adam
lr = 0.03
eval_every = never
[quant]
enabled = yes
quant_delay = 2
INI

cat >plugin.ini <<'INI'
[data]
kind = shapes
train_count = 24
test_count = 6
[model]
arch = layers
[layer.gain]
op = position_scale
[layer.conv]
op = conv2d
filters = 6
stride = 4
batch_norm = yes
[layer.act]
op = swish
beta = 1.5
[layer.pool]
op = max_pool2d
kernel = 3
[layer.logits]
op = fully_connected
units = 10
bias = yes
[train]
steps = 6
batch = 8
lr = 0.02
eval_every = never
[quant]
enabled = yes
[plugin]
path = libswish.so, libposition_scale.so
INI

cat >padded.ini <<'INI'
[data]
kind = digits
train_count = 24
test_count = 6
[model]
name = pixels of padding, other ones on each side
arch = layers
[layer.conv]
op = conv2d
filters = 5
kernel = 4
stride = 3
padding = 1, 2, 0, 3
batch_norm = yes
activation = relu
[layer.dw]
op = depthwise_conv2d
stride = 2
padding = 1, 0, 2, 1
bias = yes
[layer.largest]
op = max_pool2d
kernel = 3
stride = 2
padding = 1, 0, 0, 1
[layer.mean]
op = average_pool2d
kernel = 2
stride = 1
padding = 1, 0, 1, 1
count_padding = yes
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 10
bias = yes
[train]
steps = 6
batch = 8
lr = 0.02
eval_every = never
[quant]
enabled = yes
INI

cat >scenes.ini <<'INI'
[data]
kind = scenes
height = 64
train_count = 16
test_count = 6
[model]
arch = mobilenet_ssd
multiplier = 0.03
activation = relu6
bn_momentum = 0.6
[detect]
max_detections = 20
nms_iou = 0.55
score_threshold = 0.02
[train]
steps = 4
batch = 4
optimizer = adam
lr = 0.01
eval_every = never
[quant]
enabled = yes
quant_delay = 1
INI

# Every op, in both layouts and profiles: batch norm folded (two_pass and one_pass), behind a bias and
# without a convolution; strides, dilations, groups, kernels that are not square, padding on one side
# more than on the other; sums, products, concatenations of tensors with different ranges, tables.
network rich-uint8 rich.ini
network rich-int8 rich.ini quant.layout=int8 quant.bn_fold=one_pass
network rich-uint8-tflite rich.ini quant.profile=tflite train.seed=2
network rich-int8-tflite rich.ini quant.layout=int8 quant.profile=tflite quant.bn_freeze_delay=5 train.seed=3
# Fewer bits: everywhere, by layer; weights without a scale for each channel, with zero in the middle.
network rich-4-bits rich.ini quant.weight_bits=4 quant.activation_bits=4 train.seed=4
network rich-mixed rich.ini quant.layout=int8 "quant.layer @first.weight_bits=6" "quant.layer dw.weight_bits=5" \
    "quant.layer a.activation_bits=5" "quant.layer b.per_channel=no" "quant.layer square.activation_bits=3"
network rich-symmetric rich.ini "quant.layer conv1.symmetric=yes" "quant.layer hidden.symmetric=yes" \
    "quant.layer square.weight_bits=3"
# Ranges that are learned, powers of two, binary, ternary and power-of-two weights.
network rich-tqt rich.ini quant.ranges=tqt quant.learn_delay=4 quant.weight_bits=6 quant.activation_bits=6
network rich-lsq rich.ini quant.layout=int8 quant.ranges=lsq quant.learn_delay=4 quant.weight_bits=4
network rich-full rich.ini quant.layout=int8 quant.ranges=lsq quant.weight_ranges=lsq_full quant.learn_delay=4 quant.weight_bits=2
network rich-power-of-two rich.ini quant.layout=int8 quant.power_of_two=yes
train float plain.ini quant.enabled=no
network ternary plain.ini quant.weight_ranges=twn quant.weight_bits=2
network binary plain.ini quant.layout=int8 quant.weight_ranges=bwn quant.weight_bits=2
network inq plain.ini quant.weight_ranges=inq quant.weight_bits=4 quant.quant_delay=0 quant.bn_freeze_delay=0 train.init=float/last.ckpt
# Averages of the parameters; batch norm's averages anew.
network averaged plain.ini train.average_decay=0.8 model.output=softmax
network raw plain.ini train.average_decay=0.8 -- --raw-params
network reestimated plain.ini quant.layout=int8 -- --reestimate-bn 3
# Another profile than the recipe's.
network profiled plain.ini -- --profile tflite
# A float run, calibrated.
network calibrated plain.ini quant.enabled=no model.dropout=0.2 -- --ptq recipe
network calibrated-rich rich.ini quant.enabled=no -- --ptq recipe --ptq-samples 16 --set quant.layout=int8
network calibrated-corrected plain.ini quant.enabled=no data.kind=shapes -- --ptq recipe --equalize --correct-bias
network calibrated-mse plain.ini quant.enabled=no -- --ptq recipe --observer mse --set quant.layout=int8 --set quant.weight_bits=4
network calibrated-percentile plain.ini quant.enabled=no -- --ptq recipe --observer percentile:99
network calibrated-symmetric plain.ini quant.enabled=no quant.weight_bits=3 "quant.layer @first.symmetric=yes" \
    "quant.layer conv2.symmetric=yes" -- --ptq recipe --observer mse
# Pictures in files: squashed above; cropped, in grey, of a list and a table; MNIST's format, resized.
network cropped plain.ini data.kind=list data.path=data/list data.height=12 data.width=16 data.resize_short=18 \
    data.mean=100,120,130 data.std=50
network middle plain.ini data.kind=folder data.path=data/pictures data.height=14 data.width=10 data.central_crop=0.8
network grey plain.ini data.kind=folder data.path=data/pictures data.height=12 data.channels=1 data.resize_short=15
network idx plain.ini data.kind=idx data.path=data/idx data.height=8 data.width=12 model.arch=mlp model.hidden=9,9
# Real numbers: with a mean and std for each channel, and more channels than means.
network reals plain.ini data.kind=npy data.path=data/npy2 data.mean=5,9 data.std=3,4 model.strides=1,2 model.kernel=2
network signals plain.ini data.kind=npy data.path=data/npy6 data.mean=12 data.std=9 quant.layout=int8 model.strides=1,2
# Detectors without and with a background; attributes and a value.
network scenes scenes.ini
network scenes-background scenes.ini detect.classification=softmax quant.layout=int8 quant.profile=tflite
network faces plain.ini data.kind=faces data.height=32 data.train_count=16 attributes.low=2 attributes.high=80 attributes.steps=9
network table plain.ini data.kind=table data.path=data/table.csv data.train_images=pictures \
    data.attributes=colour=amber,light=dim data.value=age attributes.value=smooth_l1 attributes.low=15 attributes.high=55 \
    data.test_images=pictures data.height=16 data.resize_short=20
# Pixels of padding; an average that counts them.
network padded padded.ini
network padded-int8 padded.ini quant.layout=int8 quant.profile=tflite
# Networks by name: residual sums, inverted bottlenecks.
network resnet plain.ini model.arch=resnet model.depth=8 model.width=4 data.kind=shapes quant.layout=int8
# Layers of plugins: one with an integer kernel of its own, one that becomes a table.
network plugin plugin.ini
