#!/usr/bin/env bash
# Checks what a program can check of the documents: links, the code and the recipe that README shows, the numbers of
# parameters of the recipes, and that every key of a recipe is explained.
set -u
tools=${QAT_BUILD_ROOT:?}/tools
root=${QAT_SOURCE_ROOT:?}
. "$root/tests/common/checks.sh"
export QAT_DATA=${QAT_DATA:-$root/../shared/data}
pages=("$root"/README.md "$root"/CONTRIBUTING.md "$root"/docs/*.md)

anchors() { # anchors <page>: of its headings, as GitHub forms them
    awk '/^```/ { code = !code } /^#+ / && !code { sub(/^#+ /, ""); print }' "$1" |
        sed -E 's/\[([^]]*)\]\([^)]*\)/\1/g' | tr '[:upper:] ' '[:lower:]-' | tr -cd '[:alnum:]_\n-'
}

links_of() { # links_of <page>: those inside this repository
    grep -oE '\]\([^) ]+\)' "$1" | sed -E 's/^\]\((.*)\)$/\1/' | grep -v '^https*:'
}

broken=
for page in "${pages[@]}"; do
    for link in $(links_of "$page"); do
        file=${link%%#*}
        target=${file:+$(dirname "$page")/$file}
        target=${target:-$page}
        [ -e "$target" ] || broken+=" ${page##*/}:$link"
        case $link in
        *.md#* | '#'*) anchors "$target" | grep -qx -- "${link#*#}" || broken+=" ${page##*/}:$link" ;;
        esac
    done
done
if [ -z "$broken" ]; then ok "every link leads somewhere"; else not_ok "links that lead nowhere:$broken"; fi

gone=$(grep -ohE '`(lib|include|tests|bench|tools|recipes|examples|datasets|cross|docs)/[A-Za-z0-9_./-]*[`: ]' "${pages[@]}" | tr -d '`: ' | sort -u |
    grep -vE '/mine[.]c$|/TARGET$|^lib/(pkgconfig|qat|x86_64-linux-gnu)$' | # examples; folders of an installation
    while read -r path; do [ -e "$root/$path" ] || echo "$path"; done)
if [ -z "$gone" ]; then ok "every file that is named is there"; else not_ok "named, but not there: ${gone//$'\n'/ }"; fi

commands="train export eval run import inspect bench sweep debug data report"
for command in $commands; do "$tools/qat-$command" --help >"qat-$command.txt"; done
unknown=$(grep -ohE "qat-(${commands// /|}) [^\`|#;&]*" "${pages[@]}" | while read -r line; do
    command=${line%% *}
    for option in $(grep -oE -- '--[a-z][a-z-]*' <<<"$line"); do
        grep -qE -- "$option([^a-z-]|\$)" "$command.txt" || echo "$command $option"
    done
done | sort -u)
if [ -z "$unknown" ]; then ok "the commands have every option that is named"; else not_ok "unknown options: ${unknown//$'\n'/, }"; fi

"$tools/qat-train" "$root/recipes/quickstart.ini" --dry-run | sed 's/^ *//' >sizes.txt
stale=$(sed -nE 's/^ +((cortex-m[0-9a-z]+|riscv32) +[0-9 ]+)$/\1/p' "$root/docs/on-a-microcontroller.md" |
    while IFS= read -r line; do grep -qxF -- "$line" sizes.txt || echo "$line"; done)
if [ -s sizes.txt ] && [ -z "$stale" ]; then ok "on-a-microcontroller.md has the sizes that --dry-run prints"; else not_ok "sizes that --dry-run does not print: $stale"; fi

formats=$(sed -nE 's/.*pictures \(([A-Z, ]+)\).*/\1/p' qat-run.txt | tr -d ,)
missing=$(for format in $formats; do grep -q "^| $format | " "$root/docs/preprocessing.md" || echo "$format"; done)
if [ -n "$formats" ] && [ -z "$missing" ]; then ok "preprocessing.md has the formats of pictures: $formats"; else not_ok "formats of pictures that preprocessing.md lacks: $missing"; fi

code_block() { # code_block <number>: README's, of C
    awk -v wanted="$1" '/^```c$/ { n++; inside = n == wanted; next } /^```$/ { inside = 0 } inside' "$root/README.md"
}

code_block 1 >classify.c
same "README shows examples/classify.c" classify.c "$root/examples/classify.c"
code_block 2 >swish.c
missing=$(while IFS= read -r line; do grep -qxF -- "$line" "$root/examples/swish.c" || echo "$line"; done <swish.c)
if [ -s swish.c ] && [ -z "$missing" ]; then ok "README shows lines of examples/swish.c"; else not_ok "not in examples/swish.c: $missing"; fi

sed -n '/^## A recipe/,/^## /p' "$root/README.md" | sed -n '/^    \[data\]/,/^    dir = /p' | sed 's/^    //' >shown.ini
sed -E 's/ *;.*//; /./!d' "$root/recipes/fashion_mnist.ini" >kept.ini
sed -i '/./!d' shown.ini
same "README shows recipes/fashion_mnist.ini" shown.ini kept.ini

for recipe in "$root"/recipes/*.ini; do # without the data of a recipe, which are in QAT_DATA, the count may not be known
    name=$(basename "$recipe" .ini)
    stated=$(sed -nE "s/^\| \[$name\]\(.*\| ([0-9,]+) \|\$/\1/p" "$root/docs/recipes.md" | tr -d ,)
    if ! "$tools/qat-train" "$recipe" --dry-run >out.txt 2>err.txt && grep -q QAT_DATA err.txt; then
        echo "SKIP the parameters of $name: $(cat err.txt)"
        continue
    fi
    counted=$(awk '$1 == "total" { print $2 }' out.txt)
    if [ "$stated" = "$counted" ]; then ok "$name has $stated parameters"; else
        not_ok "$name: '$stated' parameters stated, $counted counted: $(cat err.txt)"
    fi
done

unlisted=$(for recipe in "$root"/recipes/*.ini; do grep -qF "(recipes/${recipe##*/})" "$root/README.md" || echo "${recipe##*/}"; done)
if [ -z "$unlisted" ]; then ok "README lists every recipe"; else not_ok "recipes that README does not list: ${unlisted//$'\n'/ }"; fi

"$tools/qat-train" --keys | grep -oE '^[a-z_0-9]+ = ' | sed 's/ = //' | sort -u >keys.txt
unexplained=$(while read -r key; do grep -qw -- "$key" "$root/docs/recipes.md" || echo "$key"; done <keys.txt)
if [ -s keys.txt ] && [ -z "$unexplained" ]; then ok "docs/recipes.md explains every key"; else
    not_ok "keys that docs/recipes.md does not explain: ${unexplained//$'\n'/ }"
fi
exit $failed
