// Linear maps by oneDNN, for cpu.py: weights in the form that oneDNN likes best, reordered once.
#include <cstdint>
#include <dnnl.hpp>

namespace {

using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

struct Linear {
  dnnl::stream stream{engine()};
  dnnl::memory x, weights, bias, y;
  dnnl::inner_product_forward product;
};

}  // namespace

extern "C" {

/// y [rows, out] = x [rows, in] w^T + b, with w [out, in]; all stay the caller's. What it returns is never freed.
void* onednn_linear(std::int64_t rows, std::int64_t in, std::int64_t out, float* x, float* w, float* b, float* y) {
  const Desc x_desc({rows, in}, Type::f32, Tag::ab), y_desc({rows, out}, Type::f32, Tag::ab);
  const Desc b_desc({out}, Type::f32, Tag::a), w_desc({out, in}, Type::f32, Tag::ab);
  const Desc any({out, in}, Type::f32, Tag::any);
#if DNNL_VERSION_MAJOR < 3
  const dnnl::inner_product_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, x_desc, any, b_desc, y_desc}, engine());
#else
  const dnnl::inner_product_forward::primitive_desc chosen(engine(), dnnl::prop_kind::forward_inference, x_desc, any,
                                                           b_desc, y_desc);
#endif
  auto* const linear = new Linear;
  linear->x = dnnl::memory(x_desc, engine(), x);
  linear->y = dnnl::memory(y_desc, engine(), y);
  linear->bias = dnnl::memory(b_desc, engine(), b);
  linear->weights = dnnl::memory(chosen.weights_desc(), engine());
  dnnl::memory plain(w_desc, engine(), w);
  dnnl::reorder(plain, linear->weights).execute(linear->stream, plain, linear->weights);
  linear->product = dnnl::inner_product_forward(chosen);
  linear->stream.wait();
  return linear;
}

void onednn_run(void* handle) {
  auto* const linear = static_cast<Linear*>(handle);
  linear->product.execute(linear->stream, {{DNNL_ARG_SRC, linear->x},
                                           {DNNL_ARG_WEIGHTS, linear->weights},
                                           {DNNL_ARG_BIAS, linear->bias},
                                           {DNNL_ARG_DST, linear->y}});
  linear->stream.wait();
}

}  // extern "C"
