/* From camera bytes to a class without a float: classify model.qm picture.raw */
#include "qat/infer.h"
#include <stdio.h>

int main(int argc, char **argv)
{
    static uint8_t pixels[1 << 20], scores[1 << 12];
    char message[QI_HOST_MESSAGE_MAX];
    qi_host host = {0};
    FILE *camera = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!camera || qi_host_open(&host, argv[1], NULL, message) != QI_OK)
        return fprintf(stderr, "%s\n", camera ? message : "classify model.qm picture.raw"), 1;
    size_t const need = qi_tensor_at(host.model, qi_input_at(host.model, 0))->bytes;
    size_t const classes = qi_tensor_at(host.model, qi_output_at(host.model, 0))->bytes;
    if (need > sizeof pixels || classes > sizeof scores || fread(pixels, 1, need, camera) != need)
        return fprintf(stderr, "%s: %zu bytes wanted\n", argv[2], need), 1;
    qi_run(host.model, host.arena, (const void *[]){pixels}, (void *[]){scores});
    int const sign = qi_tensor_at(host.model, qi_output_at(host.model, 0))->type == QI_S8 ? 128 : 0;
    size_t best = 0;
    for (size_t i = 1; i < classes; i++)
        best = (scores[i] ^ sign) > (scores[best] ^ sign) ? i : best;
    printf("class %zu\n", best);
    qi_host_close(&host);
    return fclose(camera);
}
