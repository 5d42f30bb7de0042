# What the layers of net.c are: number, kind, work. The work of convolutions and fully connected layers is their
# multiply-adds, that of the others their values: those of the input of pools, else those of the output.
function values(text, dims) {
    sub(/^[^[]*\[/, "", text)
    sub(/\].*/, "", text)
    n = split(text, dims, ", ")
    product = 1
    for (i = 1; i <= n; i++)
        product *= dims[i]
    return product
}
function dims_of(text, dims) {
    sub(/^[^[]*\[/, "", text)
    sub(/\].*/, "", text)
    return split(text, dims, ", ")
}
function end() {
    if (!layer)
        return
    if (op == "conv2d") {
        dims_of(w, d)
        kind = op (d[2] * d[3] == 1 ? " 1x1" : " k x k")
        work = values(y) * values(w) / d[1]
    } else if (op == "depthwise_conv2d") {
        dims_of(w, d)
        kind = op
        work = values(y) * d[2] * d[3]
    } else if (op == "fully_connected") {
        n = dims_of(y, d)
        kind = op
        work = values(y) * values(w) / d[n]
    } else {
        kind = op
        work = op ~ /pool|mean/ ? values(x) : values(y)
    }
    gsub(/ /, "_", kind)
    print layer, kind, work
    layer = 0
}
/^ \* Layer [0-9]+: / { end(); layer = $3 + 0; op = $4; w = x = y = "" }
layer && /^ \*   (x|a|x0) / && x == "" { x = $0 }
layer && /^ \*   w / { w = $0 }
layer && /^ \*   y / { y = $0 }
END { end() }
