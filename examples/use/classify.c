#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "my_vit_model.h"

int main(int argc, char** argv) {
  static uint8_t picture[20][12][3]; /* rows, columns, red green blue: a bar of class 3 in rows 6 and 7 */
  my_vit_model* model = NULL;
  int32_t labels[3];
  float probabilities[3];
  int k;

  memset(picture, 48, sizeof picture);
  memset(&picture[6][3], 208, 6 * 3);
  memset(&picture[7][3], 208, 6 * 3);
  if (my_vit_model_open(argc > 1 ? argv[1] : "weights.safetensors", &model) != 0 ||
      my_vit_model_classify(model, &picture[0][0][0], 1, 12, 20, 12 * 3, 3, labels, probabilities) != 0) {
    fprintf(stderr, "%s\n", my_vit_model_error());
    my_vit_model_close(model);
    return 1;
  }
  for (k = 0; k < 3; ++k) printf("%s %.3f\n", my_vit_model_label(model, labels[k]), probabilities[k]);
  my_vit_model_close(model);
  return 0;
}
