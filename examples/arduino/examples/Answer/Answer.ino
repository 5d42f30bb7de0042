// Runs the self-test of a network, then the network, and blinks the number of its largest output.
#include <net.h>

static NET_IN_TYPE input[NET_IN_COUNT];
static NET_OUT_TYPE scores[NET_OUT_COUNT];

static int largest_score()
{
    int best = 0;
    for (int i = 1; i < NET_OUT_COUNT; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

void setup()
{
    pinMode(LED_BUILTIN, OUTPUT);
    Serial.begin(115200);
    const int wrong = net_self_test();
    if (wrong) {
        Serial.print("self-test: wrong from layer ");
        Serial.println(wrong);
    } else {
        Serial.println("self-test passed");
    }
}

void loop()
{
    // put the pixels of a picture, or what else the network takes, into `input` here
    const unsigned long begin = micros();
    net_run(input, scores);
    const unsigned long end = micros();
    const int answer = largest_score();
    Serial.print("answer ");
    Serial.print(answer);
    Serial.print(", microseconds ");
    Serial.println(end - begin);
    for (int i = 0; i < answer; i++) {
        digitalWrite(LED_BUILTIN, HIGH);
        delay(200);
        digitalWrite(LED_BUILTIN, LOW);
        delay(200);
    }
    delay(1000);
}
