// The recipe: how a model is trained, declared beside it.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "dsl/diagnostic.hpp"
#include "dsl/graph/graph.hpp"

namespace tessera {

/// What training makes small, where the model has no loss of its own (trace() says how one is declared).
enum class Loss : std::uint8_t {
  cross_entropy,  ///< of the model's outputs as logits; mean over the batch. PyTorch: torch.nn.CrossEntropyLoss
  of_caller,      ///< the caller's: NAME_gradients takes its gradient with respect to the outputs, [B, ...], and gives
                  ///< those of the parameters, a vector-Jacobian product. PyTorch: outputs.backward(gradient)
};

/// How a step changes the parameters.
struct Optimizer {
  enum Kind : std::uint8_t {
    adam,   ///< Kingma & Ba 2015, algorithm 1; weight_decay is added to the gradient. PyTorch: torch.optim.Adam
    adamw,  ///< decoupled weight decay, Loshchilov & Hutter 2019, algorithm 2. PyTorch: torch.optim.AdamW
    sgd,    ///< descent with momentum (Sutskever et al. 2013, as PyTorch writes it). PyTorch: torch.optim.SGD
  } kind = adam;
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of adam and adamw
  double momentum = 0;                                ///< of sgd
  bool nesterov = false;                              ///< of sgd
  double weight_decay = 0;                            ///< of weights; not of norms, biases, positions and tokens
  double clip_norm = 0;  ///< gradients are scaled down to this global norm. PyTorch: clip_grad_norm_. 0: never
};

/// The learning rate over a run: of step t, counted from 1, of n steps with e steps in an epoch, w = warmup * e.
struct Schedule {
  enum Kind : std::uint8_t {
    constant,
    cosine,  ///< floor + (rate - floor) * (1 + cos(pi * (t - 1 - w) / (n - w))) / 2. Loshchilov & Hutter 2017
    steps,   ///< rate * factor^k, k = (t - 1) / (every * e) rounded down. PyTorch: torch.optim.lr_scheduler.StepLR
  } kind = constant;
  double warmup = 0;    ///< epochs in which the rate rises: rate * t / w while t <= w (Goyal et al. 2017)
  double floor = 0;     ///< of cosine
  double every = 1;     ///< epochs, of steps
  double factor = 0.1;  ///< of steps
};

/// Red, green and blue, or one number for all channels: `.mean = 0.5`, `.mean = {0.485, 0.456, 0.406}`.
struct PerChannel {
  std::array<double, 3> values;

  constexpr PerChannel(double all) : values{all, all, all} {}
  constexpr PerChannel(double red, double green, double blue) : values{red, green, blue} {}
};

/// How a picture is scaled, each with a kernel that is widened where the picture becomes smaller.
enum class Interpolation : std::uint8_t {
  bicubic,   ///< Keys 1981, a = -0.5. Pillow: BICUBIC
  bilinear,  ///< the triangle. Pillow: BILINEAR
};

/// What becomes of a picture of other proportions than the model's.
enum class Fit : std::uint8_t {
  cut,     ///< the shorter side is scaled, and the middle is cut out
  squash,  ///< both sides are scaled, each to the model's over the crop, and proportions are lost
  /// The longer side is scaled, and what is left below it or to the right is 0 once normalised, in folders of pictures
  /// the byte next to that. Segment Anything's pictures.
  pad
};

/// What a picture goes through, in training and afterwards; it travels in the checkpoint.
struct Preprocessing {
  PerChannel mean = 0, deviation = 1;  ///< a pixel, in [0, 1], enters the model as (pixel - mean) / deviation
  /// Pictures of another size: the model's side is this share of the side to which they are scaled (the shorter
  /// side), the middle is cut out. timm: crop_pct. 0: the whole picture is scaled to fit and its border fills the rest
  double crop = 0;
  Interpolation interpolation = Interpolation::bicubic;  ///< with a crop
  Fit fit = Fit::cut;                                    ///< with a crop, of 1 where it pads. timm: crop_mode
};

/// Labels that are not one class each: the training loss is then the cross entropy of probabilities [B, classes].
struct Softening {
  double smoothing = 0;  ///< the share that goes to all classes alike. Szegedy et al. 2016, section 7
  double mixup = 0;      ///< alpha of the Beta distribution by which pairs of images are blended. Zhang et al. 2018
  double cutmix = 0;     ///< alpha of the Beta distribution by which a box of another image is pasted. Yun et al. 2019

  constexpr bool any() const { return smoothing > 0 || mixup > 0 || cutmix > 0; }
};

/// What training images go through before they are normalised, each by chance.
struct Augmentation {
  std::int64_t crop = 0;  ///< pixels of black around the image before a crop of its size is taken from it
  bool flip = false;      ///< left and right
  int operations = 0;     ///< of RandAugment (Cubuk et al. 2020): how many, one after the other
  int magnitude = 9;      ///< of RandAugment, from 0 to 30
  double erase = 0;       ///< the chance that a box is overwritten with noise. Zhong et al. 2020
};

/// A group of parameters: those of a module by its key, "loss.discriminator", or all others. The key is an array, so
/// that a recipe can be a template argument.
struct Keys {
  std::array<char, 64> module{};
  bool others = false;

