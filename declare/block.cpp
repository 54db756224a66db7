#include "declare/block.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "declare/input.hpp"
#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::Shape;
using runtime::text;

namespace {

/// Keys of block i begin with this; what is found in block 0 is expected in each.
std::string at(int i, const std::string& rest) { return "blocks." + std::to_string(i) + "." + rest; }

void find_heads(Findings& f, std::int64_t all, std::optional<std::int64_t> told) {
  std::int64_t heads = 0;
  if (told) {
    heads = *told;
  } else if (f.config.heads) {
    heads = *f.config.heads;
  } else if (f.facts.contains("heads")) {
    heads = std::stoll(f.facts.at("heads"));
  } else {
    // Published models of these widths have 16 wider heads: SO400M, H/14, g/14, bigG/14.
    const bool wider = all == 1152 || all == 1280 || all == 1408 || all == 1664;
    heads = wider ? 16 : std::max<std::int64_t>(1, all / 64);
    if (all < 1 || all % heads)
      fail(f.checkpoint.where, ": ", all,
           " numbers of queries do not tell how many heads there are; --config FILE with ", "{\"num_heads\": N} would");
    f.assume(text("no configuration says how many heads there are: ", heads, ", each ", all / heads, " wide"));
  }
  if (all < 1 || heads < 1 || all % heads)
    fail(f.checkpoint.where, ": attention in blocks.0 is ", all, " wide, which ", heads, " heads do not divide");
  if (told && f.config.heads && *f.config.heads != heads)
    fail(f.config.where, ": num_heads is ", *f.config.heads, ", and the shapes of blocks.0 have ", heads);
  f.field("heads", heads, 3);
  f.heads = heads;
  f.head = all / heads;
  if (all != f.width) f.field("head", std::to_string(f.head));
}

void find_hidden(Findings& f, std::int64_t inner) {
  if (inner < 1) fail(f.checkpoint.where, ": the shapes of blocks.0 leave no hidden layer for an MLP");
  f.inner = inner;
  if (inner % f.width)
    f.field("hidden", std::to_string(inner));
  else
    f.field("mlp", inner / f.width, 4);
}

void expect_difference(Findings& f, const std::string& prefix) {
  for (const char* lambda : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
    f.expect(prefix + lambda, {f.head / 2});
  f.expect(prefix + "sub_norm.weight", {f.head});
}

void find_parallel(Findings& f) {
  const Shape& in = f.shape(at(0, "in_proj.weight"), 2);
  const bool differs = f.has(at(0, "lambda_q1")), bias = f.has(at(0, "in_proj.bias"));
  f.model.include = differs ? "models/vit_diff.hpp" : "models/vit_parallel.hpp";
  f.model.block = differs ? "DifferentialParallelBlock" : "ParallelScalingBlock";
  const std::int64_t all =
      differs ? (in[0] - f.shape(at(0, "out_proj.weight"), 2)[1]) / 2 : f.shape(at(0, "attn_out_proj.weight"), 2)[1];
  std::optional<std::int64_t> told;
  if (differs) told = all / std::max<std::int64_t>(1, 2 * f.shape(at(0, "lambda_q1"), 1)[0]);
  if (f.has(at(0, "q_norm.weight"))) told = all / f.shape(at(0, "q_norm.weight"), 1)[0];
  find_heads(f, all, told);
  find_hidden(f, in[0] - 3 * all);
  if (!bias) f.field("qkv_bias", "false");
  f.scaled = f.has(at(0, "ls.gamma"));
  const bool normed = f.has(at(0, "q_norm.weight"));
  if (normed) f.field("qk_norm", "true");
  for (int i = 0; i < f.depth; ++i) {
    f.norm(at(i, "in_norm"), f.width);
    f.linear(at(i, "in_proj"), f.width, 3 * all + f.inner, bias);
    if (f.scaled) f.expect(at(i, "ls.gamma"), {f.width});
    if (differs) {
      f.linear(at(i, "out_proj"), all + f.inner, f.width);
      expect_difference(f, at(i, ""));
      continue;
    }
    if (!bias) f.expect(at(i, "mlp_bias"), {f.inner});
    if (normed) f.norm(at(i, "q_norm"), f.head), f.norm(at(i, "k_norm"), f.head);
    f.linear(at(i, "attn_out_proj"), all, f.width);
    f.linear(at(i, "mlp_out_proj"), f.inner, f.width);
  }
}

void expect_mlp(Findings& f, const std::string& mlp, bool in_bias, bool out_bias, bool normed) {
  if (f.separate_gate)
    f.linear(mlp + "fc1_g", f.width, f.inner, in_bias), f.linear(mlp + "fc1_x", f.width, f.inner, in_bias);
  else
    f.linear(mlp + "fc1", f.width, f.gated ? 2 * f.inner : f.inner, in_bias);
  if (normed) f.norm(mlp + "norm", f.inner);
  f.linear(mlp + "fc2", f.inner, f.width, out_bias);
}

/// Heads of keys and values in each block, of three maps: all, or fewer that groups of queries share.
std::vector<std::int64_t> find_groups(Findings& f, const std::string& attn) {
  std::vector<std::int64_t> groups;
  for (int i = 0; i < f.depth; ++i) {
    const std::int64_t rows = f.shape(at(i, attn + "k_proj.weight"), 2)[0];
    const std::int64_t count = rows / f.head;
    if (count < 1 || rows % f.head || f.heads % count)
      fail(f.checkpoint.where, ": ", f.named(at(i, attn + "k_proj.weight")), " has ", rows, " rows, and ", f.heads,
           " heads of queries, each ", f.head, " wide, do not share them evenly");
    if (count != f.heads && !f.has(at(i, attn + "k_proj.bias")))
      fail(f.checkpoint.where, ": has no ", f.named(at(i, attn + "k_proj.bias")),
           ", which attention whose heads share keys has");
    groups.push_back(count);
  }
  return groups;
}

void find_serial(Findings& f) {
  const bool things = f.has(at(0, "attns.0.norm.weight"));
  const std::string attn = things ? "attns.0.attn." : "attn.", mlp = things ? "ffns.0.mlp." : "mlp.";
  const auto of = [&](const std::string& part, const std::string& key) { return at(0, part + key); };
  // Attention.
  const bool separate = f.has(of(attn, "q_proj.weight")), qv = f.has(of(attn, "q_bias"));
  const bool k_bias = f.has(of(attn, "k_proj.bias"));
  const bool bias = f.has(of(attn, "qkv.bias"));
  const std::int64_t all =
      separate ? f.shape(of(attn, "q_proj.weight"), 2)[0] : f.shape(of(attn, "qkv.weight"), 2)[0] / 3;
  const bool differs = f.has(of(attn, "lambda_q1")), qk = f.has(of(attn, "q_norm.weight"));
  const bool table = f.has(of(attn, "relative_position_bias_table"));
  const bool mlp_places = f.has(of(attn, "rel_pos.mlp.fc1.weight")), shared = f.has("shared_rel_pos.mlp.fc1.weight");
  const bool mixed = f.has("rope.freqs");
  std::optional<std::int64_t> told;
  if (qk) told = all / f.shape(of(attn, "q_norm.weight"), 1)[0];
  if (differs) told = all / (2 * f.shape(of(attn, "lambda_q1"), 1)[0]);
  if (table) told = f.shape(of(attn, "relative_position_bias_table"), 2)[1];
  if (mlp_places) told = f.shape(of(attn, "rel_pos.mlp.fc2.weight"), 2)[0];
  if (shared) told = f.shape("shared_rel_pos.mlp.fc2.weight", 2)[0];
  if (mixed) told = f.shape("rope.freqs", 4)[2];
  find_heads(f, all, told);
  const std::vector<std::int64_t> groups =
      separate ? find_groups(f, attn) : std::vector<std::int64_t>(static_cast<std::size_t>(f.depth), f.heads);
  const bool differ = std::any_of(groups.begin(), groups.end(), [&](std::int64_t count) { return count != groups[0]; });
  if (qk) f.field("qk_norm", "true");
  if (!separate && !qv && !bias) f.field("qkv_bias", "false");
  const bool attn_norm = f.has(of(attn, "norm.weight")), attn_bias = f.has(of(attn, "proj.bias"));
  // MLP.
  f.separate_gate = f.has(of(mlp, "fc1_g.weight"));
  const std::int64_t inner = f.shape(of(mlp, "fc2.weight"), 2)[1];
  const std::string first = f.separate_gate ? "fc1_g" : "fc1";
  f.gated = !f.separate_gate && f.shape(of(mlp, "fc1.weight"), 2)[0] == 2 * inner;
  const bool in_bias = f.has(of(mlp, first + ".bias")), out_bias = f.has(of(mlp, "fc2.bias"));
  const bool mlp_norm = f.has(of(mlp, "norm.weight"));
  if (!f.separate_gate && !(in_bias && out_bias))
    fail(f.checkpoint.where, ": has no ", f.named(of(mlp, in_bias ? "fc2.bias" : "fc1.bias")),
         ", which every MLP without a map of its own for a gate has");
  if (const std::string gate = f.fact("gate", f.fact("activation", ""));
      (f.gated || f.separate_gate) && gate != "silu") {
    if (f.facts.contains("activation") || f.facts.contains("gate"))
      fail(f.checkpoint.where, ": ", f.named(of(mlp, first + ".weight")),
           f.gated ? " makes two maps" : " makes the map of a gate", ", and a gate of ", gate,
           " has no declaration: silu has");
    if (f.gated)
      f.assume(f.named(of(mlp, "fc1.weight")) +
               " makes two maps, and nothing says of what kind: SwiGLU, the gate first");
  }
  find_hidden(f, inner);
  // The block.
  const bool gamma = f.has(at(0, "gamma_1")), gamma_of_mlp = f.fact("scales", "") != "attention";
  f.scaled = gamma || f.has(at(0, "ls1.gamma")) || f.has(at(0, "attns.0.ls.gamma"));
  const std::string rope = f.fact("rope", "");
  std::string places = "Unplaced<V>";
  std::int64_t places_width = 0;
  if (table) {
    f.model.include = "models/beit.hpp";
    places = "RelativeTable<V>";
  } else if (mlp_places) {
    f.model.include = "models/vit_relpos.hpp";
    places_width = f.shape(of(attn, "rel_pos.mlp.fc1.weight"), 2)[0];
    places = places_width == 128 ? "RelativeMlpOfBlock<V>" : text("RelativeMlpOfBlock<V, ", places_width, ">");
  } else if (shared) {
    f.model.include = "models/vit_relpos.hpp";
    places_width = f.shape("shared_rel_pos.mlp.fc1.weight", 2)[0];
  } else if (!rope.empty() && !mixed) {
    if (f.head % 4)
      fail(f.checkpoint.where, ": heads of blocks.0 are ", f.head, " wide, and rotary positions need a multiple of 4");
    std::string spaced;
    for (const char letter : rope) spaced += letter == ',' ? ", " : letter == '=' ? " = " : std::string(1, letter);
    places = "Rotary<V, Rope" + spaced + ">";
  }
  if (!f.has("pos_embed") && places == "Unplaced<V>" && !shared && !mixed)
    fail(f.checkpoint.where, ": has no ", f.named("pos_embed"), ", and blocks.0 has no positions of its own either");
  const auto qkv_of = [&](std::int64_t count) {
    return count != f.heads ? text("GroupedQkv<V, ", count, ">")
           : separate       ? (k_bias ? "SeparateQkv<V, Linear<V::D, V::A>>" : "SeparateQkv<V>")
           : qv             ? "QvBias<V>"
                            : "FusedQkv<V>";
  };
  const std::string qkv = differ ? "Qkv" : qkv_of(groups[0]);
  for (std::size_t i = 0; differ && i < groups.size(); ++i)
    if (i > 0 && groups[i] == groups[i - 1])
      ++f.model.stacks.back().second;
    else
      f.model.stacks.emplace_back(qkv_of(groups[i]), 1);
  const std::string projection = attn_norm ? "NormedProjection<V>" : !attn_bias ? "LinearWithoutBias<V::A, V::D>" : "";
  const std::string between = mlp_norm ? "typename V::template Norm<V::M>" : "";
  std::string feed;
  if (f.separate_gate) {
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
    f.model.include = "models/vit_parallel.hpp";
    f.model.alias = "ParallelThingsBlock<V>";
  } else if (f.is_cait) {
    f.model.include = "models/cait.hpp";
  } else if (differs) {
    f.model.include = "models/vit_diff.hpp";
    f.model.block = "DifferentialBlock";
  } else if (mixed) {
    f.model.include = "models/eva.hpp";
    f.model.block = "RopeMixedBlock";
  } else if (shared) {
    f.model.alias = text("SharedRelativeBlock<V, ", places_width, ">");
  } else if (!made.empty()) {
    f.model.alias = (!gamma         ? "VitBlock<V, "
                     : gamma_of_mlp ? "GammaBlock<V, "
                                    : "AttentionGammaBlock<V, ") +
                    made + ">";
    if (gamma && f.model.include == "models/vit.hpp") f.model.include = "models/eva.hpp";
  }

  for (int i = 0; i < f.depth; ++i) {
    const int copies = things ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      const std::string a = things ? text("attns.", copy, ".attn.") : "attn.";
      const std::string m = things ? text("ffns.", copy, ".mlp.") : "mlp.";
      if (separate) {
        f.linear(at(i, a + "q_proj"), f.width, all);
        const std::int64_t shared = groups[static_cast<std::size_t>(i)] * f.head;
        f.linear(at(i, a + "k_proj"), f.width, shared, k_bias);
        f.linear(at(i, a + "v_proj"), f.width, shared);
      } else {
        f.linear(at(i, a + "qkv"), f.width, 3 * all, bias && !qv);
        if (qv) f.expect(at(i, a + "q_bias"), {all}), f.expect(at(i, a + "v_bias"), {all});
      }
      if (qk) f.norm(at(i, a + "q_norm"), f.head), f.norm(at(i, a + "k_norm"), f.head);
      if (differs) expect_difference(f, at(i, a));
      if (table) {
        const std::int64_t down = f.image[0] / f.height, across = f.image[1] / f.across;
        const std::int64_t rows = (2 * down - 1) * (2 * across - 1);
        const std::string key = at(i, a + "relative_position_bias_table");
        if (!f.has("cls_token") && f.shape(key, 2)[0] == rows + 3)
          fail(f.checkpoint.where, ": has no ", f.named("cls_token"), ", and ", f.named(key),
               " has rows for a token before the patches");
        f.expect(key, {rows + 3 * f.front, f.heads});
      }
      if (mlp_places) {
        f.linear(at(i, a + "rel_pos.mlp.fc1"), 2, places_width);
        f.linear(at(i, a + "rel_pos.mlp.fc2"), places_width, f.heads);
      }
      if (attn_norm) f.norm(at(i, a + "norm"), all);
      f.linear(at(i, a + "proj"), all, f.width, attn_bias);
      if (f.is_cait) f.linear(at(i, a + "proj_l"), f.heads, f.heads), f.linear(at(i, a + "proj_w"), f.heads, f.heads);
      expect_mlp(f, at(i, m), in_bias, out_bias, mlp_norm);
      if (things) {
        f.norm(at(i, text("attns.", copy, ".norm")), f.width);
        f.norm(at(i, text("ffns.", copy, ".norm")), f.width);
        if (f.scaled) f.expect(at(i, text("attns.", copy, ".ls.gamma")), {f.width});
        if (f.scaled) f.expect(at(i, text("ffns.", copy, ".ls.gamma")), {f.width});
      }
    }
    if (things) continue;
    f.norm(at(i, "norm1"), f.width);
    f.norm(at(i, "norm2"), f.width);
    if (f.scaled) f.expect(at(i, gamma ? "gamma_1" : "ls1.gamma"), {f.width});
    if (f.scaled && gamma_of_mlp) f.expect(at(i, gamma ? "gamma_2" : "ls2.gamma"), {f.width});
  }
  if (shared) {
    f.linear("shared_rel_pos.mlp.fc1", 2, places_width);
    f.linear("shared_rel_pos.mlp.fc2", places_width, f.heads);
  }
  if (mixed) f.expect("rope.freqs", {2, f.depth, f.heads, f.head / 2});
  if (f.is_cait)
    for (int i = 0; i < 2; ++i) {
      const std::string in = text("blocks_token_only.", i, ".");
      for (const char* map : {"attn.q", "attn.k", "attn.v", "attn.proj"}) f.linear(in + map, f.width, f.width);
      f.norm(in + "norm1", f.width), f.norm(in + "norm2", f.width);
      f.expect(in + "gamma_1", {f.width}), f.expect(in + "gamma_2", {f.width});
      expect_mlp(f, in + "mlp.", true, true, false);
    }
}

}  // namespace

void find_block(Findings& f) {
  while (f.depth < 4096 && f.checkpoint.has_any(at(f.depth, ""))) ++f.depth;
  f.field("depth", f.depth, 12);
  const std::string act = f.fact("activation", "gelu");
  if (f.has(at(0, "in_proj.weight")))
    find_parallel(f);
  else
    find_serial(f);
  if (f.gated)
    f.field("activation", "Activation::swiglu");
  else if (act != "gelu" && !f.separate_gate)
    f.field("activation", "Activation::" + act);
  if (const std::string norms = f.fact("norms", "before"); norms != "before") f.field("norms", "Norms::" + norms);
  if (f.scaled) {
    if (!f.facts.contains("layer_scale")) f.assume("factors on the branches would start at 1e-5 in training");
    f.field("layer_scale", number(std::stod(f.fact("layer_scale", "1e-5"))));
  }
  if (const std::string epsilon = f.fact("epsilon", "1e-6"); std::stod(epsilon) != 1e-6)
    f.field("epsilon", number(std::stod(epsilon)));
}

}  // namespace tessera::declare
