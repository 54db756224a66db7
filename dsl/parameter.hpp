// Parameters: tensors that are learned, and buffers, which are not.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/tensor.hpp"

namespace tessera {

/// How a parameter starts and whether weight decay applies to it.
struct Start {
  graph::Init init{};
  bool decay = false;
  bool trained = true;
};

/// Every number is `value`. No weight decay.
inline Start constant(double value) { return {{graph::Init::Kind::constant, value, 0}, false}; }
/// Uniform between low and high. No weight decay.
inline Start uniform(double low, double high) { return {{graph::Init::Kind::uniform, low, high}, false}; }
/// Normal with this mean and standard deviation. No weight decay.
inline Start normal(double mean, double deviation) { return {{graph::Init::Kind::normal, mean, deviation}, false}; }
/// The same start, with weight decay: for the weights of linear maps.
inline Start with_decay(Start start) { return {start.init, true}; }

/// A learned tensor: Parameter<1_c, D> class_token{uniform(0, 1)}. Its size does not depend on the batch.
/// Sentence: [dim-unknown].
/// PyTorch equivalent: torch.nn.Parameter.
template <auto... Ds>
struct Parameter : Tensor<Ds...> {
  Start start;

  explicit Parameter(Start s = constant(0)) : start(s) {}

  /// How many numbers are learned; the size is known when the program is compiled, else [dim-unknown].
  static constexpr std::int64_t count() {
    constexpr auto problem = [] {
      Text t;
      if (Parameter::dims::poisoned || (detail::dim_of<Ds>::value.known() && ...)) return t;
      t.put("a parameter ");
      Parameter::shape.print(t);
      t.put(" has a size that is known only when the program runs [dim-unknown]");
      return t;
    };
    if constexpr (!fits<decltype(problem)>) {
      Refusal<decltype(problem)>::poison();
      return 0;
    } else {
      return (std::int64_t{1} * ... * detail::dim_of<Ds>::value.value());
    }
  }

  /// Enters the graph under its checkpoint key.
  void bind(const std::string& path) {
    (void)count();
    graph::Builder& r = recorder();
    this->id = r.parameter(path, Parameter::shape.dims(), start.init, start.decay);
    if (!start.trained) r.graph()[this->id].trained = false;
  }
};

/// What no gradient reaches, and assign changes: Buffer<C> running_mean{constant(0)}.
/// PyTorch equivalent: Module.register_buffer.
template <auto... Ds>
struct Buffer : Parameter<Ds...> {
  explicit Buffer(Start s = constant(0)) : Parameter<Ds...>({s.init, false, false}) {}
};

/// What a parameter's value is at this point of the trace: what was assigned last.
template <auto... Ds>
Tensor<Ds...> current(const Parameter<Ds...>& parameter) {
  return Tensor<Ds...>(recorder().current(node_of(parameter)));
}

/// Gives a buffer, as running statistics, its value for what is recorded from here on and, where the model is a half of
/// a training step, after the step. It is for what the step does not train; elsewhere nothing is changed.
/// PyTorch equivalent: buffer.copy_(value), under no_grad.
template <auto... Ds>
void assign(const Parameter<Ds...>& parameter, const Tensor<Ds...>& value) {
  recorder().assign(node_of(parameter), node_of(value));
}

}  // namespace tessera