  static consteval Keys within(std::string_view module) { return {module, false}; }
  static consteval Keys outside(std::string_view module) { return {module, true}; }

  constexpr Keys() = default;
  consteval Keys(std::string_view key, bool all_others) : others(all_others) {
    for (std::size_t i = 0; i < key.size(); ++i) module.at(i) = key[i];  // a longer one does not compile
  }

  /// Whether the parameter of this key is one of them.
  constexpr bool have(std::string_view key) const {
    const std::string_view own(module.data());
    const bool inside = key.starts_with(own) && (key.size() == own.size() || key[own.size()] == '.');
    return inside != others;
  }
};

/// Two phases of a training step, each with an optimiser and a group of keys of its own: generator and discriminator.
/// Each phase is a model, which declares the same members as the other and says which phase it is.
struct Phases {
  int which = 0;               ///< 1 or 2. 0: a step is one
  std::array<Keys, 2> keys{};  ///< what each phase trains: no parameter is in both, and none in neither

  constexpr bool train(std::string_view key) const { return keys[static_cast<std::size_t>(which - 1)].have(key); }
};

/// static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.005}, .batch = 128, .epochs = 5};
/// What a recipe does not ask for is not in the emitted loop.
struct Recipe {
  Loss loss = Loss::cross_entropy;  ///< unless the model declares its own
  Optimizer optimizer{};
  Schedule schedule{};
  std::int64_t batch = 128;     ///< images that are in memory at once
  std::int64_t accumulate = 1;  ///< batches whose gradients are averaged for one step
  std::int64_t epochs = 5;
  std::uint64_t seed = 1;
  Preprocessing input{};
  Softening labels{};
  Augmentation augment{};
  double average = 0;         ///< decay of the moving average of the parameters, which is then evaluated. 0: none
  std::int64_t patience = 0;  ///< epochs without a better test loss after which training stops. 0: all epochs
  Phases phase{};             ///< of a step whose phases alternate, each with its own optimiser

