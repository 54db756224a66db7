#include "declare/declare.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "codegen/embedded.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printable;
using runtime::printed;
using runtime::Shape;
using runtime::text;

std::optional<std::map<std::string, std::string>> facts(std::string_view architecture) {
  std::istringstream rows{std::string(codegen::embedded("facts.txt"))};
  for (std::string row; std::getline(rows, row);) {
    std::istringstream words(row);
    std::string word;
    words >> word;
    if (word != architecture) continue;
    std::map<std::string, std::string> found;
    while (words >> word) found[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    return found;
  }
  return std::nullopt;
}

namespace {

/// The shortest decimal that C++ reads as the same number.
std::string number(double x) {
  for (int digits = 1; digits < 17; ++digits) {
    std::ostringstream out;
    out.precision(digits);
    out << x;
    if (std::stod(out.str()) == x) return out.str();
  }
  return text(x);
}

/// Finds what the checkpoint is, and writes down each key that the declaration will have: what is left over is unsaid.
class Finder {
 public:
  Finder(const Checkpoint& checkpoint, const Config& config, std::string name)
      : checkpoint_(checkpoint), config_(config), name_(std::move(name)) {
    if (!checkpoint.keys.are_timms()) assume(text("keys are those of ", library()));
    if (!library().starts_with(config.library))
      fail(config.where, ": is a configuration of ", config.library, ", and the checkpoint's keys are those of ",
           library());
    if (!config.facts.empty()) {
      facts_ = config.facts;
    } else if (config.architecture.empty() && !checkpoint.keys.are_timms()) {
      usual();
    } else if (config.architecture.empty()) {
      assume("no configuration names the architecture: activation, epsilon and positions are those of ViT");
    } else if (const auto found = facts(config.architecture)) {
      facts_ = *found;
    } else {
      fail(config.where, ": timm has no plain Vision Transformer ", printable(config.architecture),
           ", and only its name would tell heads, activation and positions");
    }
    for (const auto& [key, shape] : checkpoint.shapes)
      if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 1 || dim > (1 << 24); }))
        fail(checkpoint.where, ": ", named(key), " ", printed(shape), " has a dim that is not from 1 to 16777216");
    if (const auto& out = checkpoint.left_out; !out.empty())
      assume(text(printable(out[0]), out.size() > 1 ? text(" and ", out.size() - 1, " more are") : " is",
                  " left out: images do not need ", out.size() > 1 ? "them, and texts are out of scope" : "it"));
  }

  Declaration declaration() {
    alike();
    stem();
    tokens();
    block();
    ends();
    compare();
    return {header(), std::move(assumptions_)};
  }

 private:
  std::string library() const { return std::string(checkpoint_.keys.dialect->library); }
  bool has(const std::string& key) const { return checkpoint_.shapes.contains(key); }
  /// The file's own name of timm's key.
  std::string named(const std::string& key) const { return printable(checkpoint_.keys.theirs(key)); }

  /// Of another library without a configuration: what its published models are.
  void usual() {
    const std::string whose = library();
    const auto is = [&](const char* part) { return whose.find(part) != std::string::npos; };
    facts_["pool"] = "token";
    facts_["layer_scale"] = "1";
    facts_["gate"] = "silu";
    facts_["activation"] = is("Hugging Face's CLIP") ? "quick_gelu" : is("SigLIP") ? "gelu_tanh" : "gelu";
    facts_["epsilon"] = is("Hugging Face's ViT") ? "1e-12" : is("CLIP") ? "1e-05" : "1e-06";
    assume(text("no configuration: the activation is ", facts_["activation"], " and epsilon ", facts_["epsilon"],
                ", as is usual for ", whose));
  }

  /// All blocks are one declaration: what one has, each has.
  void alike() const {
    std::map<std::string, std::set<std::int64_t>> having;
    std::int64_t blocks = 0;
    for (const auto& [key, unused] : checkpoint_.shapes) {
      const std::size_t dot = key.find('.', 7);
      if (!key.starts_with("blocks.") || dot == std::string::npos) continue;
      const std::string digits = key.substr(7, dot - 7);
      const auto is_digit = [](char c) { return '0' <= c && c <= '9'; };
      if (digits.empty() || digits.size() > 4 || !std::all_of(digits.begin(), digits.end(), is_digit) ||
          (digits[0] == '0' && digits != "0"))
        continue;
      having[key.substr(dot + 1)].insert(std::stoll(digits));
      blocks = std::max<std::int64_t>(blocks, std::stoll(digits) + 1);
    }
    for (std::int64_t i = 0; i < blocks; ++i)
      for (const auto& [rest, those] : having) {
        const auto block = [&, &name = rest](std::int64_t number) { return text("blocks.", number, ".", name); };
        if (!those.contains(i))
          fail(checkpoint_.where, ": has no ", named(block(i)), ", and has ", named(block(*those.begin())));
        const Shape &first = checkpoint_.shapes.at(block(0)), &own = checkpoint_.shapes.at(block(i));
        if (own != first)
          fail(checkpoint_.where, ": ", named(block(i)), " is ", printed(own), " and ", named(block(0)), " ",
               printed(first), ": blocks that differ are no declaration");
      }
  }

  const Shape& shape(const std::string& key, std::size_t rank) const {
    const auto found = checkpoint_.shapes.find(key);
    if (found == checkpoint_.shapes.end())
      fail(checkpoint_.where, ": has no ", named(key),
           ", which every plain Vision Transformer of this kind has in keys of ", library());
    if (found->second.size() != rank)
      fail(checkpoint_.where, ": ", named(key), " ", printed(found->second), " has rank ", found->second.size(),
           " instead of ", rank);
    return found->second;
  }
  std::string fact(const std::string& word, const std::string& otherwise) const {
    const auto found = facts_.find(word);
    return found == facts_.end() ? otherwise : found->second;
  }
  void assume(const std::string& sentence) { assumptions_.push_back(sentence); }
  void field(const std::string& name, const std::string& value) { fields_[name] = value; }
  void field(const std::string& name, std::int64_t value, std::int64_t otherwise) {
    if (value != otherwise) field(name, std::to_string(value));
  }
  void expect(const std::string& key, Shape of) { expected_[key] = std::move(of); }
  void linear(const std::string& key, std::int64_t in, std::int64_t out, bool bias = true) {
    expect(key + ".weight", {out, in});
    if (bias) expect(key + ".bias", {out});
  }
  void norm(const std::string& key, std::int64_t width) {
    expect(key + ".weight", {width});
    if (!rms_) expect(key + ".bias", {width});
    if (rms_ && has(key + ".bias"))
      fail(checkpoint_.where, ": has no ", named(first_norm_ + ".bias"), ", and has ", named(key + ".bias"));
  }

  void stem() {
    const Shape& patch = shape("patch_embed.proj.weight", 4);
    width_ = patch[0];
    channels_ = patch[1];
    height_ = patch[2];
    across_ = patch[3];
    expect("patch_embed.proj.weight", patch);
    const std::string first = has("blocks.0.norm1.weight")          ? "blocks.0.norm1"
                              : has("blocks.0.in_norm.weight")      ? "blocks.0.in_norm"
                              : has("blocks.0.attns.0.norm.weight") ? "blocks.0.attns.0.norm"
                                                                    : "blocks.0.norm1";
    shape(first + ".weight", 1);
    first_norm_ = first;
    rms_ = !has(first + ".bias");
    if (rms_) field("norm", "Normalization::rms");
    if (has("norm_pre.weight")) {
      field("stem", "Stem::norm_of_all");
      norm("norm_pre", width_);
    } else {
      expect("patch_embed.proj.bias", {width_});
      if (has("patch_embed.norm.weight")) {
        field("stem", "Stem::normed");
        norm("patch_embed.norm", width_);
      }
    }
    field("channels", channels_, 3);
    field("width", width_, 192);
    if (height_ == across_)
      field("patch", height_, 16);
    else
      field("patch", text("{", height_, ", ", across_, "}"));
  }

  void tokens() {
    cait_ = has("blocks_token_only.0.norm1.weight");
    const bool class_token = has("cls_token");
    if (class_token) expect("cls_token", {1, 1, width_});
    if (!class_token || cait_) field("class_token", "false");
    std::int64_t front = class_token && !cait_;
    if (has("head_dist.weight") && !has("dist_token"))
      fail(checkpoint_.where, ": has no ", named("dist_token"), ", and has ", named("head_dist.weight"));
    if (has("dist_token")) {
      field("distilled", "true");
      expect("dist_token", {1, 1, width_});
      ++front;
    }
    if (has("reg_token")) {
      const std::int64_t registers = shape("reg_token", 3)[1];
      field("registers", std::to_string(registers));
      expect("reg_token", {1, registers, width_});
      front += registers;
    }
    const std::int64_t rows = has("pos_embed") ? shape("pos_embed", 3)[1] : 0;
    if (config_.image) {
      image_ = *config_.image;
      const std::int64_t below = image_[0] % height_, right = image_[1] % across_;
      // What the convolution of timm's patches leaves out is left out where the positions say so.
      const std::int64_t whole = (image_[0] / height_) * (image_[1] / across_);
      if ((below || right) && whole > 0 && (rows == whole || rows == whole + front))
        field("rest", below == right ? std::to_string(below) : text("{", below, ", ", right, "}"));
      else if (below || right)
        fail(config_.where, ": pictures of ", image_[0], " x ", image_[1], " are no whole number of patches of ",
             height_, " x ", across_, ", which ", named("patch_embed.proj.weight"), " has");
    } else {
      std::int64_t side = 224 / height_;
      for (const std::int64_t patches : {rows - front, rows})
        if (const auto root = std::int64_t(std::lround(std::sqrt(double(std::max<std::int64_t>(patches, 0)))));
            root > 0 && root * root == patches) {
          side = root;
          break;
        }
      if (side < 1)
        fail(checkpoint_.where, ": ", named("patch_embed.proj.weight"),
             " has patches larger than a picture of 224 x 224");
      image_ = {side * height_, side * across_};
      assume(text("no configuration says the size of pictures: ", image_[0], " x ", image_[1]));
    }
    front_ = front;
    patches_ = (image_[0] / height_) * (image_[1] / across_);
    if (image_[0] == image_[1])
      field("image", image_[0], 224);
    else
      field("image", text("{", image_[0], ", ", image_[1], "}"));
    if (rows == 0) {
      field("positions", "Positions::none");
    } else {
      const bool fits = rows == patches_ || rows == patches_ + front;
      if (!fits && !class_token && (rows == patches_ + front + 1 || rows == patches_ + 1))
        fail(checkpoint_.where, ": has no ", named("cls_token"), ", and ", named("pos_embed"),
             " has a position more than the ", patches_, " patches");
      if (!fits)
        fail(checkpoint_.where, ": ", named("pos_embed"), " has ", rows, " positions, and pictures of ", image_[0],
             " x ", image_[1], " have ", patches_, " patches and ", front, " tokens before them");
      if (rows == patches_ && front > 0) field("patch_positions", "true");
      expect("pos_embed", {1, rows, width_});
    }
  }

  /// Keys of block i begin with this; what is found in block 0 is expected in each.
  static std::string at(int i, const std::string& rest) { return "blocks." + std::to_string(i) + "." + rest; }

  void heads(std::int64_t all, std::optional<std::int64_t> told) {
    std::int64_t heads = 0;
    if (told) {
      heads = *told;
    } else if (config_.heads) {
      heads = *config_.heads;
    } else if (facts_.contains("heads")) {
      heads = std::stoll(facts_.at("heads"));
    } else {
      // Published models of these widths have 16 wider heads: SO400M, H/14, g/14, bigG/14.
      const bool wider = all == 1152 || all == 1280 || all == 1408 || all == 1664;
      heads = wider ? 16 : std::max<std::int64_t>(1, all / 64);
      if (all < 1 || all % heads)
        fail(checkpoint_.where, ": ", all,
             " numbers of queries do not tell how many heads there are; --config FILE with ",
             "{\"num_heads\": N} would");
      assume(text("no configuration says how many heads there are: ", heads, ", each ", all / heads, " wide"));
    }
    if (all < 1 || heads < 1 || all % heads)
      fail(checkpoint_.where, ": attention in blocks.0 is ", all, " wide, which ", heads, " heads do not divide");
    if (told && config_.heads && *config_.heads != heads)
      fail(config_.where, ": num_heads is ", *config_.heads, ", and the shapes of blocks.0 have ", heads);
    field("heads", heads, 3);
    heads_ = heads;
    head_ = all / heads;
    if (all != width_) field("head", std::to_string(head_));
  }

  void hidden(std::int64_t inner) {
    if (inner < 1) fail(checkpoint_.where, ": the shapes of blocks.0 leave no hidden layer for an MLP");
    inner_ = inner;
    if (inner % width_)
      field("hidden", std::to_string(inner));
    else
      field("mlp", inner / width_, 4);
  }

  void block() {
    while (depth_ < 4096 &&
           std::any_of(
               checkpoint_.shapes.lower_bound(at(depth_, "")), checkpoint_.shapes.end(),
               [&, n = 0](const auto& tensor) mutable { return n++ == 0 && tensor.first.starts_with(at(depth_, "")); }))
      ++depth_;
    field("depth", depth_, 12);
    const std::string act = fact("activation", "gelu");
    if (has(at(0, "in_proj.weight")))
      parallel();
    else
      serial();
    if (gated_)
      field("activation", "Activation::swiglu");
    else if (act != "gelu" && !separate_gate_)
      field("activation", "Activation::" + act);
    if (const std::string norms = fact("norms", "before"); norms != "before") field("norms", "Norms::" + norms);
    if (scaled_) {
      if (!facts_.contains("layer_scale")) assume("factors on the branches would start at 1e-5 in training");
      field("layer_scale", number(std::stod(fact("layer_scale", "1e-5"))));
    }
    if (const std::string epsilon = fact("epsilon", "1e-6"); std::stod(epsilon) != 1e-6)
      field("epsilon", number(std::stod(epsilon)));
  }

  void parallel() {
    const Shape& in = shape(at(0, "in_proj.weight"), 2);
    const bool differs = has(at(0, "lambda_q1")), bias = has(at(0, "in_proj.bias"));
    include_ = differs ? "models/vit_diff.hpp" : "models/vit_parallel.hpp";
    block_ = differs ? "DifferentialParallelBlock" : "ParallelScalingBlock";
    const std::int64_t all =
        differs ? (in[0] - shape(at(0, "out_proj.weight"), 2)[1]) / 2 : shape(at(0, "attn_out_proj.weight"), 2)[1];
    std::optional<std::int64_t> told;
    if (differs) told = all / std::max<std::int64_t>(1, 2 * shape(at(0, "lambda_q1"), 1)[0]);
    if (has(at(0, "q_norm.weight"))) told = all / shape(at(0, "q_norm.weight"), 1)[0];
    heads(all, told);
    hidden(in[0] - 3 * all);
    if (!bias) field("qkv_bias", "false");
    scaled_ = has(at(0, "ls.gamma"));
    const bool normed = has(at(0, "q_norm.weight"));
    if (normed) field("qk_norm", "true");
    for (int i = 0; i < depth_; ++i) {
      norm(at(i, "in_norm"), width_);
      linear(at(i, "in_proj"), width_, 3 * all + inner_, bias);
      if (scaled_) expect(at(i, "ls.gamma"), {width_});
      if (differs) {
        linear(at(i, "out_proj"), all + inner_, width_);
        difference(at(i, ""));
        continue;
      }
      if (!bias) expect(at(i, "mlp_bias"), {inner_});
      if (normed) norm(at(i, "q_norm"), head_), norm(at(i, "k_norm"), head_);
      linear(at(i, "attn_out_proj"), all, width_);
      linear(at(i, "mlp_out_proj"), inner_, width_);
    }
  }

  void difference(const std::string& prefix) {
    for (const char* lambda : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
      expect(prefix + lambda, {head_ / 2});
    expect(prefix + "sub_norm.weight", {head_});
  }

  void serial() {
    const bool things = has(at(0, "attns.0.norm.weight"));
    const std::string attn = things ? "attns.0.attn." : "attn.", mlp = things ? "ffns.0.mlp." : "mlp.";
    const auto of = [&](const std::string& part, const std::string& key) { return at(0, part + key); };
    // Attention.
    const bool separate = has(of(attn, "q_proj.weight")), qv = has(of(attn, "q_bias"));
    const bool k_bias = has(of(attn, "k_proj.bias"));
    const bool bias = has(of(attn, "qkv.bias"));
    const std::int64_t all =
        separate ? shape(of(attn, "q_proj.weight"), 2)[0] : shape(of(attn, "qkv.weight"), 2)[0] / 3;
    const bool differs = has(of(attn, "lambda_q1")), qk = has(of(attn, "q_norm.weight"));
    const bool table = has(of(attn, "relative_position_bias_table"));
    const bool mlp_places = has(of(attn, "rel_pos.mlp.fc1.weight")), shared = has("shared_rel_pos.mlp.fc1.weight");
    const bool mixed = has("rope.freqs");
    std::optional<std::int64_t> told;
    if (qk) told = all / shape(of(attn, "q_norm.weight"), 1)[0];
    if (differs) told = all / (2 * shape(of(attn, "lambda_q1"), 1)[0]);
    if (table) told = shape(of(attn, "relative_position_bias_table"), 2)[1];
    if (mlp_places) told = shape(of(attn, "rel_pos.mlp.fc2.weight"), 2)[0];
    if (shared) told = shape("shared_rel_pos.mlp.fc2.weight", 2)[0];
    if (mixed) told = shape("rope.freqs", 4)[2];
    heads(all, told);
    if (qk) field("qk_norm", "true");
    if (!separate && !qv && !bias) field("qkv_bias", "false");
    const bool attn_norm = has(of(attn, "norm.weight")), attn_bias = has(of(attn, "proj.bias"));
    // MLP.
    separate_gate_ = has(of(mlp, "fc1_g.weight"));
    const std::int64_t inner = shape(of(mlp, "fc2.weight"), 2)[1];
    const std::string first = separate_gate_ ? "fc1_g" : "fc1";
    gated_ = !separate_gate_ && shape(of(mlp, "fc1.weight"), 2)[0] == 2 * inner;
    const bool in_bias = has(of(mlp, first + ".bias")), out_bias = has(of(mlp, "fc2.bias"));
    const bool mlp_norm = has(of(mlp, "norm.weight"));
    if (!separate_gate_ && !(in_bias && out_bias))
      fail(checkpoint_.where, ": has no ", named(of(mlp, in_bias ? "fc2.bias" : "fc1.bias")),
           ", which every MLP without a map of its own for a gate has");
    if (gated_ && fact("gate", fact("activation", "")) != "silu") {
      if (facts_.contains("activation") || facts_.contains("gate"))
        fail(checkpoint_.where, ": ", named(of(mlp, "fc1.weight")), " makes two maps, and a gate of ",
             fact("gate", fact("activation", "")), " has no declaration: silu has");
      assume(named(of(mlp, "fc1.weight")) + " makes two maps, and nothing says of what kind: SwiGLU, the gate first");
    }
    hidden(inner);
    // The block.
    const bool gamma = has(at(0, "gamma_1")), gamma_of_mlp = fact("scales", "") != "attention";
    scaled_ = gamma || has(at(0, "ls1.gamma")) || has(at(0, "attns.0.ls.gamma"));
    const std::string rope = fact("rope", "");
    std::string places = "Unplaced<V>";
    std::int64_t places_width = 0;
    if (table) {
      include_ = "models/beit.hpp";
      places = "RelativeTable<V>";
    } else if (mlp_places) {
      include_ = "models/vit_relpos.hpp";
      places_width = shape(of(attn, "rel_pos.mlp.fc1.weight"), 2)[0];
      places = places_width == 128 ? "RelativeMlpOfBlock<V>" : text("RelativeMlpOfBlock<V, ", places_width, ">");
    } else if (shared) {
      include_ = "models/vit_relpos.hpp";
      places_width = shape("shared_rel_pos.mlp.fc1.weight", 2)[0];
    } else if (!rope.empty() && !mixed) {
      if (head_ % 4)
        fail(checkpoint_.where, ": heads of blocks.0 are ", head_, " wide, and rotary positions need a multiple of 4");
      std::string spaced;
      for (const char letter : rope) spaced += letter == ',' ? ", " : letter == '=' ? " = " : std::string(1, letter);
      places = "Rotary<V, Rope" + spaced + ">";
    }
    if (!has("pos_embed") && places == "Unplaced<V>" && !shared && !mixed)
      fail(checkpoint_.where, ": has no ", named("pos_embed"), ", and blocks.0 has no positions of its own either");
    const std::string qkv = separate ? (k_bias ? "SeparateQkv<V, Linear<V::D, V::A>>" : "SeparateQkv<V>")
                            : qv     ? "QvBias<V>"
                                     : "FusedQkv<V>";
    const std::string projection = attn_norm    ? "NormedProjection<V>"
                                   : !attn_bias ? "LinearWithoutBias<V::A, V::D>"
                                                : "";
    const std::string between = mlp_norm ? "typename V::template Norm<V::M>" : "";
    std::string feed;
    if (separate_gate_) {
      feed = "SwiGlu<V";
      if (mlp_norm || !in_bias || !out_bias) feed += ", " + (mlp_norm ? between : "Identity");
      if (!in_bias || !out_bias) feed += in_bias ? ", Linear<V::D, V::M>" : ", LinearWithoutBias<V::D, V::M>";
      if (!out_bias) feed += ", LinearWithoutBias<V::M, V::D>";
      feed += ">";
    } else if (mlp_norm) {
      feed = "Mlp<V, " + between + ">";
    }
    std::string attention;
    if (places != "Unplaced<V>" || !projection.empty()) {
      attention = "Attention<V, " + qkv + ", " + places + (projection.empty() ? "" : ", " + projection) + ">";
    } else if (qkv != "FusedQkv<V>" || !feed.empty() || gamma) {
      attention = qkv == "FusedQkv<V>" ? "Attention<V>" : "Attention<V, " + qkv + ">";
    }
    const std::string made = attention.empty() ? "" : attention + (feed.empty() ? "" : ", " + feed);
    if (things) {
      include_ = "models/vit_parallel.hpp";
      alias_ = "ParallelThingsBlock<V>";
    } else if (cait_) {
      include_ = "models/cait.hpp";
    } else if (differs) {
      include_ = "models/vit_diff.hpp";
      block_ = "DifferentialBlock";
    } else if (mixed) {
      include_ = "models/eva.hpp";
      block_ = "RopeMixedBlock";
    } else if (shared) {
      alias_ = text("SharedRelativeBlock<V, ", places_width, ">");
    } else if (!made.empty()) {
      alias_ = (!gamma ? "VitBlock<V, " : gamma_of_mlp ? "GammaBlock<V, " : "AttentionGammaBlock<V, ") + made + ">";
      if (gamma && include_ == "models/vit.hpp") include_ = "models/eva.hpp";
    }

    for (int i = 0; i < depth_; ++i) {
      const int copies = things ? 2 : 1;
      for (int copy = 0; copy < copies; ++copy) {
        const std::string a = things ? text("attns.", copy, ".attn.") : "attn.";
        const std::string m = things ? text("ffns.", copy, ".mlp.") : "mlp.";
        if (separate) {
          linear(at(i, a + "q_proj"), width_, all);
          linear(at(i, a + "k_proj"), width_, all, k_bias);
          linear(at(i, a + "v_proj"), width_, all);
        } else {
          linear(at(i, a + "qkv"), width_, 3 * all, bias && !qv);
          if (qv) expect(at(i, a + "q_bias"), {all}), expect(at(i, a + "v_bias"), {all});
        }
        if (qk) norm(at(i, a + "q_norm"), head_), norm(at(i, a + "k_norm"), head_);
        if (differs) difference(at(i, a));
        if (table) {
          const std::int64_t down = image_[0] / height_, across = image_[1] / across_;
          expect(at(i, a + "relative_position_bias_table"), {(2 * down - 1) * (2 * across - 1) + 3 * front_, heads_});
        }
        if (mlp_places) {
          linear(at(i, a + "rel_pos.mlp.fc1"), 2, places_width);
          linear(at(i, a + "rel_pos.mlp.fc2"), places_width, heads_);
        }
        if (attn_norm) norm(at(i, a + "norm"), all);
        linear(at(i, a + "proj"), all, width_, attn_bias);
        if (cait_) linear(at(i, a + "proj_l"), heads_, heads_), linear(at(i, a + "proj_w"), heads_, heads_);
        feed_keys(at(i, m), in_bias, out_bias, mlp_norm);
        if (things) {
          norm(at(i, text("attns.", copy, ".norm")), width_);
          norm(at(i, text("ffns.", copy, ".norm")), width_);
          if (scaled_) expect(at(i, text("attns.", copy, ".ls.gamma")), {width_});
          if (scaled_) expect(at(i, text("ffns.", copy, ".ls.gamma")), {width_});
        }
      }
      if (things) continue;
      norm(at(i, "norm1"), width_);
      norm(at(i, "norm2"), width_);
      if (scaled_) expect(at(i, gamma ? "gamma_1" : "ls1.gamma"), {width_});
      if (scaled_ && gamma_of_mlp) expect(at(i, gamma ? "gamma_2" : "ls2.gamma"), {width_});
    }
    if (shared) {
      linear("shared_rel_pos.mlp.fc1", 2, places_width);
      linear("shared_rel_pos.mlp.fc2", places_width, heads_);
    }
    if (mixed) expect("rope.freqs", {2, depth_, heads_, head_ / 2});
    if (cait_)
      for (int i = 0; i < 2; ++i) {
        const std::string in = text("blocks_token_only.", i, ".");
        for (const char* map : {"attn.q", "attn.k", "attn.v", "attn.proj"}) linear(in + map, width_, width_);
        norm(in + "norm1", width_), norm(in + "norm2", width_);
        expect(in + "gamma_1", {width_}), expect(in + "gamma_2", {width_});
        feed_keys(in + "mlp.", true, true, false);
      }
  }

  void feed_keys(const std::string& mlp, bool in_bias, bool out_bias, bool normed) {
    if (separate_gate_)
      linear(mlp + "fc1_g", width_, inner_, in_bias), linear(mlp + "fc1_x", width_, inner_, in_bias);
    else
      linear(mlp + "fc1", width_, gated_ ? 2 * inner_ : inner_, in_bias);
    if (normed) norm(mlp + "norm", inner_);
    linear(mlp + "fc2", inner_, width_, out_bias);
  }

  /// Pooling, last norm and head.
  void ends() {
    if (has("fc_norm.weight")) {
      field("final_norm", "FinalNorm::after_pooling");
      norm("fc_norm", width_);
    } else if (has("norm.weight")) {
      norm("norm", width_);
    } else {
      field("final_norm", "FinalNorm::none");
    }
    std::string pool = config_.pool.value_or(fact("pool", has("cls_token") ? "token" : "avg"));
    if (has("attn_pool.latent") || has("attn_pool.q.weight")) {
      if (config_.pool && *config_.pool != "map")
        fail(config_.where, ": global_pool is ", printable(*config_.pool), ", and the checkpoint has attn_pool.latent");
      attention_pool();
    } else if (pool == "avg") {
      field("pooling", "Pooling::mean");
    } else if (pool.empty()) {
      field("features", "Features::tokens");
      if (has("head.weight")) fail(config_.where, ": global_pool is empty, and the checkpoint has head.weight");
      if (!has("cls_token")) field("pooling", "Pooling::mean");
    } else if (pool != "token") {
      fail(config_.where, ": global_pool ", printable(pool), " is none of token, avg and map with attn_pool.latent");
    } else if (!has("cls_token")) {
      fail(config_.where, ": global_pool is token, and the checkpoint has no cls_token");
    }
    if (facts_.empty() && !config_.pool) assume("tokens become one vector by " + pool);
    std::int64_t seen = width_;
    if (has("pre_logits.fc.weight")) {
      seen = shape("pre_logits.fc.weight", 2)[0];
      field("representation", std::to_string(seen));
      linear("pre_logits.fc", width_, seen);
    }
    classes_ = has("head.weight") ? shape("head.weight", 2)[0] : 0;
    if (config_.classes && *config_.classes != classes_)
      fail(config_.where, ": num_classes is ", *config_.classes, ", and the checkpoint ",
           classes_ ? text("has head.weight of ", classes_) : "has no head.weight");
    field("classes", classes_, 1000);
    if (classes_) linear("head", seen, classes_);
    if (classes_ && fields_.contains("distilled")) linear("head_dist", seen, classes_);
  }

  void attention_pool() {
    field("pooling", fact("attends", "") == "all" ? "Pooling::attention_to_all" : "Pooling::attention");
    const std::int64_t inner = shape("attn_pool.mlp.fc1.weight", 2)[0];
    const std::int64_t heads = std::stoll(fact("pooling_heads", std::to_string(heads_)));
    if (width_ % heads)
      fail(checkpoint_.where, ": ", named("attn_pool.q.weight"), " is ", width_, " wide, which ", heads,
           " heads do not divide");
    if (facts_.contains("pooling_heads")) field("pooling_heads", heads, heads_);
    if (inner != inner_) field("pooling_hidden", std::to_string(inner));
    expect("attn_pool.latent", {1, 1, width_});
    linear("attn_pool.q", width_, width_);
    linear("attn_pool.kv", width_, 2 * width_);
    linear("attn_pool.proj", width_, width_);
    norm("attn_pool.norm", width_);
    linear("attn_pool.mlp.fc1", width_, inner);
    linear("attn_pool.mlp.fc2", inner, width_);
  }

  void compare() const {
    std::string unsaid;
    int more = 0;
    for (const auto& [key, unused] : checkpoint_.shapes) {
      if (expected_.contains(key)) continue;
      // A bias by itself: what told of its layer is missing.
      const std::string weight = key.ends_with(".bias") ? key.substr(0, key.size() - 4) + "weight" : key;
      if (!has(weight)) fail(checkpoint_.where, ": has no ", named(weight), ", and has ", named(key));
      if (++more <= 3) unsaid += (unsaid.empty() ? "" : ", ") + named(key);
    }
    for (const auto& [key, wanted] : expected_) {
      const auto found = checkpoint_.shapes.find(key);
      if (found == checkpoint_.shapes.end()) fail(checkpoint_.where, ": has no ", named(key), " ", printed(wanted));
      if (found->second == wanted) continue;
      const auto in_file = [&, &name = key](Shape shape) {
        if (checkpoint_.keys.transposes(name)) std::reverse(shape.begin(), shape.end());
        return printed(shape);
      };
      fail(checkpoint_.where, ": ", named(key), " is ", in_file(found->second), " instead of ", in_file(wanted));
    }
    if (more > 3) unsaid += text(" and ", more - 3, " more");
    if (more) fail(checkpoint_.where, ": no declaration says ", unsaid);
  }

  std::string channels(const std::array<double, 3>& x) const {
    if (x[0] == x[1] && x[1] == x[2]) return number(x[0]);
    return text("{", number(x[0]), ", ", number(x[1]), ", ", number(x[2]), "}");
  }

  /// How pictures are prepared, and a line for what of it the configuration does not say.
  struct Input {
    std::array<double, 3> mean, deviation;
    double crop;
    bool bilinear = false, squash = false;
  };
  Input input() {
    constexpr std::array<double, 3> half{0.5, 0.5, 0.5};
    const auto is = [&](const char* part) { return library().find(part) != std::string::npos; };
    // OpenAI's pictures, ImageNet's, or neither.
    const Input usual = is("CLIP") ? Input{{0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}, 1}
                        : is("torchvision") || is("DINOv2") ? Input{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, 0.875}
                                                            : Input{half, half, checkpoint_.keys.are_timms() ? 0.9 : 1};
    std::string unsaid;
    const auto otherwise = [&](bool says, const std::string& value) {
      if (!says) unsaid += (unsaid.empty() ? "" : ", ") + value;
    };
    otherwise(config_.mean.has_value(), "mean " + channels(usual.mean));
    otherwise(config_.deviation.has_value(), "std " + channels(usual.deviation));
    otherwise(config_.crop.has_value(), "crop_pct " + number(usual.crop));
    otherwise(!config_.interpolation.empty(), "interpolation bicubic");
    otherwise(!config_.crop_mode.empty(), "crop_mode center");
    if (!unsaid.empty()) assume("no configuration says how pictures are prepared: " + unsaid);
    const std::string &scaled = config_.interpolation, &cropped = config_.crop_mode;
    if (!scaled.empty() && scaled != "bicubic" && scaled != "bilinear")
      fail(config_.where, ": interpolation ", printable(scaled), " is none of bicubic and bilinear");
    if (!cropped.empty() && cropped != "center" && cropped != "squash")
      fail(config_.where, ": crop_mode ", printable(cropped), " is none of center and squash");
    return {config_.mean.value_or(usual.mean), config_.deviation.value_or(usual.deviation),
            config_.crop.value_or(usual.crop), scaled == "bilinear", cropped == "squash"};
  }

  std::string header() {
    // In the order of VitSpec, as designated initializers have to be.
    static constexpr const char* order[] = {
        "image",     "patch",         "channels",       "width",       "heads",           "head",
        "depth",     "mlp",           "classes",        "rest",        "hidden",          "class_token",
        "distilled", "stem",          "registers",      "positions",   "patch_positions", "norm",
        "norms",     "qkv_bias",      "qk_norm",        "layer_scale", "activation",      "final_norm",
        "pooling",   "pooling_heads", "pooling_hidden", "features",    "representation",  "epsilon"};
    std::string spec;
    for (const char* name : order)
      if (const auto found = fields_.find(name); found != fields_.end())
        spec += text(spec.empty() ? "" : ",\n", "    .", name, " = ", found->second);
    const std::string what = !config_.architecture.empty()  ? "timm's " + config_.architecture
                             : checkpoint_.keys.are_timms() ? "A Vision Transformer"
                                                            : "A Vision Transformer of " + library();
    std::string out =
        text("// ", what, ", as its checkpoint has it: written by `tessera declare`.\n#pragma once\n\n#include \"",
             include_, "\"\n\nnamespace tessera::models {\n\n");
    std::string block = block_;
    if (!alias_.empty()) {
      block = name_ + "Block";
      out += text("template <class V>\nusing ", block, " = ", alias_, ";\n\n");
    }
    const std::string model =
        text(cait_ ? "Cait" : "Vit", spec.empty() ? "<{" : "<{\n", spec, "}", block.empty() ? "" : ", " + block, ">");
    const auto [mean, deviation, crop, bilinear, squash] = input();
    if (mean == std::array{0.5, 0.5, 0.5} && deviation == mean && crop == 0.9 && !bilinear && !squash) {
      out += text("using ", name_, " = ", model, ";\n");
    } else {
      const std::string prepared =
          text("{.mean = ", channels(mean), ", .deviation = ", channels(deviation), ", .crop = ", number(crop),
               bilinear ? ", .interpolation = Interpolation::bilinear" : "", squash ? ", .squash = true" : "", "}");
      out += text("struct ", name_, " : ", model, " {\n");
      out += classes_
                 ? text("  static constexpr Recipe recipe{.optimizer = {.learning_rate = 0.001}, .input = ", prepared,
                        "};\n")
                 : text("  static constexpr Preprocessing input", prepared, ";\n");
      out += "};\n";
    }
    return out + "\n}  // namespace tessera::models\n";
  }

  const Checkpoint& checkpoint_;
  const Config& config_;
  std::string name_, first_norm_, include_ = "models/vit.hpp", block_, alias_;
  std::map<std::string, std::string> facts_, fields_;
  std::map<std::string, Shape> expected_;
  std::vector<std::string> assumptions_;
  std::array<std::int64_t, 2> image_{};
  std::int64_t width_ = 0, channels_ = 0, height_ = 0, across_ = 0, front_ = 0, patches_ = 0, heads_ = 0, head_ = 0;
  std::int64_t inner_ = 0, classes_ = 0;
  int depth_ = 0;
  bool rms_ = false, cait_ = false, scaled_ = false, gated_ = false, separate_gate_ = false;
};

}  // namespace

Declaration declare(const Checkpoint& checkpoint, const Config& config, const std::string& name) {
  return Finder(checkpoint, config, name).declaration();
}

}  // namespace tessera::declare
