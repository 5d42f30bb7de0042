# Finds the innermost loops of multiply instructions in what `objdump -d --no-show-raw-insn` prints of objects, for
# x86-64, 64-bit and 32-bit ARM. Prints a line a loop, tabs between its fields:
#
#   object  function  address  instructions  products  rescales  spills  vector stores  vector copies
#
# With -v code=1 it prints the instructions of each loop below such a line, as an assembler reads them.
#
# A loop is a way back to an instruction, and all that lies on the ways from there which come back. It is innermost if
# no other loop begins within it. Blocks with a call are not counted: they are the rare ways of a loop (the last bytes of
# a row). What is counted:
#
#   product   an instruction that multiplies vectors of codes, or counts bits of them (in the training library's kernels: of floats)
#   rescale   one that multiplies vectors of 32-bit sums by a multiplier: the loop turns sums into codes, too
#   spill     a vector store to a place of the stack that is the same in every step, or that the loop reads as well: a sum
#             that lives in memory, or a value for which there was no register. (A store to an array on the stack is none.)
#   store     any other vector store
#   copy      a vector register copied to another one

function is_product(m, ops) {
    if (arch == "x86") return m ~ /^vp(dpbusds?|dpwssds?|maddwd|maddubsw|opcntd)$/ || m ~ /^v(fn?m(add|sub)[0-9]*|mul)p[sd]$/
    if (arch == "aarch64") return ops ~ /^v/ && m ~ /^([su]|us|su)(dot|mmla)$|^[su]m(la|ls|ul)l2?$|^(f?ml[as]|f?mul)$/ && !is_rescale(m, ops)
    return m ~ /^v(ml[as]l?|mull?|[su]dot|fm[as])\./ && !is_rescale(m, ops)
}

function is_rescale(m, ops) {
    if (arch == "x86") return m ~ /^vp(mulu?dq|mull[dq])$/
    if (arch == "aarch64") return ops ~ /^v/ && (m ~ /^sqr?d(mulh|mull2?|ml[as]l2?)$/ || (m ~ /^[su]m(la|ls|ul)l2?$/ && ops ~ /^v[0-9]+\.2d/))
    return m ~ /^vqr?d(mulh|mull|ml[as]l)\.|^v(mull|ml[as]l)\.[su]32/
}

# AT&T syntax: the destination is the last operand; ARM: of stores the address is the last one, in brackets
function is_store(m, ops) {
    if (arch == "x86") return m ~ /^v/ && ops ~ /\)(\{[^}]*\})*$/
    if (arch == "aarch64") return m ~ /^st[1-4]$/ || (m ~ /^st(n?p|u?r)$/ && ops ~ /^[qds][0-9]/)
    return m ~ /^v(st[1-4r]|stm|push)/
}

