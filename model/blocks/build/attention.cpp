// The functions cache and attention.
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/blocks/build/call.h"
#include "model/operators/all_operators.h"

namespace fuseline {

// The tensor of scales beside a cache, where its format has one for each head of each token.
std::optional<TensorValue> BlockBuilder::new_cache_scale(const std::string& name,
                                                         const TensorValue& cache,
                                                         const std::optional<ShapeSize>& heads,
                                                         Position at) {
  const StoredCache& stored = workload_.formats.cache;
  const TensorId id = cache.operand.tensor;
  graph_.tensor(id).dtype = stored.element();
  cached_[id] = {};
  if (!stored.scaled()) return std::nullopt;
  if (!heads)
    fail(at, {.field = "heads",
              .value = stored.name(),
              .message = "is missing: this cache has a scale for each head of each token",
              .allowed = "cache(..., heads = Hkv)"});
  if (cache.operand.cols % heads->value() != 0)
    fail(at, {.field = "heads",
              .value = std::to_string(heads->value()),
              .message = fmt::format("{} columns are not so many whole heads", cache.operand.cols),
              .allowed = "a divisor"});
  const TensorValue scale =
      new_tensor(name + "_scale", Role::cache, cache.rows, *heads, at, "[B·S, Hkv]");
  graph_.tensor(scale.operand.tensor).dtype = stored.scale_type();
  cached_[id] = {heads->value(), scale.operand.tensor};
  return scale;
}

// The scales of the cache's rows, for an attention with so many key and value heads.
std::optional<TensorValue> BlockBuilder::cache_scale_of(const TensorValue& rows, std::int64_t heads,
                                                        Position at) {
  const Operand& codes = rows.operand;
  const auto found = cached_.find(codes.tensor);
  if (found == cached_.end() || !found->second.scale) return std::nullopt;
  const std::int64_t width = graph_.tensor(codes.tensor).cols / found->second.heads;
  const std::int64_t first = codes.col_begin / width;
  const bool part_of_one = heads == 1 && codes.col_begin + codes.cols <= (first + 1) * width;
  const bool whole_heads = codes.col_begin % width == 0 && codes.cols == heads * width;
  if (!part_of_one && !whole_heads)
    fail(at, {.field = graph_.tensor(codes.tensor).name,
              .value = std::to_string(heads),
              .message = fmt::format("has a scale for every {} columns, which are no heads of this "
                                     "attention",
                                     width),
              .allowed = "heads of the cache"});
  TensorValue scale = rows;
  scale.operand = graph_.columns(*found->second.scale, first, heads);
  scale.operand.rows = codes.rows;
  scale.operand.at = codes.at;
  scale.cols = ShapeSize(heads);
  return scale;
}

// cache(k = k_rot, v = v, heads = Hkv): in decode the new rows go behind those of the cache, and
// what is given are the cache's rows, of which a window leaves the last ones. Elsewhere what came
// in. `heads` says which columns share a scale, where the workload stores caches so.
TextValue BlockBuilder::cache(Call& call, const Naming& naming) {
  const auto window = call.whole_named("window", 0, kLargestDimension);
  const auto heads = call.whole_named("heads", 1, kLargestDimension);
  const auto parts = call.other_tensors();
  if (parts.empty())
    fail(call.at(),
         {.field = "cache", .message = "nothing is given to it", .allowed = "NAME = TENSOR"});
  TextValues out;
  if (workload_.phase != Phase::decode) {
    for (const auto& [name, x] : parts) out.push_back({x});
    return {out};
  }
  const std::int64_t B = workload_.batch;
  const std::int64_t T = workload_.seq;
  const std::int64_t S = workload_.kv_tokens();
  const auto rows = ShapeSize::multiply(ShapeSize("B", B), ShapeSize("S", S));
  if (!rows) fail(call.at(), {.field = "cache", .message = "has rows beyond 64 bits"});
  std::vector<TensorValue> caches;
  std::vector<std::optional<TensorValue>> scales;
  for (const auto& [name, x] : parts) {
    if (x.operand.rows != workload_.rows())
      fail(call.at(),
           {.field = name,
            .message = fmt::format("is {}", shape_in_words(x)),
            .allowed = fmt::format("M = {} rows, those of the new tokens", workload_.rows())});
    caches.push_back(new_tensor(scope().prefix + "cache_" + name, Role::cache, *rows, x.cols,
                                call.at(), "[B·S, " + x.cols.written() + "]"));
    scales.emplace_back();
    if (workload_.formats.cache.quantised())
      scales.back() =
          new_cache_scale(scope().prefix + "cache_" + name, caches.back(), heads, call.at());
  }
  std::int64_t span = S;
  std::string words = "S";
  if (window && window->value() > 0 && window->value() + T - 1 < S) {
    span = window->value() + T - 1;
    words = "window+T-1";
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const TensorId id = caches[i].operand.tensor;
    TensorValue appended = caches[i];
    appended.operand = graph_.rows_of_parts(id, B, S - T, T);
    std::vector<TensorValue> writes = {appended};
    OpKind kind = operators::cache_append;
    Attributes attributes = Sequences{B, T};
    if (scales[i]) {
      writes.push_back(*scales[i]);
      writes.back().operand = graph_.rows_of_parts(scales[i]->operand.tensor, B, S - T, T);
      kind = operators::cache_append_scaled;
      attributes = ScaledHeads{heads->value(), workload_.formats.cache};
    }
    add_op(scope().prefix + "append_" + parts[i].first, kind, site_name(naming, "kvcache"),
           {parts[i].second}, writes, attributes, call.at());
    TensorValue seen = caches[i];
    seen.operand = graph_.rows_of_parts(id, B, S - span, span);
    seen.rows = ShapeSize(B * span);
    seen.cached_tokens = S;
    seen.tokens_words = words;
    out.push_back({seen});
  }
  return {out};
}

// scores, softmax, context. q [B·T, H·d], k [B·S, Hkv·d], v [B·S, Hkv·dv]: a [B·T, H·dv].
TextValue BlockBuilder::attention(Call& call, const Naming& naming) {
  const TensorValue q = call.tensor(0, "q");
  const TensorValue k = call.tensor(1, "k");
  const TensorValue v = call.tensor(2, "v");
  const auto heads = call.whole_named("heads", 1, kLargestDimension);
  const auto kv_heads = call.whole_named("kv_heads", 1, kLargestDimension);
  const auto window = call.whole_named("window", 0, kLargestDimension);
  const auto prefix = call.whole_named("prefix", 0, kLargestDimension);
  const std::string mask = call.word_named("mask", {"causal", "none"}, "none");
  const auto scale = call.number_named("scale");
  const auto softcap = call.number_named("softcap");
  const Argument* const bias_given = call.named("bias");
  const auto needs = [&](bool holds, const std::string& message, const std::string& allowed) {
    if (!holds) fail(call.at(), {.field = "attention", .message = message, .allowed = allowed});
  };
  needs(heads.has_value(), "'heads' is missing", "heads = H");
  const std::int64_t B = workload_.batch;
  const std::int64_t H = heads->value();
  const std::int64_t Hkv = kv_heads ? kv_heads->value() : H;
  needs(H % Hkv == 0, fmt::format("{} heads do not share {} key and value heads evenly", H, Hkv),
        fmt::format("a divisor of {}", H));
  needs(q.operand.cols % H == 0,
        fmt::format("{} columns of q are not {} whole heads", q.operand.cols, H), "a multiple");
  const std::int64_t d = q.operand.cols / H;
  needs(k.operand.cols == Hkv * d,
        fmt::format("k has {} columns, and {} heads of q's width {} have {}", k.operand.cols, Hkv,
                    d, Hkv * d),
        "the same width of a head in q and k");
  needs(v.operand.cols % Hkv == 0,
        fmt::format("{} columns of v are not {} whole heads", v.operand.cols, Hkv), "a multiple");
  needs(q.operand.rows % B == 0 && k.operand.rows % B == 0,
        fmt::format("rows of q ({}) and k ({}) are not {} whole sequences", q.operand.rows,
                    k.operand.rows, B),
        "B tokens times a number of them");
  needs(k.operand.rows == v.operand.rows,
        fmt::format("k has {} rows and v {}", k.operand.rows, v.operand.rows), "as many");
  AttentionShape a;
  a.heads = H;
  a.kv_heads = Hkv;
  a.head_width = d;
  a.batch = B;
  a.q_tokens = q.operand.rows / B;
  const std::int64_t span = k.operand.rows / B;
  a.kv_tokens = k.cached_tokens > 0 ? k.cached_tokens : span;
  a.window = window ? window->value() : 0;
  a.prefix = prefix ? prefix->value() : 0;
  // A single new token sees all of the cache, so no mask is needed.
  const bool one_new = k.cached_tokens > 0 && a.q_tokens == 1;
  a.causal = mask == "causal" && !one_new;
  needs(workload_.phase != Phase::decode || k.cached_tokens > 0,
        "in decode the new tokens see a cache, and this block keeps none",
        "cache(k = K, v = V) before it, or phase forward: such a block has no decode");
  needs(!a.causal || a.kv_tokens >= a.q_tokens,
        fmt::format("a causal mask over {} keys of {} queries", a.kv_tokens, a.q_tokens),
        "at least as many keys as queries");
  const std::int64_t value_width = v.operand.cols / Hkv;
  if (value_width != d) a.value_width = value_width;
  a.scale = scale.value_or(1.0 / std::sqrt(static_cast<double>(d)));
  a.softcap = softcap.value_or(0);
  needs(std::isfinite(a.scale) && a.scale > 0, "'scale' is not above 0", "a number above 0");
  needs(std::isfinite(a.softcap) && a.softcap >= 0, "'softcap' is below 0", "a number, 0 = none");

  // "scores", or what a label calls a second attention: "cross_scores".
  const auto own = [&](const std::string& name) {
    return naming.outermost && !naming.op.empty() ? naming.op + "_" + name : name;
  };
  const auto tensor_name = [&](const std::string& name) {
    return tensor_names_.unused(scope().prefix + own(name));
  };
  const auto operator_name = [&](const std::string& name) {
    return op_names_.unused(scope().prefix + own(name));
  };
  const std::string tokens =
      a.q_tokens == workload_.seq ? std::string("T") : std::to_string(a.q_tokens);
  const std::string keys = !k.tokens_words.empty()         ? k.tokens_words
                           : span == workload_.kv_tokens() ? std::string("S")
                                                           : std::to_string(span);
  const std::string symbol = fmt::format("[B·{}·{}, {}]", heads->written(), tokens, keys);
  const auto score_rows = ShapeSize::multiply(ShapeSize(B * a.q_tokens), *heads);
  needs(score_rows.has_value(), "its scores have rows beyond 64 bits", "smaller sizes");
  const std::string site = site_name(naming, "attention");
  const TensorValue scores = new_tensor(tensor_name("scores"), Role::activation, *score_rows,
                                        ShapeSize(span), call.at(), symbol);
  const bool in_codes = cached_.contains(k.operand.tensor);
  needs(in_codes == cached_.contains(v.operand.tensor),
        "one of k and v is a cache in few bits, the other is not", "both from cache(...)");
  AttentionShape of_keys = a;  // of the steps that read them
  if (in_codes) of_keys.cache = workload_.formats.cache;
  std::vector<TensorValue> score_reads{q, k};
  if (bias_given != nullptr) {
    const TextValue b = evaluate(*bias_given->value, {.outermost = false});
    if (const auto* tensor = b.get<TensorValue>()) {
      needs(tensor->operand.rows == H * a.q_tokens && tensor->operand.cols == span,
            fmt::format("the bias is {}", shape_in_words(*tensor)),
            fmt::format("[H·T, S] = [{}, {}]", H * a.q_tokens, span));
      score_reads.push_back(*tensor);
    }
  }
  if (const auto of_k = cache_scale_of(k, Hkv, call.at())) score_reads.push_back(*of_k);
  add_op(operator_name("scores"), operators::attention_scores, site, score_reads, {scores}, of_keys,
         call.at());
  const TensorValue probs = new_tensor(tensor_name("probs"), Role::activation, *score_rows,
                                       ShapeSize(span), call.at(), symbol);
  add_op(operator_name("softmax"), operators::softmax, site, {scores}, {probs}, a, call.at());
  ShapeSize width = q.cols;
  if (value_width != d) {
    const auto product = ShapeSize::multiply(*heads, ShapeSize(value_width));
    needs(product.has_value(), "the result has columns beyond 64 bits", "fewer");
    width = *product;
  }
  const TensorValue out =
      new_tensor(result_name(naming, "attn"), Role::activation, q.rows, width, call.at());
  std::vector<TensorValue> context_reads{probs, v};
  if (const auto of_v = cache_scale_of(v, Hkv, call.at())) context_reads.push_back(*of_v);
  add_op(operator_name("context"), operators::attention_context, site, context_reads, {out},
         of_keys, call.at());
  return {out};
}

}  // namespace fuseline
