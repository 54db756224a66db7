#include "runtime/probe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "runtime/checkpoint.hpp"
#include "runtime/error.hpp"
#include "runtime/labels.hpp"
#include "runtime/progress.hpp"
#include "runtime/vectors.hpp"

namespace tessera::runtime {
namespace {

/// logits become probabilities; the result is log of the sum of their exponentials.
double normalise(std::span<double> logits) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (double& value : logits) sum += value = std::exp(value - most);
  for (double& value : logits) value /= sum;
  return most + std::log(sum);
}

/// The mean loss with its L2 term, and its gradient, over standardised rows. Parameters are weight [classes, width],
/// then bias [classes].
class Objective {
 public:
  Objective(const std::vector<float>& rows, const std::vector<std::int32_t>& labels, std::size_t width,
            std::size_t classes, double l2)
      : rows_(rows), labels_(labels), width_(width), classes_(classes), l2_(l2) {}

  double operator()(const std::vector<double>& parameters, std::vector<double>& gradient) const {
    constexpr std::size_t parts = 16;  // whose sums are added in order: the bits do not depend on the threads
    std::array<double, parts> losses{};
    std::vector<std::vector<double>> gradients(parts, std::vector<double>(parameters.size(), 0));
    const std::size_t count = labels_.size();
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<double> logits(classes_);
      for (std::size_t r = count * part / parts; r < count * (part + 1) / parts; ++r) {
        const float* const row = rows_.data() + r * width_;
        for (std::size_t c = 0; c < classes_; ++c) {
          double sum = parameters[classes_ * width_ + c];
          const double* const weight = parameters.data() + c * width_;
          for (std::size_t i = 0; i < width_; ++i) sum += weight[i] * static_cast<double>(row[i]);
          logits[c] = sum;
        }
        const auto label = static_cast<std::size_t>(labels_[r]);
        const double of_label = logits[label];
        losses[part] += normalise(logits) - of_label;
        logits[label] -= 1;
        for (std::size_t c = 0; c < classes_; ++c) {
          double* const of_class = gradients[part].data() + c * width_;
          for (std::size_t i = 0; i < width_; ++i) of_class[i] += logits[c] * static_cast<double>(row[i]);
          gradients[part][classes_ * width_ + c] += logits[c];
        }
      }
    }
    double loss = std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(count);
    gradient.assign(parameters.size(), 0);
    for (const std::vector<double>& part : gradients)
      for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += part[i];
    for (double& number : gradient) number /= static_cast<double>(count);
    for (std::size_t i = 0; i < classes_ * width_; ++i) {
      loss += 0.5 * l2_ * parameters[i] * parameters[i];
      gradient[i] += l2_ * parameters[i];
    }
    return loss;
  }

 private:
  const std::vector<float>& rows_;
  const std::vector<std::int32_t>& labels_;
  std::size_t width_, classes_;
  double l2_;
};

/// Goes downhill from x in place.
void minimise(const Objective& objective, std::vector<double>& x) {
  constexpr int most_steps = 1000, memory = 10;
  constexpr double small = 1e-6;
  std::vector<double> gradient, next_gradient;
  double value = objective(x, gradient);
  std::deque<std::pair<std::vector<double>, std::vector<double>>>
      pairs;  // steps, and what they changed of the gradient
  for (int step = 0; step < most_steps; ++step) {
    if (std::ranges::all_of(gradient, [](double g) { return std::fabs(g) <= small; })) return;
    std::vector<double> direction = gradient;
    std::vector<double> shares;
    for (const auto& [s, y] : pairs) {
      shares.push_back(dot(s, direction) / dot(s, y));
      for (std::size_t i = 0; i < x.size(); ++i) direction[i] -= shares.back() * y[i];
    }
    const double scale = pairs.empty() ? 1
                                       : dot(pairs.front().first, pairs.front().second) /
                                             dot(pairs.front().second, pairs.front().second);
    for (double& number : direction) number *= scale;
    for (std::size_t k = pairs.size(); k-- > 0;) {
      const auto& [s, y] = pairs[k];
      const double back = dot(y, direction) / dot(s, y);
      for (std::size_t i = 0; i < x.size(); ++i) direction[i] += (shares[k] - back) * s[i];
    }
    const double slope = -dot(gradient, direction);
    double length = 1;
    std::vector<double> next(x.size());
    double next_value = value;
    for (int attempt = 0;; ++attempt, length /= 2) {
      if (attempt == 40) return;  // no lower value can be told from this one
      for (std::size_t i = 0; i < x.size(); ++i) next[i] = x[i] - length * direction[i];
      next_value = objective(next, next_gradient);
      if (next_value <= value + 1e-4 * length * slope) break;
    }
    std::vector<double> s(x.size()), y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) s[i] = next[i] - x[i], y[i] = next_gradient[i] - gradient[i];
    if (dot(s, y) > 1e-12 * dot(y, y)) pairs.emplace_front(std::move(s), std::move(y));
    if (pairs.size() > memory) pairs.pop_back();
    x.swap(next);
    gradient.swap(next_gradient);
    value = next_value;
  }
}

}  // namespace

