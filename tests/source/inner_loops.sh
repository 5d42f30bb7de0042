#!/bin/sh
# The inner loops of the engine's kernels keep their sums in registers. It disassembles every kernel of a build, and
# those of a build by clang if clang is there, and looks at each innermost loop that multiplies or counts bits
# (inner_loops.awk finds them, and says what it counts):
#
#   A loop of products alone holds no spill: no store to a fixed place of the stack, no sums in memory. A core does one
#   vector store a cycle, but up to two multiplies.
#   A loop that also turns sums into codes, or only does that, holds fewer spills than multiplies. It needs more
#   constants than there are registers, and waits for other instructions than the stores.
#   No loop copies a register for each multiply: that takes the place of other instructions.
#
# Stores elsewhere are the loop's purpose: codes, and arrays on the stack that another loop reads. Functions that pack
# weights run once a model, and are left out.
#
#   tests/source/inner_loops.sh BUILD_DIR      a release build of this tree; works in BUILD_DIR/inner_loops
#
# OBJDUMP chooses the tool: a cross build's own. CROSS: not empty if this is a cross build.
set -eu

build=${1:?usage: inner_loops.sh BUILD_DIR}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
objdump=${OBJDUMP:-objdump}
work=$build/inner_loops
mkdir -p "$work"
if ! command -v "$objdump" >/dev/null; then
    echo "SKIP inner_loops: no $objdump (package binutils)"
    exit 0
fi

fail() {
    echo "not ok - inner_loops: $*"
    exit 1
}

# loops_of FILE... : what inner_loops.awk prints of these objects, with a last field: ok, or what is wrong
loops_of() {
    "$objdump" -d --no-show-raw-insn "$@" | judged
}

judged() {
    awk -f "$here/inner_loops.awk" | awk -F '\t' -v OFS='\t' '
        $2 ~ /(^|_)(pack|entries)(_|$)/ { next }
        { multiplies = $5 + $6; verdict = "ok" }
        $9 >= multiplies { verdict = "copies" }
        $7 >= multiplies || ($7 > 0 && $6 == 0) { verdict = verdict == "ok" ? "spills" : "spills, copies" }
        { print $0, verdict }'
}

# ---- it would notice
notices() { # notices NAME FORMAT WANTED <code: one function; the fields after its name and address must be these
    { printf 'a.o:     file format %s\n\n0000000000000000 <%s>:\n' "$2" "$1"; cat; } |
        awk '/>:$/ { print; next } /^[a-z]/ || !NF { print; next } { printf "%8x:%s\n", n++, $0 }' |
        sed 's/@\([0-9a-f]*\)/\1 <x>/' >"$work/$1.txt"
    found=$(judged <"$work/$1.txt" | cut -f 4- | tr '\t' ' ')
    [ "$found" = "$3" ] || fail "of $1 it finds '$found', not '$3'"
    checked=$((checked + 1))
}
checked=0
notices clean elf64-x86-64 '5 2 0 0 0 0 ok' <<'END'
	vpbroadcastd (%rax),%zmm5
	vpdpbusd %zmm1,%zmm5,%zmm6
	vpdpbusd 0x40(%rdx),%zmm5,%zmm7
	add    $0x4,%rax
	jb     @0
	vmovdqa32 %zmm6,-0x40(%rbp)
	ret
END
notices counts elf64-x86-64 '6 1 0 0 0 1 copies' <<'END'
	vpandd (%rax){1to16},%zmm5,%zmm6
	vpopcntd %zmm6,%zmm6
	vpaddd %zmm6,%zmm7,%zmm8
	vmovdqa64 %zmm8,%zmm7
	add    $0x8,%rax
	jb     @0
	ret
END
notices stored_sums elf64-x86-64 '7 2 0 2 0 2 spills, copies' <<'END'
	mov    %rsp,%rbp
	vpdpbusd %zmm1,%zmm5,%zmm6
	vmovdqa32 %zmm6,-0x40(%rbp)
	vmovdqa64 %zmm6,%zmm3
	vpdpbusd %zmm0,%zmm5,%zmm7
	vmovdqa32 %zmm7,-0x80(%rbp)
	vmovdqa64 %zmm7,%zmm4
	jb     @1
	ret
END
notices sums_in_memory elf64-x86-64 '5 1 0 1 0 0 spills' <<'END'
	lea    -0x200(%rsp),%rcx
	vpmaddwd (%rdi),%ymm1,%ymm2
	vpaddd (%rcx,%rsi,1),%ymm2,%ymm2
	vmovdqa %ymm2,(%rcx,%rsi,1)
	add    $0x20,%rsi
	jne    @1
	ret
