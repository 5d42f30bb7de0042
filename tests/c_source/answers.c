/**
 * Writes a C program that runs a network written as C source, and compares its outputs with the
 * engine's (qi_run):
 *
 *     answers MODEL.qm NAME RUNS > answers_NAME.c
 *
 * The program has `int check_network(void)`, which returns 0, or the number of the first run whose
 * outputs differ, or -1 - n if NAME_self_test returns n. The inputs of a run are bytes of a fixed
 * sequence, so the program needs little memory. States carry on from run to run.
 */
#include "qat/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 64 };

static const char *type_of(const qi_tensor *t)
{
    static const char *const names[] = {"uint8_t", "int8_t", "int32_t", "int64_t", "int16_t"};
    return names[t->type];
}

static uint8_t next_byte(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint8_t)(*state >> 24);
}

/** FNV-1a. */
static uint32_t digest_of(uint32_t d, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d = (d ^ bytes[i]) * 16777619u;
    return d;
}

static const qi_tensor *port(const qi_model *m, int is_output, int32_t i)
{
    return qi_tensor_at(m, is_output ? qi_output_at(m, i) : qi_input_at(m, i));
}

static void *allocate(size_t n)
{
    void *memory = calloc(1, n ? n : 1);
    if (!memory)
        abort();
    return memory;
}

/** The digest of all outputs of each run. */
static void print_digests(const qi_model *m, int runs)
{
    uint8_t *in[MOST_PORTS], *out[MOST_PORTS];
    uint32_t state = 1;
    uint8_t *memory = allocate(qi_arena_bytes(m) + 64);
    uint8_t *arena = memory + (64 - (size_t)memory % 64) % 64;
    for (int32_t i = 0; i < qi_input_count(m); i++)
        in[i] = allocate(port(m, 0, i)->bytes);
    for (int32_t i = 0; i < qi_output_count(m); i++)
        out[i] = allocate(port(m, 1, i)->bytes);
    qi_reset(m, arena);
    for (int run = 0; run < runs; run++) {
        uint32_t d = 2166136261u;
        for (int32_t i = 0; i < qi_input_count(m); i++)
            for (size_t k = 0; k < port(m, 0, i)->bytes; k++)
                in[i][k] = next_byte(&state);
        qi_run(m, arena, (const void *const *)in, (void *const *)out);
        for (int32_t i = 0; i < qi_output_count(m); i++)
            d = digest_of(d, out[i], port(m, 1, i)->bytes);
        printf(run % 6 ? " 0x%08xu," : "\n    0x%08xu,", (unsigned)d);
    }
    for (int32_t i = 0; i < qi_input_count(m); i++)
        free(in[i]);
    for (int32_t i = 0; i < qi_output_count(m); i++)
        free(out[i]);
    free(memory);
}

static void print_ports(const qi_model *m)
{
    for (int32_t i = 0; i < qi_input_count(m); i++)
        printf("static %s in%d[%zu];\n", type_of(port(m, 0, i)), (int)i,
               port(m, 0, i)->bytes / qi_type_bytes(port(m, 0, i)->type));
    for (int32_t i = 0; i < qi_output_count(m); i++)
        printf("static %s out%d[%zu];\n", type_of(port(m, 1, i)), (int)i,
               port(m, 1, i)->bytes / qi_type_bytes(port(m, 1, i)->type));
}

static void print_check(const qi_model *m, const char *name, int runs)
{
    printf("#ifdef CALLER_ARENA\n#define ARENA arena\n#define ARENA_AND arena,\n"
           "static int64_t arena[ARENA_BYTES / 8 + 1];\n#else\n#define ARENA\n#define "
           "ARENA_AND\n#endif\n\n");
    printf("int check_network(void);\nint check_network(void)\n{\n    uint32_t state = 1;\n"
           "#ifndef NO_SELF_TEST\n    int const wrong = %s_self_test(ARENA);\n"
           "    if (wrong)\n        return -1 - wrong;\n#endif\n",
           name);
    if (qi_state_count(m))
        printf("    %s_reset(ARENA);\n", name);
    printf("    for (int run = 0; run < %d; run++) {\n        uint32_t d = 2166136261u;\n", runs);
    for (int32_t i = 0; i < qi_input_count(m); i++)
        printf("        fill(in%d, sizeof in%d, &state);\n", (int)i, (int)i);
    printf("        %s_run(ARENA_AND ", name);
    for (int32_t i = 0; i < qi_input_count(m); i++)
        printf("in%d, ", (int)i);
    for (int32_t i = 0; i < qi_output_count(m); i++)
        printf(i ? ", out%d" : "out%d", (int)i);
    printf(");\n");
    for (int32_t i = 0; i < qi_output_count(m); i++)
        printf("        d = digest(d, out%d, sizeof out%d);\n", (int)i, (int)i);
    printf("        if (d != wanted[run])\n            return run + 1;\n    }\n    return 0;\n}\n");
}

int main(int argc, char **argv)
{
    qi_host *host = NULL;
    qat_error err;
    qi_host_options const scalar = {.isa = "scalar", .keep_packed = 1, .limits = QI_NO_LIMITS};
    if (argc != 4) {
        fprintf(stderr, "usage: answers MODEL.qm NAME RUNS\n");
        return 2;
    }
    if (qi_host_open(&host, argv[1], &scalar, &err) != QAT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const qi_model *m = qi_host_model(host);
    printf("#include \"%s.h\"\n\n", argv[2]);
    print_ports(m);
    printf("\nstatic const uint32_t wanted[%s] = {", argv[3]);
    print_digests(m, atoi(argv[3]));
    printf("\n};\n\n"
           "static void fill(void *to, uint32_t n, uint32_t *state)\n{\n"
           "    uint8_t *bytes = (uint8_t *)to;\n    for (uint32_t i = 0; i < n; i++) {\n"
           "        *state = *state * 1664525u + 1013904223u;\n"
           "        bytes[i] = (uint8_t)(*state >> 24);\n    }\n}\n\n"
           "static uint32_t digest(uint32_t d, const void *from, uint32_t n)\n{\n"
           "    const uint8_t *bytes = (const uint8_t *)from;\n"
           "    for (uint32_t i = 0; i < n; i++)\n        d = (d ^ bytes[i]) * 16777619u;\n"
           "    return d;\n}\n\n");
    print_check(m, argv[2], atoi(argv[3]));
    qi_host_close(host);
    return 0;
}