std::vector<float> LinearHead::probabilities(std::span<const float> row) const {
  std::vector<double> logits = bias;
  for (std::size_t c = 0; c < logits.size(); ++c)
    for (std::size_t i = 0; i < row.size(); ++i) logits[c] += weight[c * row.size() + i] * static_cast<double>(row[i]);
  normalise(logits);
  return {logits.begin(), logits.end()};
}

LinearHead fit_head(const Labelled& data, const std::vector<std::string>& classes, double l2, const LinearHead* start) {
  const auto width = static_cast<std::size_t>(data.width), count = static_cast<std::size_t>(data.size());
  std::vector<double> mean(width, 0), deviation(width, 0);
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t i = 0; i < width; ++i) mean[i] += static_cast<double>(data.rows[r * width + i]);
  for (double& number : mean) number /= static_cast<double>(count);
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t i = 0; i < width; ++i) {
      const double away = static_cast<double>(data.rows[r * width + i]) - mean[i];
      deviation[i] += away * away;
    }
  for (double& number : deviation) {
    number = std::sqrt(number / static_cast<double>(count));
    if (!(number > 0)) number = 1;  // always the same number: nothing to learn from
  }
  std::vector<float> rows(data.rows.size());
  for (std::size_t r = 0; r < count; ++r)
    for (std::size_t i = 0; i < width; ++i)
      rows[r * width + i] =
          static_cast<float>((static_cast<double>(data.rows[r * width + i]) - mean[i]) / deviation[i]);

  const std::size_t weights = classes.size() * width;
  std::vector<double> x(weights + classes.size(), 0);
  if (start)
    for (std::size_t c = 0; c < classes.size(); ++c) {
      x[weights + c] = start->bias[c];
      for (std::size_t i = 0; i < width; ++i) {
        x[c * width + i] = start->weight[c * width + i] * deviation[i];
        x[weights + c] += start->weight[c * width + i] * mean[i];
      }
    }
  minimise(Objective(rows, data.labels, width, classes.size(), l2), x);

  LinearHead head{
      classes, data.width, std::vector<double>(weights), {x.begin() + static_cast<std::ptrdiff_t>(weights), x.end()}};
  for (std::size_t c = 0; c < classes.size(); ++c)
    for (std::size_t i = 0; i < width; ++i) {
      head.weight[c * width + i] = x[c * width + i] / deviation[i];
      head.bias[c] -= head.weight[c * width + i] * mean[i];
    }
  return head;
}

HeadScore score(const LinearHead& head, const Labelled& data) {
  HeadScore result;
  const auto width = static_cast<std::size_t>(data.width);
  for (std::size_t r = 0; r < data.labels.size(); ++r) {
    const std::vector<float> sure = head.probabilities(std::span(data.rows).subspan(r * width, width));
    const auto label = static_cast<std::size_t>(data.labels[r]);
    result.right += std::ranges::max_element(sure) - sure.begin() == data.labels[r];
    result.loss -= std::log(std::max(static_cast<double>(sure[label]), 1e-38));
    ++result.size;
  }
  result.loss /= static_cast<double>(std::max<std::int64_t>(result.size, 1));
  return result;
}

