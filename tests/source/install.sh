#!/usr/bin/env bash
# What `meson install` puts into a prefix. The prefix is moved, and the environment is empty. Tested are the commands,
# their manuals, the recipes, the plugins, both libraries for C and C++, and which names they export. Each check
# prints one line, `ok -` or `not ok -`.
set -u
build=${QAT_BUILD_ROOT:?}
source=${QAT_SOURCE_ROOT:?}
. "$source/tests/common/checks.sh"
all="qat-train qat-export qat-import qat-eval qat-run qat-bench qat-inspect qat-sweep qat-data qat-debug qat-report"
warnings="-Wall -Wextra -Werror -pedantic"
sanitized=$(meson introspect "$build" --buildoptions | tr '}' '\n' | sed -n 's/.*"name": "b_sanitize", "value": "\([^"]*\)".*/\1/p')

skip() { # skip <what> <why>
    echo "SKIP install, $1: $2"
}

bare() { # bare <command...>: with an empty environment
    env -i "$@"
}

# ---------------------------------------------------------------- into a prefix, which then moves
check "meson install" env DESTDIR="$work/stage" meson install -C "$build" --no-rebuild --quiet
installed=$(find "$work/stage" -name qat-train -path '*/bin/*')
prefix=$work/moved
mv "$(dirname "$(dirname "$installed")")" "$prefix"
bin=$prefix/bin
libdir=$(dirname "$(find "$prefix" -name libqat.so)")
recipes=$prefix/share/qat/recipes
examples=$prefix/share/doc/qat/examples
for file in "$recipes/quickstart.ini" "$recipes/paper/ssd_coco.ini" "$examples/classify.c" "$examples/device/camera.c" \
    "$examples/device/microphone.c" \
    "$prefix/share/doc/qat/docs/recipes.md" "$prefix/share/doc/qat/README.md" "$libdir/libqat.a" \
    "$libdir/libqatinfer.a" "$libdir/qat/libswish.so" "$prefix/include/qat/qat.h"; do
    check "installed: ${file#"$prefix/"}" test -f "$file"
done