  graph::Recipe record() const;
};

/// How a model tells how far away each pixel is: static constexpr Depth depth = Depth::metres, beside its forward,
/// which returns [B, height, width] of images [B, C, height, width].
enum class Depth : std::uint8_t {
  inverse = 1,  ///< the larger the nearer, up to a factor and an offset that differ from image to image
  metres,
};

namespace detail {

template <class Model>
concept HasDepth = requires {
  { Model::depth } -> std::convertible_to<Depth>;
};

struct NamesLoss {
  int loss;
};
template <class Model>
struct NamesLossTwice : Model, NamesLoss {};

}  // namespace detail

/// Whether a model has a function called loss, of whatever kind: its own loss.
template <class Model>
concept HasLoss = !requires { &detail::NamesLossTwice<Model>::loss; } &&
                  !requires { requires std::is_object_v<decltype(Model::loss)>; };

/// Whether a model says how it is trained. One that does not is a forward pass alone, and its library is for inference.
template <class Model>
concept HasRecipe = requires { Model::recipe; };

namespace detail {

/// A model's recipe; of a forward pass alone no more than what its pictures go through, where it says so:
/// static constexpr Preprocessing input{.mean = 0.5, .deviation = 0.5};
template <class Model>
constexpr Recipe recipe_of() {
  if constexpr (HasRecipe<Model>)
    return Model::recipe;
  else if constexpr (requires { requires std::same_as<decltype(Model::input), const Preprocessing>; })
    return {.input = Model::input};
  else
    return {};
}

/// A number of a recipe that has no meaning.
struct RecipeFault {
  std::string_view name, needs;
};

constexpr RecipeFault recipe_fault(const Recipe& r) {
  const Optimizer& o = r.optimizer;
  const auto share = [](double x) { return x >= 0 && x < 1; };
  if (!(o.learning_rate > 0)) return {"optimizer.learning_rate", "has to be above 0"};
  if (!share(o.beta1)) return {"optimizer.beta1", "has to be at least 0 and below 1"};
  if (!share(o.beta2)) return {"optimizer.beta2", "has to be at least 0 and below 1"};
  if (!(o.epsilon > 0)) return {"optimizer.epsilon", "has to be above 0"};
  if (!share(o.momentum)) return {"optimizer.momentum", "has to be at least 0 and below 1"};
  if (o.momentum > 0 && o.kind != Optimizer::sgd) return {"optimizer.momentum", "is of sgd; adam and adamw have beta1"};
  if (o.nesterov && !(o.momentum > 0)) return {"optimizer.nesterov", "needs a momentum, of sgd"};
  if (!(o.weight_decay >= 0)) return {"optimizer.weight_decay", "has to be at least 0"};
  if (!(o.clip_norm >= 0)) return {"optimizer.clip_norm", "has to be at least 0"};
  if (!(r.schedule.warmup >= 0)) return {"schedule.warmup", "has to be at least 0"};
  if (!(r.schedule.floor >= 0 && r.schedule.floor <= o.learning_rate))
    return {"schedule.floor", "has to be at least 0 and at most the learning rate"};
  if (!(r.schedule.every > 0)) return {"schedule.every", "has to be above 0"};
  if (!(r.schedule.factor > 0)) return {"schedule.factor", "has to be above 0"};
  if (r.loss == Loss::of_caller && r.labels.any()) return {"labels", "are for the cross entropy alone"};
  if (r.batch < 1) return {"batch", "has to be at least 1"};
  if (r.accumulate < 1) return {"accumulate", "has to be at least 1"};
  if (r.epochs < 0) return {"epochs", "has to be at least 0"};
  for (const double deviation : r.input.deviation.values)
    if (!(deviation > 0)) return {"input.deviation", "has to be above 0"};
  if (!(r.input.crop >= 0 && r.input.crop <= 1)) return {"input.crop", "has to be from 0 to 1"};
  if (r.input.crop == 0 && r.input.interpolation != Interpolation::bicubic)
    return {"input.interpolation", "is of pictures that are cropped: it needs an input.crop"};
  if (r.input.crop == 0 && r.input.fit == Fit::squash)
    return {"input.fit", "is of pictures that are cropped: it needs an input.crop"};
  if (r.input.crop != 1 && r.input.fit == Fit::pad)
    return {"input.fit", "pads a picture of which nothing is cut off: it needs an input.crop of 1"};
  if (!share(r.labels.smoothing)) return {"labels.smoothing", "has to be at least 0 and below 1"};
  if (!(r.labels.mixup >= 0)) return {"labels.mixup", "has to be at least 0"};
  if (!(r.labels.cutmix >= 0)) return {"labels.cutmix", "has to be at least 0"};
  if (r.augment.crop < 0) return {"augment.crop", "has to be at least 0"};
  if (r.augment.operations < 0) return {"augment.operations", "has to be at least 0"};
  if (r.augment.magnitude < 0 || r.augment.magnitude > 30) return {"augment.magnitude", "has to be from 0 to 30"};
  if (!(r.augment.erase >= 0 && r.augment.erase <= 1)) return {"augment.erase", "has to be from 0 to 1"};
  if (!share(r.average)) return {"average", "has to be at least 0 and below 1"};
  if (r.patience < 0) return {"patience", "has to be at least 0"};
  if (r.phase.which < 0 || r.phase.which > 2) return {"phase.which", "has to be 1 or 2"};
  if (r.phase.which > 0 && (r.accumulate > 1 || r.average > 0 || o.clip_norm > 0 || r.labels.any()))
    return {"phase", "has neither accumulate, average, labels nor optimizer.clip_norm"};
  return {};
}

/// The sentence for a recipe that cannot be followed.
template <class Model>
struct RecipeProblem {
  constexpr Text operator()() const {
    Text t;
    constexpr RecipeFault fault = recipe_fault(recipe_of<Model>());
    if (!fault.name.empty())
      t.put("recipe of ").put(Model::module_name).put(": ").put(fault.name).put(" ").put(fault.needs).put(" [recipe]");
    return t;
  }
};

}  // namespace detail

inline graph::Recipe Recipe::record() const {
  graph::Recipe r;
  r.optimizer = static_cast<graph::Recipe::Optimizer>(optimizer.kind);
  r.learning_rate = optimizer.learning_rate;
  r.beta1 = optimizer.beta1;
  r.beta2 = optimizer.beta2;
  r.epsilon = optimizer.epsilon;
  r.momentum = optimizer.momentum;
  r.nesterov = optimizer.nesterov;
  r.weight_decay = optimizer.weight_decay;
  r.clip_norm = optimizer.clip_norm;
  r.schedule = static_cast<graph::Recipe::Schedule>(schedule.kind);
  r.warmup = schedule.warmup;
  r.floor = schedule.floor;
  r.every = schedule.every;
  r.factor = schedule.factor;
  r.batch = batch;
  r.accumulate = accumulate;
  r.epochs = epochs;
  r.seed = seed;
  r.input_mean = input.mean.values;
  r.input_deviation = input.deviation.values;
  r.input_crop = input.crop;
  r.input_bilinear = input.interpolation == Interpolation::bilinear;
  r.input_fit = static_cast<graph::Recipe::Fit>(input.fit);
  r.smoothing = labels.smoothing;
  r.mixup = labels.mixup;
  r.cutmix = labels.cutmix;
  r.crop = augment.crop;
  r.flip = augment.flip;
  r.operations = augment.operations;
  r.magnitude = augment.magnitude;
  r.erase = augment.erase;
  r.average = average;
  r.patience = patience;
  r.phase = phase.which;
  return r;
}

}  // namespace tessera