END
notices array_of_the_stack elf64-x86-64 '4 1 0 0 1 0 ok' <<'END'
	lea    -0x200(%rsp),%rcx
	vpmaddwd (%rdi),%ymm1,%ymm2
	vmovdqa %ymm2,(%rcx,%rsi,1)
	add    $0x20,%rsi
	jne    @1
	ret
END
notices codes elf64-x86-64 '6 1 2 1 1 0 ok' <<'END'
	vpdpbusd (%rdi),%ymm1,%ymm2
	vpmuldq %ymm2,%ymm3,%ymm4
	vpmuldq %ymm2,%ymm5,%ymm6
	vmovdqa %ymm6,0x20(%rsp)
	vmovdqu %ymm4,(%rax)
	jne    @0
	ret
END
# the last block jumps back, but no way leads from there to it; the block with the call is the rare one
notices not_a_loop elf64-x86-64 '5 1 0 0 0 0 ok' <<'END'
	test   %eax,%eax
	je     @a
	vpdpbusd (%rdi),%ymm1,%ymm2
	add    $0x20,%rdi
	test   %ecx,%ecx
	je     @8
	jne    @2
	ret
	vmovdqa %ymm2,0x20(%rsp)
	call   @0
	vpdpbusd (%rdi),%ymm1,%ymm2
	vmovdqa %ymm2,0x20(%rsp)
	jmp    @2
END
notices arm64 elf64-littleaarch64 '5 2 0 1 0 1 spills' <<'END'
	sdot	v0.4s, v1.16b, v2.4b[0]
	sdot	v3.4s, v1.16b, v2.4b[1]
	mov	v4.16b, v3.16b
	str	q4, [sp, #16]
	b.ne	@0  // b.any
	ret
END
notices arm32 elf32-littlearm '4 2 0 1 0 0 spills' <<'END'
	vmlal.s8	q0, d1, d2
	vmull.s8	q4, d1, d2
	vst1.64	{d0-d1}, [sp :64]
	bne.n	@0
	bx	lr
END
echo "noticed as they are: $checked loops, good and bad"

# ---- the kernels
# look WHOSE BUILD: its kernels
look() {
    objects=$(find "$2/lib/infer" -path '*libqatinfer_*.a.p/*' -name '*.o' | grep -E '/host_[a-z0-9]+_[a-z0-9_]*(gemm|depthwise|elementwise)\.' | sort)
    [ -n "$objects" ] || fail "$1: no kernels in $2/lib/infer"
    # shellcheck disable=SC2086
    loops_of $objects >"$work/$1.loops"
    for object in $objects; do
        grep -q "^${object##*/}	" "$work/$1.loops" || fail "$1: no inner loop in ${object##*/}"
    done
    echo "$1: object, function, instructions of the loop, products, rescales, spills, stores, copies"
    awk -F '\t' -v OFS='  ' '{ sub(/^host_[a-z0-9]*_/, "", $1); sub(/\.c\.o$/, "", $1); $3 = ""; print "    " $1, $2, $4, $5, $6, $7, $8, $9, $10 }' \
        "$work/$1.loops"
    bad=$(awk -F '\t' '$NF != "ok" { n++ } END { print n + 0 }' "$work/$1.loops")
    echo "$1: $(wc -l <"$work/$1.loops") inner loops, $bad of them bad"
    for object in $objects; do
        object=${object##*/}
        bad=$(awk -F '\t' -v object="$object" '$1 == object && $NF != "ok" { n++ } END { print n + 0 }' "$work/$1.loops")
        [ "$bad" = 0 ] || broken="$broken $1:$object"
    done
}
broken=
look kernels "$build"

if [ -z "${CROSS:-}" ]; then
    if ! command -v clang >/dev/null; then
        echo "SKIP inner_loops, clang: no clang"
    else
        [ -f "$work/clang/build.ninja" ] ||
            CC=clang meson setup "$work/clang" "$root" -Dtraining=false -Dtests=disabled >"$work/clang.log" 2>&1 ||
            fail "meson setup by clang: $(tail -n 3 "$work/clang.log")"
        # shellcheck disable=SC2046
        ninja -C "$work/clang" $(ninja -C "$work/clang" -t targets all | sed -n 's|^\(lib/infer/libqatinfer_[a-z0-9]*\.a\): .*|\1|p') \
            >"$work/clang.log" 2>&1 || fail "clang: $(tail -n 3 "$work/clang.log")"
        look clang "$work/clang"
    fi
fi
[ -z "$broken" ] || fail "the loops above that are not ok:$broken"
echo "ok - inner_loops"