# ---------------------------------------------------------------- commands
version=$(sed -n 's/#define QAT_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$source/include/qat/version.h" | paste -sd .)
for tool in $all; do
    check "$tool --help" bare "$bin/$tool" --help
    has "$tool --help says how it is used" "^usage: $tool" out.txt
    check "$tool --version" bare "$bin/$tool" --version
    has "$tool: version $version" "^$tool $version\$" out.txt
done

for tool in $all; do
    page=$prefix/share/man/man1/$tool.1
    has "$tool.1 names it" "^$tool .*-" <(sed -n '/^\.SH NAME/{n;p}' "$page" | sed 's/\\//g')
    if command -v man >/dev/null; then
        check "man $tool" bare "$(command -v man)" -M "$prefix/share/man" --pager=cat "$tool"
        has "man $tool shows its options" "^ *--" out.txt
    else
        skip "man $tool" "no man (package man-db)"
    fi
done

quick="--set train.steps=2 --set quant.quant_delay=0 --set data.train_count=64 --set data.test_count=32"
# shellcheck disable=SC2086
check "qat-train by the installed recipe" bare "$bin/qat-train" "$recipes/quickstart.ini" $quick --out run
check "qat-export" bare "$bin/qat-export" run/last.ckpt m.qm --samples 16
check "qat-eval" bare "$bin/qat-eval" run/last.ckpt --samples 16
check "qat-inspect" bare "$bin/qat-inspect" m.qm
check "qat-bench" bare "$bin/qat-bench" m.qm --runs 2
# shellcheck disable=SC2086
check "qat-sweep finds qat-train beside it" bare "$bin/qat-sweep" "$recipes/quickstart.ini" $quick \
    --set quant.weight_bits=8,4 --out sweep
tflite=$(find "$source/tests/golden/data" -name '*.tflite' | sort | head -n 1)
check "qat-import" bare "$bin/qat-import" "$tflite" imported.qm
head -c 100000 /dev/zero >black.raw

# ---------------------------------------------------------------- plugins
cat >plugins.ini <<INI
[data]
kind = digits
train_count = 64
test_count = 32
[model]
arch = layers
[layer.act]
op = swish
[layer.gain]
op = position_scale
[layer.flat]
op = flatten
[layer.logits]
op = fully_connected
units = 10
[train]
steps = 2
batch = 16
[quant]
enabled = yes
[plugin]
path = $libdir/qat/libswish.so, $libdir/qat/libposition_scale.so
INI
check "installed plugins train" bare "$bin/qat-train" plugins.ini --out with-plugins
check "installed plugins export" bare "$bin/qat-export" with-plugins/last.ckpt p.qm --samples 16 \
    --plugin "$libdir/qat/libswish.so" --plugin "$libdir/qat/libposition_scale.so"

# ---------------------------------------------------------------- programs of users
if ! command -v pkg-config >/dev/null; then
    skip "programs of users" "no pkg-config"
    exit $failed
fi
if ! grep -q 'pcfiledir' "$libdir/pkgconfig/libqat.pc"; then
    skip "pkg-config of a moved prefix" "this build folder is older: meson configure -Dpkgconfig.relocatable=true"
    sed -i "s#^prefix=.*#prefix=$prefix#" "$libdir"/pkgconfig/*.pc
fi
export PKG_CONFIG_PATH=$libdir/pkgconfig
flags() {
    pkg-config "$@"
}
has "pkg-config: the recipes" "^$recipes\$" <(readlink -m "$(flags --variable=recipesdir libqat)")
if [ "${sanitized:-none}" != none ]; then
    skip "programs of users" "the libraries are built with sanitizers"
else
    # shellcheck disable=SC2046,SC2086
    check "classify.c in C11" cc -std=c11 $warnings "$examples/classify.c" -o classify \
        $(flags --cflags --libs libqatinfer) -Wl,-rpath,"$libdir"
    check "classify runs" bare ./classify m.qm black.raw
    has "classify answers" "^class [0-9]$" out.txt
    cp out.txt shared.txt
    # shellcheck disable=SC2046,SC2086
    check "classify.c with static libraries" cc -std=c11 $warnings "$examples/classify.c" -o classify-static \
        -static $(flags --static --cflags --libs libqatinfer)
    check "static classify runs" bare ./classify-static m.qm black.raw
    same "and answers the same" out.txt shared.txt
    # shellcheck disable=SC2046,SC2086
    check "a plugin from the installed example" cc -std=c11 $warnings -Wno-unused-parameter -shared -fPIC \
        "$examples/swish.c" -o libmine.so $(flags --cflags --libs libqat) -lm
    sed "s#path = .*#path = libmine.so#; /layer.gain/,+1d" plugins.ini >mine.ini
    check "it trains" bare "$bin/qat-train" mine.ini --out mine
    check "and exports" bare "$bin/qat-export" mine/last.ckpt mine.qm --samples 16 --plugin libmine.so
    # shellcheck disable=SC2046,SC2086
    check "custom_net.c in C11" cc -std=c11 $warnings "$examples/custom_net.c" -o custom_net \
        $(flags --cflags --libs libqat) -Wl,-rpath,"$libdir"
    check "custom_net runs" bare ./custom_net "$libdir/qat/libswish.so" "$libdir/qat/libposition_scale.so"

    cat >all.cc <<'CC'
#include <qat/qat.h>

#include <cstdio>
#include <cstring>

static qat_node *network(qat_graph *g)
{
    qat_node *x = qat_graph_input(g, "image", QAT_SHAPE(1, 8, 8, 3));
    return qat_apply1(g, "conv2d", "conv", "filters=4 kernel=3", x);
}

int main(int, char **argv)
{
    qat_error err;
    qat_registry *registry;
    qat_graph *graph;
    qi_host *host;
    if (std::strcmp(qat_version(), QAT_VERSION) || qat_version_number() != QAT_VERSION_NUMBER ||
        std::strcmp(qi_version(), QAT_VERSION) || qi_version_number() != QAT_VERSION_NUMBER)
        return 1;
    qat_set_threads(1);
    if (qat_threads() != 1 || qat_registry_create(&registry, &err) ||
        qat_graph_create(&graph, registry, &err) || !network(graph) ||
        qat_graph_plan(graph, 2, QAT_PLAN_EVAL, &err))
        return std::printf("%s\n", err.message), 1;
    qat_graph_free(graph);
    qat_registry_free(registry);
    if (qi_host_open(&host, argv[1], nullptr, &err))
        return std::printf("%s\n", err.message), 1;
    std::printf("%s: %d ops, half of 3 is %d\n", qat_version(), qi_node_count(qi_host_model(host)),
                qi_divide_half_away(3, 2));
    qi_host_close(host);
    return 0;
}
CC
    if command -v g++ >/dev/null; then
        # shellcheck disable=SC2046,SC2086
        check "a program in C++17 with every header" g++ -std=c++17 $warnings all.cc -o all \
            $(flags --cflags --libs libqat) -Wl,-rpath,"$libdir"
        check "it runs" bare ./all m.qm
        has "with both libraries" "^$version: [0-9]+ ops, half of 3 is 2$" out.txt
        printf '#include <qat/plugin.h>\nconst qat_plugin qat_plugin_entry = {%s};\n' \
            'QAT_PLUGIN_VERSION, "cc", nullptr, 0, nullptr, 0, nullptr, 0' >plugin.cc
        # shellcheck disable=SC2046,SC2086
        check "a plugin in C++17" g++ -std=c++17 $warnings -shared -fPIC -fvisibility=hidden plugin.cc -o cc.so \
            $(flags --cflags --libs libqat)
        # shellcheck disable=SC2086
        check "it is loaded" bare "$bin/qat-train" "$recipes/quickstart.ini" $quick --set plugin.path=./cc.so --out cc
    else
        skip "a program in C++17" "no g++"
    fi
fi

for header in "$prefix"/include/qat/*.h; do
    name=${header##*/}
    printf '#include <qat/%s>\nextern int more_than_macros;\n' "$name" >header.c
    cp header.c header.cc
    # shellcheck disable=SC2086
    check "$name alone, C11" cc -std=c11 $warnings -I"$prefix/include" -fsyntax-only header.c
    for compiler in g++ clang++; do
        if command -v $compiler >/dev/null; then
            # shellcheck disable=SC2086
            check "$name alone, C++17, $compiler" $compiler -std=c++17 $warnings -I"$prefix/include" \
                -fsyntax-only header.cc
        elif [ $compiler = g++ ]; then
            skip "$name alone, C++17" "no g++"
        fi
    done
