// Attention as one call, or written out: softmax(q kᵀ scale + mask) v.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/import/all_patterns.h"

namespace fuseline {

namespace in_attention {
namespace {

// What both forms say.
struct Found {
  std::size_t q = 0, k = 0, v = 0;
  std::optional<std::size_t> mask{};
  bool causal = false;
  std::optional<double> scale{};  // nothing: 1 / sqrt(d)
  double softcap = 0;
};

// Whether the mask is the same for all heads: [T, S], [1, T, S] or [B, 1, T, S].
bool is_for_all_heads(Translator& t, std::size_t mask) {
  const std::vector<std::int64_t>& shape = t.node(mask).shape;
  return shape.size() <= 2 || shape[shape.size() - 3] == 1;
}

std::optional<Found> one_call(Translator& t, std::size_t at) {
  const auto q = t.tensor(at, 0, "query");
  const auto k = t.tensor(at, 1, "key");
  const auto v = t.tensor(at, 2, "value");
  if (!q || !k || !v) return std::nullopt;
  // The library's own kernels, which a decomposed graph calls, have their arguments by name.
  const bool plain = t.is_call(at, "aten.scaled_dot_product_attention");
  constexpr std::size_t kNowhere = 99;
  if (t.number(at, plain ? 4 : 3, "dropout_p").value_or(0) != 0) return std::nullopt;
  return Found{.q = *q,
               .k = *k,
               .v = *v,
               .mask = t.tensor(at, plain ? 3 : kNowhere, "attn_mask"),
               .causal = t.flag_or(at, plain ? 5 : 4, "is_causal", false),
               .scale = t.number(at, plain ? 6 : kNowhere, "scale")};
}

std::optional<Found> written_out(Translator& t, std::size_t at) {
  const auto product = t.both(at);
  if (!product) return std::nullopt;
  const std::size_t softmax = product->first;
  if (!t.is_call(softmax, "aten.softmax") && !t.is_call(softmax, "aten._softmax"))
    return std::nullopt;
  const auto rank = static_cast<std::int64_t>(t.node(softmax).shape.size());
  const std::int64_t dim = t.whole_or(softmax, 1, "dim", 0);
  auto scores = t.tensor(softmax, 0, "self");
  if (!scores || (dim != -1 && dim != rank - 1)) return std::nullopt;
  Found found{.v = product->second, .scale = 1.0};
  // Masks are added, or choose between scores and the least number.
  for (;;) {
    std::optional<std::size_t> masked, mask;
    if (t.is_call(*scores, "aten.add")) {
      masked = t.tensor(*scores, 0, "self");
      mask = t.tensor(*scores, 1, "other");
    } else if (t.is_call(*scores, "aten.where")) {
      mask = t.tensor(*scores, 0, "condition");
      masked = t.tensor(*scores, 1, "self");
    } else if (t.is_call(*scores, "aten.masked_fill")) {
      masked = t.tensor(*scores, 0, "self");
      mask = t.tensor(*scores, 1, "mask");
    } else {
      break;
    }
    if (!masked || !mask || !is_for_all_heads(t, *mask)) return std::nullopt;
    scores = masked;
    found.mask = mask;
  }
  const auto factor = [&](std::size_t node) -> std::optional<std::pair<std::size_t, double>> {
    const bool divides = t.is_call(node, "aten.div");
    if (!divides && !t.is_call(node, "aten.mul")) return std::nullopt;
    auto scaled = t.scaled(node);
    if (scaled && divides) {
      if (scaled->second == 0) return std::nullopt;
      scaled->second = 1 / scaled->second;
    }
    return scaled;
  };
  // cap * tanh(scores / cap)
  if (const auto capped = factor(*scores); capped && t.is_call(capped->first, "aten.tanh")) {
    const auto inner = t.tensor(capped->first, 0, "self");
    const auto scaled = inner ? factor(*inner) : std::nullopt;
    if (!scaled || std::abs(scaled->second * capped->second - 1) > 1e-6) return std::nullopt;
    found.softcap = capped->second;
    scores = scaled->first;
  }
  if (const auto scaled = factor(*scores)) {
    found.scale = scaled->second;
    scores = scaled->first;
  }
  const auto pair = t.is_call(*scores, "aten.matmul") ? t.both(*scores) : std::nullopt;
  if (!pair || !t.is_call(pair->second, "aten.transpose")) return std::nullopt;
  const auto k = t.tensor(pair->second, 0, "self");
  std::vector<std::int64_t> swapped{t.whole_or(pair->second, 1, "dim0", 0),
                                    t.whole_or(pair->second, 2, "dim1", 0)};
  for (std::int64_t& s : swapped) s = s < 0 ? s + rank : s;
  std::sort(swapped.begin(), swapped.end());
  if (!k || swapped != std::vector<std::int64_t>{rank - 2, rank - 1}) return std::nullopt;
  found.q = pair->first;
  found.k = *k;
  return found;
}

// Heads [B, H, T, d]: where their columns lie, and how many are apart from each other.
struct Heads {
  MatrixColumns range{};
  std::int64_t all = 0;  // with those that are repeated
  std::int64_t own = 0;
  std::int64_t width = 0;
  std::int64_t tokens = 0;
  TensorView view{};
};

std::optional<Heads> heads_of(Translator& t, std::size_t at) {
  if (!t.view(at) || t.view(at)->dims.size() != 4) return std::nullopt;
  Heads h;
  h.view = *t.view(at);
  const std::vector<std::int64_t> sizes = sizes_of(h.view);
  h.all = sizes[1];
  h.tokens = sizes[2];
  h.width = sizes[3];
  // Queries that share keys stand behind each other, so what is repeated comes last.
  Dimension& heads = h.view.dims[1];
  if (!heads.empty() && heads.back().axis == MatrixAxis::repeated) heads.pop_back();
  h.own = sizes_of(h.view)[1];
  const Dimension one{{MatrixAxis::column, h.own, h.width}};
  if (h.own > 1 && heads != one) return std::nullopt;
  const auto range = in_any_order(h.view, t.rows_of(h.view));
  const Dimension& last = h.view.dims[3];
  if (!range || range->count != h.own * h.width || last.size() != 1 || last[0].stride != 1 ||
      last[0].axis != MatrixAxis::column)
    return std::nullopt;
  h.range = *range;
  return h;
}

// The input that a mask is made of, or its own name.
std::string input_behind(Translator& t, std::size_t mask) {
  std::size_t at = mask;
  while (t.node(at).kind == SavedKind::call) {
    const auto read = t.tensor(at, 0, "self");
    if (!read) return t.node(mask).name;
    at = *read;
  }
  return t.node(at).name;
}

std::optional<TensorView> match(Translator& t, std::size_t at, std::int64_t part) {
  if (part != 0) return std::nullopt;
  const auto found = t.is_call(at, "aten.matmul") ? written_out(t, at) : one_call(t, at);
  if (!found) return std::nullopt;
  const auto q = heads_of(t, found->q);
  const auto k = heads_of(t, found->k);
  const auto v = heads_of(t, found->v);
  if (!q || !k || !v || q->own != q->all || k->own != v->own || q->all % k->own != 0 ||
      k->width != q->width || k->tokens != v->tokens)
    return std::nullopt;
  if (k->all != q->all && !(k->all == k->own && t.flag_or(at, 7, "enable_gqa", false)))
    return std::nullopt;
  if (found->mask && !is_for_all_heads(t, *found->mask)) return std::nullopt;

  Draft& draft = t.draft();
  std::vector<std::string> remarks;
  const bool same_tokens = q->tokens == k->tokens;
  bool causal = found->causal && same_tokens;
  if (found->mask) {
    const bool taken = t.options().mask == ImportedMask::causal && same_tokens;
    causal = taken;
    remarks.push_back(
        fmt::format("The numbers of the mask {} are not saved with the graph: {} (--mask)",
                    input_behind(t, *found->mask),
                    taken ? "it is taken as causal" : "every token is taken to see every token"));
  }
  const Letter heads{"H", q->all};
  const Letter kv_heads{"Hkv", k->own};
  const Letter d{"d", q->width};
  const Letter value_width{q->width == v->width ? "d" : "dv", v->width};
  DraftStep attention{.call = "attention", .reads = {q->range, k->range, v->range}};
  attention.widths = {
      {q->range, {heads, d}}, {k->range, {kv_heads, d}}, {v->range, {kv_heads, value_width}}};
  if (causal) {
    DraftStep cache{.call = "cache", .reads = {k->range, v->range}, .read_names = {"k", "v"}};
    for (const Heads* read : {&*k, &*v})
      cache.writes.push_back(
          draft.add(DraftMatrix{.rows = t.rows_of(read->view), .columns = read->range.count}));
    cache.name = {.site = "kvcache", .result = "keys", .second = "values"};
    cache.values = {{"heads", kv_heads}, {"window", Setting{"sliding_window", 0}}};
    cache.widths = {{draft.all_of(cache.writes[0]), {kv_heads, d}},
                    {draft.all_of(cache.writes[1]), {kv_heads, value_width}}};
    cache.hands_on = true;
    cache.behind = {{.site = "qkv", .op = "k", .result = "k"},
                    {.site = "qkv", .op = "v", .result = "v"}};
    attention.reads[1] = draft.all_of(cache.writes[0]);
    attention.reads[2] = draft.all_of(cache.writes[1]);
    attention.name = {};
    draft.add(std::move(cache));
  }
  const std::size_t result =
      draft.add(DraftMatrix{.rows = t.rows_of(q->view), .columns = q->all * v->width});
  attention.writes = {result};
  attention.widths.push_back({draft.all_of(result), {heads, value_width}});
  attention.name = {.site = "attention", .result = "attn"};
  attention.behind = {{.site = "qkv", .op = "q", .result = "q"},
                      {.site = "qkv", .op = "k", .result = "k"},
                      {.site = "qkv", .op = "v", .result = "v"}};
  attention.ahead = {{.site = "oproj", .result = "o", .weight = "o"}};
  attention.joint = {{.site = "qkv", .result = "qkv", .weight = "qkv"}};
  attention.values = {{"heads", heads}, {"kv_heads", kv_heads}};
  if (causal) {
    attention.values.push_back({"mask", std::string("causal")});
    attention.values.push_back({"window", Setting{"sliding_window", 0}});
  }
  const double usual = 1 / std::sqrt(static_cast<double>(q->width));
  if (found->scale && std::abs(*found->scale - usual) > 1e-6 * usual)
    attention.values.push_back({"scale", *found->scale});
  if (found->softcap > 0) attention.values.push_back({"softcap", found->softcap});
  attention.remarks = std::move(remarks);
  draft.add(std::move(attention));
  TensorView y = same_dimensions(q->view, result);
  y.dims[1] = q->all > 1 ? Dimension{{MatrixAxis::column, q->all, v->width}} : Dimension{};
  y.dims[3] = {{MatrixAxis::column, v->width, 1}};
  return y;
}

constexpr const char* kCalls[] = {
    "aten.scaled_dot_product_attention", "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu", "aten.matmul"};
constexpr const char* kWithin[] = {"aten.softmax", "aten._softmax", "aten.tanh", "aten.where",
                                   "aten.masked_fill"};

}  // namespace
}  // namespace in_attention

constinit const ImportPattern patterns::attention{.calls = in_attention::kCalls,
                                                  .within = in_attention::kWithin,
                                                  .size = 4,
                                                  .match = in_attention::match};

}  // namespace fuseline
