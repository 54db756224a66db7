#include "declare/ends.hpp"

#include "runtime/error.hpp"

namespace tessera::declare {

using runtime::fail;
using runtime::printable;
using runtime::text;

namespace {

void find_attention_pool(Findings& f) {
  f.field("pooling", f.fact("attends", "") == "all" ? "Pooling::attention_to_all" : "Pooling::attention");
  const std::int64_t inner = f.shape("attn_pool.mlp.fc1.weight", 2)[0];
  const std::int64_t heads = std::stoll(f.fact("pooling_heads", std::to_string(f.heads)));
  if (f.width % heads)
    fail(f.checkpoint.where, ": ", f.named("attn_pool.q.weight"), " is ", f.width, " wide, which ", heads,
         " heads do not divide");
  if (f.facts.contains("pooling_heads")) f.field("pooling_heads", heads, f.heads);
  if (inner != f.inner) f.field("pooling_hidden", std::to_string(inner));
  f.expect("attn_pool.latent", {1, 1, f.width});
  f.linear("attn_pool.q", f.width, f.width);
  f.linear("attn_pool.kv", f.width, 2 * f.width);
  f.linear("attn_pool.proj", f.width, f.width);
  f.norm("attn_pool.norm", f.width);
  f.linear("attn_pool.mlp.fc1", f.width, inner);
  f.linear("attn_pool.mlp.fc2", inner, f.width);
}

}  // namespace

void find_ends(Findings& f) {
  if (f.has("fc_norm.weight")) {
    f.field("final_norm", "FinalNorm::after_pooling");
    f.norm("fc_norm", f.width);
  } else if (f.has("norm.weight")) {
    f.norm("norm", f.width);
  } else {
    f.field("final_norm", "FinalNorm::none");
  }
  std::string pool =
      f.config.pool.value_or(f.fact("pool", f.has("cls_token") && !f.has("fc_norm.weight") ? "token" : "avg"));
  if (f.has("attn_pool.latent") || f.has("attn_pool.q.weight")) {
    if (f.config.pool && *f.config.pool != "map")
      fail(f.config.where, ": global_pool is ", printable(*f.config.pool), ", and the checkpoint has attn_pool.latent");
    find_attention_pool(f);
  } else if (pool == "avg") {
    f.field("pooling", "Pooling::mean");
  } else if (pool.empty()) {
    f.field("features", "Features::tokens");
    if (f.has("head.weight")) fail(f.config.where, ": global_pool is empty, and the checkpoint has head.weight");
    if (!f.has("cls_token")) f.field("pooling", "Pooling::mean");
  } else if (pool != "token") {
    fail(f.config.where, ": global_pool ", printable(pool), " is none of token, avg and map with attn_pool.latent");
  } else if (!f.has("cls_token") && !f.config.pool) {
    fail(f.checkpoint.where, ": has no ", f.named("cls_token"), ", which becomes the vector of a picture");
  } else if (!f.has("cls_token")) {
    fail(f.config.where, ": global_pool is token, and the checkpoint has no cls_token");
  }
  if (!f.config.pool && (f.facts.empty() || (!f.facts.contains("pool") && !f.has("attn_pool.latent"))))
    f.assume("tokens become one vector by " + pool);
  std::int64_t seen = f.width;
  if (f.has("pre_logits.fc.weight")) {
    seen = f.shape("pre_logits.fc.weight", 2)[0];
    f.field("representation", std::to_string(seen));
    f.linear("pre_logits.fc", f.width, seen);
  }
  const auto head = f.checkpoint.shapes.find("head.weight");
  if (pool == "token" && !f.config.pool && seen == f.width && head != f.checkpoint.shapes.end() &&
      head->second.size() == 2 && head->second[1] == 2 * seen) {
    f.field("pooling", "Pooling::class_token_and_mean");
    seen = 2 * seen;
    if (f.library().find("DINOv2") == std::string::npos)
      f.assume(f.named("head.weight") + " sees twice the width of a token: class token and mean of the patches");
  }
  f.model.classes = f.has("head.weight") ? f.shape("head.weight", 2)[0] : 0;
  if (f.config.classes && *f.config.classes != f.model.classes)
    fail(f.config.where, ": num_classes is ", *f.config.classes, ", and the checkpoint ",
         f.model.classes ? text("has head.weight of ", f.model.classes) : "has no head.weight");
  f.field("classes", f.model.classes, 1000);
  if (f.model.classes) f.linear("head", seen, f.model.classes);
  if (f.model.classes && f.model.fields.contains("distilled")) f.linear("head_dist", seen, f.model.classes);
}

}  // namespace tessera::declare