function is_slot(ops) { # the same place in every step: no second register
    if (!names_stack(ops)) return 0
    if (arch == "x86") return ops ~ /\(%r[sb]p\)/
    return ops ~ /^\[(sp|x29|fp|r7|r11)(, #| ?:|\]|,$)/
}

function address_of(ops) {
    if (arch == "x86") { # 0x20(%rsp,%rdx,1) or -0x40(%rbp), with nothing before or behind it
        if (!match(ops, /-?(0x)?[0-9a-f]*\([^)]*\)/)) return ""
        return substr(ops, RSTART, RLENGTH)
    }
    if (ops !~ /\[/) { sub(/[!,].*/, "", ops); return "[" ops "," } # vstmia sp!, {d8}
    sub(/[^[]*/, "", ops)
    return ops
}

function is_copy(m, ops) {
    if (arch == "x86") return m ~ /^v?mov(dq[au](8|16|32|64)?|[au]p[sd])$/ && ops ~ /^%[xyz]mm[0-9]+,%[xyz]mm[0-9]+$/
    if (arch == "aarch64") return m == "mov" && ops ~ /^v[0-9]+\.[0-9]+b, v[0-9]+\.[0-9]+b$/
    return (m == "vmov" && ops ~ /^[qd][0-9]+, [qd][0-9]+$/) || (m == "vorr" && ops ~ /^q[0-9]+, (q[0-9]+), /)
}

function register(name) { # eax and rax are one, w0 and x0 too
    if (arch == "aarch64") { sub(/^w/, "x", name); return name }
    if (name ~ /^%r[0-9]+[bwd]$/) sub(/[bwd]$/, "", name)
    sub(/^%e/, "%r", name)
    return name
}

# is there a register of the stack in these operands?
function names_stack(ops,   n, i, words) {
    n = split(ops, words, /[^%a-z0-9]+/)
    for (i = 1; i <= n; i++) if (words[i] != "" && (register(words[i]) in stack)) return 1
    return 0
}

# follow the addresses of the stack through the registers of the function
function follow(m, ops,   to, from, moves) {
    if (arch == "x86") {
        if (m !~ /^(mov[a-z]*|lea|add|sub|and|or|xor|pop|imul|sh[lr]|sar|cmov[a-z]+|inc|dec|neg|not|rorx|andn)[lq]?$/) return
        if (ops !~ /%[a-z0-9]+$/) return
        to = ops
        sub(/.*[, ]/, "", to)
        from = substr(ops, 1, length(ops) - length(to))
        moves = (m ~ /^(mov|lea|add|sub|and)q?$/ && (m !~ /^mov/ || ops ~ /^%/))
        if (m ~ /^(add|sub|and)/) from = ops
    } else {
        if (m !~ /^(mov|add|sub|ldr|ldp|lsl|lsr|and|orr|sxtw|cinc|csel|madd|mul|umaddl|smaddl)/ || ops ~ /^[vqds][0-9]/) return
        to = ops
        sub(/,.*/, "", to)
        from = substr(ops, length(to) + 1)
        moves = m ~ /^(mov|adds?|subs?|and|bic)(\.w|w)?$/
    }
    to = register(to)
    if (to in fixed) return
    if (moves && names_stack(from)) stack[to] = 1
    else delete stack[to]
}

function jump_target(m, ops) {
    if (arch == "x86" ? m !~ /^j[a-z]+$/ : m !~ /^(b|b\.?(eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al)|cbn?z|tbn?z)(\.[nw])?$/) return ""
    if (ops !~ /<[^>]*>/) return ""
    sub(/ *<.*/, "", ops)
    sub(/.*[, ]/, "", ops)
    return ops
}

function plain(line) { # as an assembler reads it
    sub(/ *#.*/, "", line)
    sub(/ *\/\/.*/, "", line)
    sub(/ *<[^>]*>/, "", line)
    if (line ~ /^(j|b)[a-z.]* *[0-9a-f]+$/) { sub(/[0-9a-f]+$/, "first", line) }
    return line
}

# may the instruction after this one follow it?
function falls_through(m, ops) {
    if (arch == "x86") return m !~ /^(jmp|ret|ud2)/
    return m !~ /^(b|br|ret|udf|brk)(\.[nw])?$/ && !(m ~ /^bx$/) && !(m ~ /^(pop|ldm)/ && ops ~ /pc/)
}

# ---- blocks of instructions that run one after the other, and the ways between them

function find_blocks(   k, i, starts, idle) {
    split("", block)
    split("", from)
    split("", to)
    split("", before)
    split("", calls)
    starts[1] = 1
    for (k = 1; k <= count; k++) {
        if (goal[k] != "" && (goal[k] in index_of)) starts[index_of[goal[k]]] = 1
        if ((goal[k] != "" || !flows[k]) && k < count) starts[k + 1] = 1
    }
    blocks = 0
    for (k = 1; k <= count; k++) {
        if (k in starts) from[++blocks] = k
        block[k] = blocks
        if (kind[k] == "c") calls[blocks] = 1
        to[blocks] = k
    }
    for (k = 1; k <= count; k++) {
        if (goal[k] != "" && (goal[k] in index_of)) add_way(block[k], block[index_of[goal[k]]])
        if (flows[k] && k < count && ((k + 1) in starts)) add_way(block[k], block[k + 1])
    }
    for (k = 2; k <= blocks; k++) {
        if (before[k] != "") continue
        idle = 1
        for (i = from[k]; i <= to[k]; i++) if (text[i] !~ /nop|xchg +%ax,%ax/) idle = 0
        if (idle) dead[k] = 1      # fills up to an even address
        else before[k] = " 1"      # the target of a table of jumps
    }
}

function add_way(a, b) { before[b] = before[b] " " a }

# Mark in `body` the blocks that reach block `last` without block `head`. 0 if the entry is among them: then there are
# ways to `last` that do not pass `head`, and the two do not make a loop.
function collect(head, last,   waiting, n, b, e, m, words) {
    split("", body)
    body[head] = 1
    n = 0
    if (!(last in body)) { body[last] = 1; waiting[++n] = last }
    while (n > 0) {
        b = waiting[n--]
        if (b == 1) return 0
        m = split(before[b], words, " ")
        for (e = 1; e <= m; e++)
            if (!(words[e] in body) && !(words[e] in dead)) { body[words[e]] = 1; waiting[++n] = words[e] + 0 }
    }
    return 1
}

function find_loops(   b, e, m, words, i, is_head) {
    split("", dead)
    split("", within)
    find_blocks()
    loops = 0
    for (b = 1; b <= blocks; b++) {
        m = split(before[b], words, " ")
        if (m < 2 && b != 1) continue
        is_head = 0
        for (e = 1; e <= m; e++) {
            if ((words[e] in dead) || !collect(b, words[e] + 0)) continue
            if (!is_head) { is_head = 1; head_of[++loops] = b }
            for (i in body) within[loops, i] = 1
        }
    }
}

function end_of_function(   i, k, b, inner, size, read, number) {
    find_loops()
    for (i = 1; i <= loops; i++) {
        inner = 1
        for (k = 1; k <= loops; k++) if (k != i && ((i, head_of[k]) in within)) inner = 0
        if (!inner) continue
        split("", read)
        split("", number)
        for (b = 1; b <= blocks; b++)
            if ((i, b) in within) for (k = from[b]; k <= to[b]; k++)
                if (kind[k] !~ /[Ss]/ && address[k] != "") read[address[k]] = 1
        size = 0
        for (b = 1; b <= blocks; b++) {
            if (!((i, b) in within) || (b in calls)) continue
            size += to[b] - from[b] + 1
            for (k = from[b]; k <= to[b]; k++)
                number[kind[k] == "S" && !slot[k] && !(address[k] in read) ? "s" : kind[k]]++
        }
        if (number["*"] + number["r"] == 0) continue
        b = head_of[i]
        printf "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", object, name, at[from[b]], size,
            number["*"], number["r"], number["S"], number["s"], number["="]
        for (b = 1; code && b <= blocks; b++)
            if (((i, b) in within) && !(b in calls)) for (k = from[b]; k <= to[b]; k++) print plain(text[k])
    }
}

function start_of_function(   i) {
    split("", index_of)
    split("", stack)
    split("", fixed)
    split("", goal)
    count = 0
    stack["%rsp"] = stack["sp"] = fixed["%rsp"] = fixed["sp"] = 1
}

/: +file format / {
    if (count) end_of_function()
    count = 0
    object = $1
    sub(/:$/, "", object)
    sub(/.*\//, "", object)
    arch = $NF ~ /x86-64/ ? "x86" : $NF ~ /aarch64/ ? "aarch64" : "arm"
    next
}

/^[0-9a-f]+ <.*>:$/ {
    if (count) end_of_function()
    name = $2
    gsub(/[<>:]/, "", name)
    start_of_function()
    next
}

/^ *[0-9a-f]+:\t/ {
    place = $1
    sub(/:$/, "", place)
    line = $0
    sub(/^[^\t]*\t/, "", line)
    gsub(/\t/, " ", line)
    sub(/^((bnd|notrack|data16|cs|ds|rep|repz|lock) +)+/, "", line)
    text[++count] = line
    sub(/^\{[a-z]+\} +/, "", line) # {vex}
    m = line
    sub(/ .*/, "", m)
    ops = ""
    if (line ~ / /) { ops = line; sub(/^[^ ]* +/, "", ops) }
    goal[count] = jump_target(m, ops)
    flows[count] = falls_through(m, ops)
    sub(/ +[#;@\/<].*/, "", ops)
    sub(/ +$/, "", ops)
    at[count] = place
    index_of[place] = count
    address[count] = address_of(ops)
    kind[count] = ""
    if (is_product(m, ops)) kind[count] = "*"
    else if (is_rescale(m, ops)) kind[count] = "r"
    else if (is_store(m, ops)) { kind[count] = names_stack(address[count]) ? "S" : "s"; slot[count] = is_slot(address[count]) }
    else if (is_copy(m, ops)) kind[count] = "="
    else if (m ~ /^(call|callq|bl|blx)$/) kind[count] = "c"
    else follow(m, ops)
}

END { if (count) end_of_function() }
