/* A model written by hand in the form of an emitted one: softmax regression on 28x28 images, trained by Adam. */
#ifndef SAMPLE_MODEL_H
#define SAMPLE_MODEL_H

#include <stdint.h>

#ifndef TESSERA_PARAMETER_DEFINED
#define TESSERA_PARAMETER_DEFINED
#ifdef __cplusplus
extern "C" {
#endif
typedef struct tessera_parameter {
  const char* name; /* the checkpoint key */
  int32_t rank;
  int32_t decay; /* 1 where weight decay applies */
  int64_t shape[8];
  int64_t offset;          /* in floats, from the start of the parameters, and of the gradients alike */
  const char* named_shape; /* "[D=192, C=3]" */
} tessera_parameter;
#ifdef __cplusplus
}
#endif
#endif

#define SAMPLE_PARAMETERS 2
#define SAMPLE_LAYERS 1
#define SAMPLE_PARAMETER_FLOATS 7856 /* bias [10], 6 floats of padding, weight [10, 784] */
#define SAMPLE_OPTIMIZER_FLOATS (2 * SAMPLE_PARAMETER_FLOATS)
#define SAMPLE_DECLARATION_HASH UINT64_C(0x5a3b1e0000000001)

#ifdef __cplusplus
extern "C" {
#endif
extern const tessera_parameter sample_parameters[SAMPLE_PARAMETERS];
extern const char* const sample_layers[SAMPLE_LAYERS];
int64_t sample_scratch_bytes(int64_t batch);
int64_t sample_images_at_once(int64_t batch);
const char* sample_error(int code);
const char* sample_isa(void);
int sample_init(float* parameters, uint64_t seed);
/* Nothing is packed. */
int sample_pack_forward(const float* parameters, float* packed);
int sample_forward(const float* parameters, const float* packed, const float* images, int64_t batch, float* outputs,
                   void* scratch);
int sample_evaluate(const float* parameters, const float* packed, const float* images, const int32_t* labels,
                    int64_t batch, float* outputs, float* loss, void* scratch);
int sample_inspect(const float* parameters, const float* packed, const float* images, int64_t batch, float* maps,
                   float* magnitudes, void* scratch);
/* Features are what the one layer reads: the image. */
int sample_embed(const float* parameters, const float* packed, const float* images, int64_t batch, float* features,
                 float* tokens, float* pooling, void* scratch);
int sample_loss_and_gradients(const float* parameters, const float* packed, const float* images, const int32_t* labels,
                              int64_t batch, uint64_t seed, int64_t step, float* outputs, float* loss, float* gradients,
                              void* scratch);
int sample_update(float* parameters, const float* gradients, float* optimizer, int64_t step, float learning_rate);
int sample_train_step(float* parameters, float* packed, float* gradients, float* optimizer, const float* images,
                      const int32_t* labels, int64_t batch, uint64_t seed, int64_t step, float learning_rate,
                      float* outputs, float* loss, void* scratch);
#ifdef __cplusplus
}
#endif
#endif