done

# ---------------------------------------------------------------- names
# gcc lists every function that the headers declare; variables are few and begin with extern
echo '#include <qat/qat.h>' >names.c
if cc -std=c11 -I"$prefix/include" -fsyntax-only -aux-info names.txt names.c 2>/dev/null; then
    {
        sed -n 's#^/\* [^ ]*/include/qat/[^ ]* \*/ extern [^(]*[ *]\([a-z0-9_]*\) (.*#\1#p' names.txt
        cc -std=c11 -I"$prefix/include" -E names.c | grep -oE 'extern const (struct )?[a-z0-9_]+ (\*const )?[a-z0-9_]+(\[[A-Z0-9_]*\])?;' |
            sed 's/.* \([a-z0-9_]*\).*/\1/'
    } | grep -v '^qat_plugin_entry$' | sort -u >declared.txt
    nm -D --defined-only "$libdir/libqat.so" | awk '{print $3}' | sort -u >qat.txt
    nm -D --defined-only "$libdir/libqatinfer.so" | awk '{print $3}' | sort -u >infer.txt
    echo "libqat exports $(wc -l <qat.txt) names, libqatinfer $(wc -l <infer.txt)"
    for library in qat infer; do
        comm -23 $library.txt declared.txt | grep -v '^__odr_asan\.' >private.txt # AddressSanitizer adds these
        if [ ! -s private.txt ]; then ok "lib$library exports names of include/qat only"; else
            not_ok "lib$library exports $(wc -l <private.txt) other names: $(head -n 5 private.txt | paste -sd ' ')"
        fi
    done
    sort -u qat.txt infer.txt | comm -13 - declared.txt >missing.txt
    if [ ! -s missing.txt ]; then ok "every declared name is exported: $(wc -l <declared.txt)"; else
        not_ok "declared, but not exported (has the header #pragma GCC visibility push(default)?): $(paste -sd ' ' missing.txt)"
    fi
else
    skip "names" "cc has no -aux-info"
fi
exit $failed
