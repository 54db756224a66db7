#include "runtime/translation.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "runtime/error.hpp"

namespace tessera::runtime {
namespace {

using enum Layout;

/// What stands for each # and for *.
struct Match {
  std::vector<std::string> numbers;
  std::string rest;
};

std::optional<Match> match(std::string_view pattern, std::string_view key) {
  Match found;
  for (; !pattern.empty(); pattern.remove_prefix(1)) {
    if (pattern[0] == '*') {
      found.rest = key;
      return key.empty() ? std::nullopt : std::optional(found);
    }
    if (pattern[0] == '#') {
      std::string number;
      while (!key.empty() && std::isdigit(static_cast<unsigned char>(key[0]))) number += key[0], key.remove_prefix(1);
      if (number.empty()) return std::nullopt;
      found.numbers.push_back(std::move(number));
      continue;
    }
    if (key.empty() || key[0] != pattern[0]) return std::nullopt;
    key.remove_prefix(1);
  }
  return key.empty() ? std::optional(found) : std::nullopt;
}

std::string filled(std::string_view pattern, const Match& with) {
  std::string name;
  auto number = with.numbers.begin();
  for (const char c : pattern) name += c == '#' ? *number++ : c == '*' ? with.rest : std::string(1, c);
  return name;
}

using Found = std::vector<std::pair<const Rule*, Match>>;

/// The rules that a key falls under: several where timm splits it, those behind the prefix before the others.
Found rules_of(const Keys& keys, std::string_view key) {
  Found found;
  const auto look = [&](const std::vector<Rule>& rules, std::string_view name) {
    for (const Rule& rule : rules)
      if (const auto with = match(rule.theirs, name)) found.emplace_back(&rule, *with);
  };
  if (key.starts_with(keys.prefix)) look(keys.dialect->rules, key.substr(keys.prefix.size()));
  if (found.empty()) look(keys.dialect->others, key);
  return found;
}

bool says(const Found& found) { return !found.empty() && !found[0].first->timms.empty(); }

/// Takes what training put before every key of a file away from them, and gives it.
std::string unwrap(Safetensors& file) {
  constexpr std::array<std::string_view, 3> wrappers{"module.", "_orig_mod.", "model."};
  std::string all;
  for (bool again = !file.tensors.empty(); again;) {
    const auto wrapper = std::ranges::find_if(wrappers, [&](std::string_view w) {
      return std::ranges::all_of(file.tensors, [&](const auto& tensor) { return tensor.first.starts_with(w); });
    });
    again = wrapper != wrappers.end();
    if (!again) break;
    std::map<std::string, Tensor> tensors;
    for (auto& [key, tensor] : file.tensors) tensors.emplace(key.substr(wrapper->size()), std::move(tensor));
    file.tensors = std::move(tensors);
    all += *wrapper;
  }
  return all;
}

/// The keys that a dialect says most of; the first of several.
Keys keys_of(const Safetensors& file) {
  Keys best{&dialects().front(), "", "", {}};
  std::ptrdiff_t most = 0;
  for (const Dialect& dialect : dialects())
    for (const std::string_view prefix : dialect.prefixes) {
      const Keys keys{&dialect, "", std::string(prefix), {}};
      const auto count = std::ranges::count_if(
          file.tensors, [&](const auto& tensor) { return !rules_of(keys, tensor.first).empty(); });
      if (count > most) most = count, best = keys;
    }
  return best;
}

/// Refuses a key that only another dialect says.
void refuse_mixed(const Safetensors& file, const Keys& keys) {
  const auto theirs =
      std::ranges::find_if(file.tensors, [&](const auto& tensor) { return says(rules_of(keys, tensor.first)); });
  if (theirs == file.tensors.end()) return;
  for (const auto& [key, tensor] : file.tensors) {
    if (!rules_of(keys, key).empty()) continue;
    for (const Dialect& dialect : dialects())
      for (const std::string_view prefix : dialect.prefixes)
        if (&dialect != keys.dialect && says(rules_of({&dialect, "", std::string(prefix), {}}, key)))
          fail(file.where, ": mixes keys of ", keys.dialect->library, " (", printable(theirs->first), ") and of ",
               dialect.library, " (", printable(key), ")");
  }
}

/// Rows of the first dim.
Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::size_t bytes = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
  Tensor some{tensor.dtype, tensor.shape,
              tensor.bytes.part(bytes * static_cast<std::size_t>(first), bytes * static_cast<std::size_t>(count))};
  some.shape[0] = count;
  return some;
}

Tensor transpose(const Tensor& tensor) {
  const auto rows = static_cast<std::size_t>(tensor.shape[0]), columns = static_cast<std::size_t>(tensor.shape[1]);
  const std::size_t bytes = tensor.bytes.size() / (rows * columns);
  Bytes room;
  const std::span<const std::uint8_t> given = tensor.bytes.all(room);
  Bytes turned(given.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      std::copy_n(given.begin() + static_cast<std::ptrdiff_t>((i * columns + j) * bytes), bytes,
                  turned.begin() + static_cast<std::ptrdiff_t>((j * rows + i) * bytes));
  return {tensor.dtype, {tensor.shape[1], tensor.shape[0]}, std::move(turned)};
}

Tensor laid_out(Tensor tensor, Layout layout, const std::string& where, const std::string& key) {
  const auto wrong = [&](const char* instead) {
    fail(where, ": ", printable(key), " is ", printed(tensor.shape), " instead of ", instead);
  };
  if (layout == batched) {
    while (tensor.shape.size() < 3) tensor.shape.insert(tensor.shape.begin(), 1);
  } else if (layout == transposed) {
    if (tensor.shape.size() != 2) wrong("a matrix");
    return transpose(tensor);
  } else if (layout == first_third || layout == last_two_thirds) {
    if (tensor.shape.empty() || tensor.shape[0] < 3 || tensor.shape[0] % 3)
      wrong("the rows of queries, keys and values, as many of each");
    const std::int64_t third = tensor.shape[0] / 3;
    return layout == first_third ? rows(tensor, 0, third) : rows(tensor, third, 2 * third);
  }
  return tensor;
}

/// Tensors that timm concatenates, by their place.
struct Part {
  const Rule* rule;
  std::string key;
  Tensor tensor;
};
using Parts = std::map<int, Part>;

Tensor concatenated(const Parts& parts, const std::string& where) {
  const Part& first = parts.begin()->second;
  if (first.tensor.shape.empty()) fail(where, ": ", printable(first.key), " has no dims");
  Tensor whole{first.tensor.dtype, first.tensor.shape};
  whole.shape[0] = 0;
  Bytes bytes;
  for (const auto& [place, one] : parts) {
    if (one.tensor.shape != first.tensor.shape || one.tensor.dtype != first.tensor.dtype)
      fail(where, ": ", printable(one.key), " is ", one.tensor.dtype, " ", printed(one.tensor.shape), ", and ",
           printable(first.key), " beside it ", first.tensor.dtype, " ", printed(first.tensor.shape));
    bytes.resize(bytes.size() + one.tensor.bytes.size());
    one.tensor.bytes.read(0, std::span(bytes).last(one.tensor.bytes.size()));
    whole.shape[0] += one.tensor.shape[0];
  }
  whole.bytes = std::move(bytes);
  return whole;
}

/// The class token with its position, and the positions of the patches alone.
void fold_class_position(std::map<std::string, Tensor>& tensors) {
  const auto token = tensors.find("cls_token"), table = tensors.find("pos_embed");
  if (!tensors.contains("reg_token") || token == tensors.end() || table == tensors.end()) return;
  Tensor &cls = token->second, &positions = table->second;
  if (!cls.is_real() || !positions.is_real() || positions.shape.size() != 3 || positions.shape[0] != 1 ||
      positions.shape[1] < 2 || cls.shape != Shape{1, 1, positions.shape[2]})
    return;
  std::vector<float> sum = cls.floats();
  positions.shape.erase(positions.shape.begin());
  const std::vector<float> first = rows(positions, 0, 1).floats();
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += first[i];
  cls = Tensor::of(cls.shape, sum);
  positions = rows(positions, 1, positions.shape[0] - 1);
  positions.shape.insert(positions.shape.begin(), 1);
}

}  // namespace

bool Keys::are_timms() const { return dialect == &dialects().front(); }

std::string Keys::theirs(const std::string& key) const {
  std::string first;
  for (const auto& [rules, front] : {std::pair(&dialect->rules, prefix), std::pair(&dialect->others, std::string())})
    for (const Rule& rule : *rules) {
      const auto with = rule.timms.empty() ? std::nullopt : match(rule.timms, key);
      if (!with) continue;
      const std::string name = wrapper + front + filled(rule.theirs, *with);
      if (std::ranges::find(used, &rule) != used.end()) return name;
      if (first.empty()) first = name;
    }
  return first.empty() ? wrapper + key : first;
}

bool Keys::transposes(const std::string& key) const {
  return std::ranges::any_of(
      used, [&](const Rule* rule) { return rule->layout == transposed && match(rule->timms, key).has_value(); });
}

Translation in_timms_keys(Safetensors file) {
  const std::string wrapper = unwrap(file);
  Translation result{{}, keys_of(file), {}};
  result.keys.wrapper = wrapper;
  refuse_mixed(file, result.keys);
  if (result.keys.are_timms()) {
    for (auto tensor = file.tensors.begin(); tensor != file.tensors.end();) {
      const Found found = rules_of(result.keys, tensor->first);
      const bool leaves_out = !found.empty() && !says(found);
      if (leaves_out) result.left_out.push_back(wrapper + tensor->first);
      tensor = leaves_out ? file.tensors.erase(tensor) : std::next(tensor);
    }
    result.file = std::move(file);
    return result;
  }
  const Dialect& dialect = *result.keys.dialect;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> sources;
  std::map<std::string, Parts> parts;
  for (auto& [key, tensor] : file.tensors) {
    // Of nothing, a shape may claim any number of rows.
    if (elements(tensor.shape) < 1)
      fail(file.where, ": ", printable(wrapper + key), " ", printed(tensor.shape), " holds no numbers");
    const Found found = rules_of(result.keys, key);
    if (found.empty()) {
      tensors.emplace(key, std::move(tensor));
      sources.emplace(key, key);
    } else if (!says(found)) {
      result.left_out.push_back(wrapper + key);
    }
    for (const auto& [rule, with] : found) {
      if (rule->timms.empty()) continue;
      if (std::ranges::find(result.keys.used, rule) == result.keys.used.end()) result.keys.used.push_back(rule);
      const std::string name = filled(rule->timms, with);
      if (rule->layout == part) {
        parts[name].emplace(rule->place, Part{rule, key, std::move(tensor)});
        continue;
      }
      if (const auto [other, fresh] = sources.emplace(name, key); !fresh)
        fail(file.where, ": ", printable(wrapper + other->second), " and ", printable(wrapper + key),
             " are both what timm calls ", printable(name));
      Tensor made = laid_out(found.size() == 1 ? std::move(tensor) : tensor, rule->layout, file.where, key);
      tensors.emplace(name, std::move(made));
    }
  }
  for (const auto& [name, some] : parts) {
    const Part& one = some.begin()->second;
    for (int place = 0; place < one.rule->of; ++place)
      if (!some.contains(place))
        fail(file.where, ": has no ",
             printable(wrapper + result.keys.prefix +
                       filled(one.rule[place - one.rule->place].theirs, *match(one.rule->timms, name))),
             " beside ", printable(wrapper + one.key));
    if (!tensors.emplace(name, concatenated(some, file.where)).second)
      fail(file.where, ": ", printable(wrapper + one.key), " is there in another form too");
  }
  if (const auto head = tensors.find("head.weight"); dialect.zero_head_bias && head != tensors.end() &&
                                                     head->second.shape.size() == 2 && !tensors.contains("head.bias"))
    tensors["head.bias"] =
        Tensor::of({head->second.shape[0]}, std::vector<float>(static_cast<std::size_t>(head->second.shape[0])));
  if (dialect.class_position) fold_class_position(tensors);
  result.file = {std::move(tensors), std::move(file.metadata), std::move(file.where)};
  return result;
}

}  // namespace tessera::runtime
