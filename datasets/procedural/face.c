/** Chooses a cartoon face: age, attributes that fit together, colours. */
#include "datasets/procedural/face.h"

#define NAME(member, name) name,
const char *const face_attribute_names[FACE_COUNT] = {FACE_ATTRIBUTES(NAME)};

void face_attributes(const face *f, float *attributes)
{
#define STORE(member, name) attributes[FACE_##member] = f->member;
    FACE_ATTRIBUTES(STORE)
#undef STORE
}

static paint_colour mixed(const paint_colour *a, const paint_colour *b, float share)
{
    paint_colour c;
    for (int k = 0; k < 3; k++)
        c.rgb[k] = a->rgb[k] + share * (b->rgb[k] - a->rgb[k]);
    return c;
}

static paint_colour varied(qat_rng *rng, paint_colour c, float by)
{
    for (int k = 0; k < 3; k++)
        c.rgb[k] += draw_uniform(rng, -by, by);
    return c;
}

static paint_colour one_of(qat_rng *rng, const paint_colour *colours, uint32_t n)
{
    return varied(rng, colours[qat_rng_below(rng, n)], 12);
}

static void choose_skin(face *f, qat_rng *rng)
{
    static const paint_colour pale[] = {{{250, 226, 210}}, {{246, 220, 206}}};
    static const paint_colour tanned[] = {
        {{226, 178, 140}}, {{204, 152, 112}}, {{166, 116, 80}}, {{128, 86, 60}}};
    f->pale_skin = draw_chance(rng, 0.35F);
    f->skin = f->pale_skin ? varied(rng, pale[qat_rng_below(rng, 2)], 5) : one_of(rng, tanned, 4);
}

/** Choose the hair. It turns grey some time after 35; some people dye it. */
static void choose_hair(face *f, qat_rng *rng)
{
    static const paint_colour dark[] = {{{28, 22, 22}}, {{58, 38, 28}}};
    static const paint_colour blond[] = {{{226, 190, 104}}, {{238, 210, 140}}};
    static const paint_colour red[] = {{{164, 76, 34}}, {{142, 94, 52}}, {{190, 90, 60}}};
    static const paint_colour grey = {{196, 196, 200}};
    float const turned = (f->age - 35) / 30 + draw_uniform(rng, -0.15F, 0.15F);
    float const kind = draw_uniform(rng, 0, 1);
    f->grey = turned < 0 || draw_chance(rng, 0.15F) ? 0 : turned > 1 ? 1 : turned;
    f->grey_hair = f->grey > 0.5F;
    f->dark_hair = !f->grey_hair && kind < 0.45F;
    f->blond_hair = !f->grey_hair && kind >= 0.45F && kind < 0.75F;
    paint_colour const own = f->dark_hair || kind < 0.45F ? one_of(rng, dark, 2)
                             : kind < 0.75F               ? one_of(rng, blond, 2)
                                                          : one_of(rng, red, 3);
    f->hair = mixed(&own, &grey, f->grey);
}

static void choose_head(face *f, qat_rng *rng)
{
    bool const adult = f->age > 18;
    f->hat = draw_chance(rng, 0.2F);
    f->bald = !f->hat && adult && draw_chance(rng, 0.06F + f->age * 0.004F);
    f->bangs = !f->hat && !f->bald && draw_chance(rng, 0.35F);
    f->long_hair = !f->bald && draw_chance(rng, 0.4F);
    f->beard = adult && !f->long_hair && draw_chance(rng, 0.4F);
    f->moustache = adult && !f->long_hair && draw_chance(rng, 0.35F);
    f->round_face = draw_chance(rng, 0.4F);
    f->big_nose = draw_chance(rng, 0.35F);
    f->bushy_eyebrows = draw_chance(rng, 0.35F);
    f->freckles = draw_chance(rng, 0.25F);
    f->rosy_cheeks = draw_chance(rng, 0.3F);
}

static void choose_rest(face *f, qat_rng *rng)
{
    float const eyes = draw_uniform(rng, 0, 1);
    f->sunglasses = eyes < 0.15F;
    f->glasses = eyes >= 0.15F && eyes < 0.4F;
    f->closed_eyes = !f->sunglasses && draw_chance(rng, 0.25F);
    f->smile = draw_chance(rng, 0.5F);
    f->open_mouth = draw_chance(rng, 0.35F);
    f->red_lips = !f->beard && !f->moustache && draw_chance(rng, 0.4F);
    f->earrings = draw_chance(rng, 0.3F);
    f->necktie = draw_chance(rng, 0.3F);
    f->necklace = !f->necktie && draw_chance(rng, 0.3F);
}

void face_choose(face *f, qat_rng *rng)
{
    static const paint_colour irises[] = {
        {{70, 46, 30}}, {{60, 110, 170}}, {{70, 130, 80}}, {{110, 110, 110}}};
    *f = (face){.age = draw_uniform(rng, FACE_YOUNGEST, FACE_OLDEST)};
    choose_skin(f, rng);
    choose_hair(f, rng);
    choose_head(f, rng);
    choose_rest(f, rng);
    f->iris = one_of(rng, irises, 4);
    f->clothes = paint_random_colour(rng);
}