Probe probe(const Labelled& data, const std::vector<std::string>& classes) {
  if (classes.size() < 2)
    fail("all pictures are of one class, ", printable(classes.empty() ? "" : classes[0]),
         ": there is nothing to tell apart");
  std::vector<std::int64_t> sizes(classes.size(), 0), seen(classes.size(), 0);
  for (const std::int32_t label : data.labels) ++sizes[static_cast<std::size_t>(label)];
  for (std::size_t c = 0; c < classes.size(); ++c)
    if (sizes[c] < 2)
      fail("the class ", printable(classes[c]), " has ", sizes[c], sizes[c] == 1 ? " picture" : " pictures",
           ": a probe needs two of each");
  const auto width = static_cast<std::size_t>(data.width);
  Labelled fitted{data.width, {}, {}}, held_out{data.width, {}, {}};
  for (std::size_t r = 0; r < data.labels.size(); ++r) {
    const auto c = static_cast<std::size_t>(data.labels[r]);
    Labelled& part = seen[c]++ % 5 == std::min<std::int64_t>(sizes[c], 5) - 1 ? held_out : fitted;
    const auto row = data.rows.begin() + static_cast<std::ptrdiff_t>(r * width);
    part.rows.insert(part.rows.end(), row, row + static_cast<std::ptrdiff_t>(width));
    part.labels.push_back(data.labels[r]);
  }
  Probe result;
  result.fitted = fitted.size();
  result.held_out = held_out.size();
  LinearHead head, best;
  const std::array<double, 6> values{1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
  Counter counter("fitting heads", static_cast<std::int64_t>(values.size()) + 1);
  const Trial* chosen = nullptr;
  result.trials.reserve(values.size());
  for (const double l2 : values) {
    head = fit_head(fitted, classes, l2, result.trials.empty() ? nullptr : &head);
    const Trial& trial = result.trials.emplace_back(Trial{l2, score(head, held_out)});
    const auto rank = [](const Trial& t) { return std::pair(-t.held_out.right, t.held_out.loss); };
    if (!chosen || rank(trial) < rank(*chosen)) chosen = &trial, best = head;
    counter.add(1);
  }
  result.l2 = chosen->l2;
  result.head = fit_head(data, classes, result.l2, &best);
  return result;
}

Labelled labelled(const Features& features, std::vector<std::string>& classes) {
  const std::vector<std::string> names = classes_of(features);
  const bool known = !classes.empty();
  if (!known) {
    const std::set<std::string> all(names.begin(), names.end());
    classes.assign(all.begin(), all.end());
  }
  std::map<std::string, std::int32_t> numbers;
  for (std::size_t c = 0; c < classes.size(); ++c) numbers[classes[c]] = static_cast<std::int32_t>(c);
  Labelled result{features.width, features.numbers, {}};
  for (const std::string& name : names) {
    const auto found = numbers.find(name);
    if (found == numbers.end())
      fail("there are test pictures of ", printable(name), ", which no training picture is of");
    result.labels.push_back(found->second);
  }
  return result;
}

void write_head(const std::filesystem::path& path, const LinearHead& head, const Model& model, const Origin& origin,
                const Preprocessing& input) {
  for (const std::string& name : head.classes)
    if (!can_hold(name))
      fail("the name of the class ", printable(name), " is not UTF-8: ", path.string(), " cannot hold it");
  Safetensors file;
  Usage{input, head.classes}.write(file, model);
  file.metadata.insert(origin.begin(), origin.end());
  file.metadata["format"] = probe_format;
  const std::vector<float> weight(head.weight.begin(), head.weight.end()), bias(head.bias.begin(), head.bias.end());
  // Where pictures differ by less than single precision's normal numbers, what tells them apart is beyond it.
  check_finite(weight, "the weights of the fitted head");
  const auto classes = static_cast<std::int64_t>(head.classes.size());
  file.tensors["head.weight"] = Tensor::of({classes, head.width}, std::span(weight));
  file.tensors["head.bias"] = Tensor::of({classes}, std::span(bias));
  write_safetensors(path, file);
}

LinearHead read_head(const std::filesystem::path& path, const Model& model, const Origin& origin) {
  const Safetensors file = read_safetensors(path);
  const auto format = file.metadata.find("format"), names = file.metadata.find("class_names");
  if (format == file.metadata.end() || format->second != probe_format || names == file.metadata.end())
    fail(file.where, " holds no fitted head: ", model.name, " probe writes such files");
  check_origin(file, model, origin);
  LinearHead head{names_of_lines(names->second), model.embedding.features, {}, {}};
  const auto classes = static_cast<std::int64_t>(head.classes.size());
  const Tensor &weight = file.at("head.weight"), &bias = file.at("head.bias");
  if (classes < 1 || weight.shape != Shape{classes, head.width} || bias.shape != Shape{classes} || !weight.is_real() ||
      !bias.is_real())
    fail(file.where, " is damaged: its head is not of ", classes, " classes and ", head.width, " features");
  check_finite(weight.floats(), text("the weights in ", file.where));
  check_finite(bias.floats(), text("the biases in ", file.where));
  head.weight = weight.doubles();
  head.bias = bias.doubles();
  return head;
}

}  // namespace tessera::runtime
