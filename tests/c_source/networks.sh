# Sourced by tests and measurements: the networks that people put on microcontrollers, trained for two steps. Bytes, sizes
# and the bits of the arithmetic do not depend on how well a network answers. Expects $tools.
drawn_networks="quickstart fashion resnet20 mobilenet_v1 mobilenet_v2 signals keyword_state autoencoder ssd"
imported_networks="keyword_spotting visual_wake_words image_classification anomaly_detection" # of MLPerf Tiny
recipes=${QAT_SOURCE_ROOT:?}/recipes
zoo=${QAT_DATA:-$QAT_SOURCE_ROOT/../shared/data}/models/mlperf-tiny

# recipe_of NAME: a recipe and settings. A program draws the data, of the sizes that the recipes' own data have.
recipe_of() {
    case $1 in
    quickstart) echo quickstart ;;
    fashion) echo fashion_mnist data.kind=digits ;;
    resnet20) echo cifar10_resnet20 data.kind=shapes ;;
    mobilenet_v1) echo cifar10_mobilenet data.kind=shapes data.height=96 model.multiplier=0.25 model.first_stride=2 ;;
    mobilenet_v2) echo mobilenet_v2_micro ;;
    signals) echo regression ;;
    keyword_state) echo keyword_gru ;;
    autoencoder) echo anomaly ;;
    ssd) echo detect_cards data.kind=scenes ;;
    mobilenet4) echo few_bits/mobilenet data.kind=shapes distill.weight=0 ;;
    resnet2) echo few_bits/resnet20 data.kind=shapes distill.weight=0 quant.weight_bits=2 quant.input_bits=2 quant.activation_bits=2 ;;
    esac
}

# settings_of NAME: the arguments of qat-train
settings_of() {
    set -- $(recipe_of "$1")
    echo "$recipes/$1.ini"
    shift
    for setting in train.steps=2 train.batch=4 data.train_count=16 data.test_count=8 quant.quant_delay=0 \
        quant.bn_freeze_delay=never "$@"; do
        echo "--set $setting"
    done
}

file_of() {
    case $1 in
    keyword_spotting) echo kws_ref_model ;;
    visual_wake_words) echo vww_96_int8 ;;
    image_classification) echo pretrainedResnet_quant ;;
    anomaly_detection) echo model_ToyCar_quant_fullint_micro_intio ;;
    esac
}

# make_network NAME: NAME.qm in this folder
make_network() {
    if [ -n "$(file_of "$1")" ]; then
        "$tools/qat-import" "$zoo/$(file_of "$1").tflite" "$1.qm" >made.txt 2>&1
        return
    fi
    "$tools/qat-train" $(settings_of "$1") --out "run-$1" >made.txt 2>&1 &&
        "$tools/qat-export" "run-$1/last.ckpt" "$1.qm" --samples 4 >made.txt 2>&1
}
