/* From camera bytes to a class without a float. */
#include "qat/infer.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    static uint8_t pixels[1 << 20], scores[1 << 12];
    qat_error err = {.message = "usage: classify model.qm picture.raw"};
    qi_host *host;
    if (argc != 3 || qi_host_open(&host, argv[1], NULL, &err) != QAT_OK)
        return fprintf(stderr, "%s\n", err.message), 1;
    const qi_model *model = qi_host_model(host);
    const qi_tensor *in = qi_tensor_at(model, qi_input_at(model, 0));
    const qi_tensor *out = qi_tensor_at(model, qi_output_at(model, 0));
    if (qi_input_count(model) != 1 || qi_output_count(model) != 1 || out->type > QI_S8 ||
        in->bytes > sizeof pixels || out->bytes > sizeof scores)
        return fprintf(stderr, "%s: no classifier of one small picture\n", argv[1]), 1;
    FILE *camera = fopen(argv[2], "rb");
    if (!camera || fread(pixels, 1, in->bytes, camera) != in->bytes)
        return fprintf(stderr, "%s: %zu bytes wanted\n", argv[2], in->bytes), 1;
    qi_host_run(host, (const void *[]){pixels}, (void *[]){scores});
    size_t best = 0;
    for (size_t i = 1, sign = out->type == QI_S8 ? 128 : 0; i < out->bytes; i++)
        best = (scores[i] ^ sign) > (scores[best] ^ sign) ? i : best;
    printf("class %zu\n", best);
    return fclose(camera), qi_host_close(host), 0;
}
