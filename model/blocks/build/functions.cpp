// Functions of the language: those that make several operators, and those that make none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/blocks/build/builder.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

constexpr int kDeepestParts = 16;

// "w_qkv" is the weight of "qkv".
std::string after_weight(const std::string& weight) {
  return weight.starts_with("w_") && weight.size() > 2 ? weight.substr(2) : weight;
}

}  // namespace

// Arguments
// --------------------------------------------------------------------------------------------

std::size_t Call::in_order() const {
  return static_cast<std::size_t>(std::count_if(e_.arguments.begin(), e_.arguments.end(),
                                                [](const Argument& a) { return a.name.empty(); }));
}

Position Call::place(std::size_t i) const {
  return i < e_.arguments.size() ? e_.arguments[i].value->at : e_.at;
}

const Argument* Call::named(const char* name) {
  asked_.insert(name);
  for (const Argument& a : e_.arguments)
    if (a.name == name) return &a;
  return nullptr;
}

TensorValue Call::tensor(std::size_t i, const char* what) {
  most_in_order_ = std::max(most_in_order_, i + 1);
  if (i >= in_order())
    builder_.fail(
        e_.at,
        {.value = e_.text, .message = fmt::format("'{}' is missing", what), .allowed = "a tensor"});
  const Argument& a = e_.arguments[i];
  const TextValue v = builder_.evaluate(*a.value, {.outermost = false});
  if (const auto* tensor = v.get<TensorValue>()) return *tensor;
  builder_.fail(a.value->at, {.field = e_.text,
                              .message = fmt::format("'{}' is {}", what, kind_of(v)),
                              .allowed = "a tensor"});
}

std::optional<TensorValue> Call::tensor_or_nothing(std::size_t i, const char* name) {
  most_in_order_ = std::max(most_in_order_, i + 1);
  const Argument* a = named(name);
  if (i < in_order()) {
    if (a != nullptr) builder_.fail(a->at, {.value = name, .message = "is given twice"});
    a = &e_.arguments[i];
  }
  if (a == nullptr) return std::nullopt;
  const TextValue v = builder_.evaluate(*a->value, {.outermost = false});
  if (v.get<Nothing>() != nullptr) return std::nullopt;
  if (const auto* tensor = v.get<TensorValue>()) return *tensor;
  builder_.fail(a->value->at, {.field = e_.text,
                               .message = fmt::format("'{}' is {}", name, kind_of(v)),
                               .allowed = "a tensor"});
}

ShapeSize Call::whole(std::size_t i, const char* what) {
  most_in_order_ = std::max(most_in_order_, i + 1);
  if (i >= in_order())
    builder_.fail(e_.at, {.value = e_.text,
                          .message = fmt::format("'{}' is missing", what),
                          .allowed = "a whole number"});
  return builder_.size_of_shape(*e_.arguments[i].value);
}

std::optional<ShapeSize> Call::whole_named(const char* name, std::int64_t least,
                                           std::int64_t most) {
  const Argument* a = named(name);
  if (a == nullptr) return std::nullopt;
  const ShapeSize size = builder_.size_of_shape(*a->value);
  if (size.value() < least || size.value() > most)
    builder_.fail(a->value->at,
                  {.field = name,
                   .value = std::to_string(size.value()),
                   .message = "is out of range",
                   .allowed = fmt::format("a whole number from {} to {}", least, most)});
  return size;
}

std::optional<double> Call::number_named(const char* name) {
  const Argument* a = named(name);
  if (a == nullptr) return std::nullopt;
  const TextValue v = builder_.evaluate(*a->value, {.outermost = false});
  if (const auto* size = v.get<ShapeSize>()) return static_cast<double>(size->value());
  if (const auto* number = v.get<double>()) return *number;
  builder_.fail(
      a->value->at,
      {.field = name, .message = fmt::format("is {}", kind_of(v)), .allowed = "a number"});
}

std::optional<bool> Call::flag_named(const char* name) {
  const Argument* a = named(name);
  if (a == nullptr) return std::nullopt;
  return builder_.truth(*a->value);
}

std::string Call::word_named(const char* name, const std::vector<std::string>& words,
                             const char* absent) {
  const Argument* a = named(name);
  if (a == nullptr) return absent;
  const Expression* e = a->value.get();
  while (e->kind == ExpressionKind::choice)
    e = builder_.truth(*e->parts[1]) ? e->parts[0].get()
        : e->parts.size() > 2        ? e->parts[2].get()
                                     : e->parts[0].get();
  if (e->kind == ExpressionKind::name &&
      std::find(words.begin(), words.end(), e->text) != words.end())
    return e->text;
  builder_.fail(e->at, {.field = name,
                        .value = expression_text(*e),
                        .message = "is not one of its words",
                        .allowed = fmt::format("{}", fmt::join(words, ", ")),
                        .nearest = nearest_name(e->text, words)});
}

std::vector<std::pair<std::string, TensorValue>> Call::other_tensors() {
  std::vector<std::pair<std::string, TensorValue>> out;
  for (const Argument& a : e_.arguments) {
    if (a.name.empty() || !asked_.insert(a.name).second) continue;
    const TextValue v = builder_.evaluate(*a.value, {.outermost = false});
    const auto* tensor = v.get<TensorValue>();
    if (tensor == nullptr)
      builder_.fail(
          a.value->at,
          {.field = a.name, .message = fmt::format("is {}", kind_of(v)), .allowed = "a tensor"});
    out.emplace_back(a.name, *tensor);
  }
  return out;
}

void Call::finish() const {
  if (in_order() > most_in_order_)
    builder_.fail(place(most_in_order_),
                  {.value = e_.text,
                   .message = fmt::format("takes {} argument{} without a name", most_in_order_,
                                          most_in_order_ == 1 ? "" : "s"),
                   .allowed = "no more"});
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const Argument& a : e_.arguments)
    if (!a.name.empty() && !asked_.contains(a.name))
      builder_.fail(a.at, {.field = e_.text,
                           .value = a.name,
                           .message = "is no argument of it",
                           .allowed = known.empty() ? std::string("none by name")
                                                    : fmt::format("{}", fmt::join(known, ", ")),
                           .nearest = nearest_name(a.name, known)});
}

// Calls
// ------------------------------------------------------------------------------------------------

const std::map<std::string, BlockBuilder::Function>& BlockBuilder::functions() {
  static const std::map<std::string, Function> all = {{"linear", &BlockBuilder::linear},
                                                      {"rows", &BlockBuilder::rows},
                                                      {"split", &BlockBuilder::split},
                                                      {"split_tokens", &BlockBuilder::split_tokens},
                                                      {"join_tokens", &BlockBuilder::join_tokens},
                                                      {"cache", &BlockBuilder::cache},
                                                      {"attention", &BlockBuilder::attention},
                                                      {"sqrt", &BlockBuilder::square_root},
                                                      {"min", &BlockBuilder::smaller},
                                                      {"max", &BlockBuilder::larger}};
  return all;
}

TextValue BlockBuilder::call(const Expression& e, const Naming& naming) {
  if (const BlockText::Found part = text_.part(e.text); part.definition != nullptr)
    return part_call(part, e, naming);
  if (const auto found = functions().find(e.text); found != functions().end()) {
    Call arguments(*this, e);
    TextValue value = (this->*found->second)(arguments, naming);
    arguments.finish();
    return value;
  }
  const Operator* kind = find_operator(e.text);
  if (kind != nullptr && kind->called != nullptr) return operator_call(*kind, e, naming);
  std::vector<std::string> names = text_.part_names();
  for (const auto& [name, function] : functions()) names.push_back(name);
  for (const Operator* known : all_operators())
    if (known->called != nullptr) names.emplace_back(known->name.value);
  fail(e.at, {.value = e.text,
              .message = kind != nullptr ? "is an operator that only rewrites and gradients make"
                                         : "is no part of this block, no function and no operator",
              .allowed = "fuseline list operators names them",
              .nearest = nearest_name(e.text, names)});
}

// The names of a part are its own. What it makes is called as its text says, with the label of the
// call before it.
TextValue BlockBuilder::part_call(const BlockText::Found& part, const Expression& e,
                                  const Naming& naming) {
  const Definition& d = *part.definition;
  Scope inner;
  inner.source = part.source;
  inner.depth = scope().depth + 1;
  inner.prefix = scope().prefix;
  const std::string& label = naming.op.empty() ? naming.site : naming.op;
  if (naming.outermost && !label.empty()) inner.prefix += label + "_";
  if (inner.depth > kDeepestParts)
    fail(e.at, {.value = e.text,
                .message = "parts within parts go too deep",
                .allowed = fmt::format("at most {}", kDeepestParts)});
  std::vector<std::string> names;
  for (const Parameter& p : d.parameters) names.push_back(p.name);
  std::size_t at = 0;
  for (const Argument& a : e.arguments) {
    if (a.name.empty() && at >= names.size())
      fail(a.at, {.value = e.text,
                  .message = fmt::format("takes {} arguments", names.size()),
                  .allowed = fmt::format("{}", fmt::join(names, ", "))});
    const std::string name = a.name.empty() ? names[at++] : a.name;
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail(a.at, {.field = e.text,
                  .value = name,
                  .message = "is no parameter of the part",
                  .allowed = fmt::format("{}", fmt::join(names, ", ")),
                  .nearest = nearest_name(name, names)});
    if (inner.names.contains(name)) fail(a.at, {.value = name, .message = "is given twice"});
    inner.names[name] = evaluate(*a.value, {.targets = naming.targets, .outermost = false});
    inner.places[name] = a.at;
  }
  for (const Parameter& p : d.parameters) {
    if (inner.names.contains(p.name)) continue;
    if (!p.absent) fail(e.at, {.value = e.text, .message = fmt::format("'{}' is missing", p.name)});
    Scope* const outer = std::exchange(scope_, &inner);
    inner.names[p.name] = evaluate(*p.absent, {.outermost = false});
    inner.places[p.name] = p.at;
    scope_ = outer;
  }
  Scope* const outer = std::exchange(scope_, &inner);
  statements(d.body);
  if (!inner.given)
    fail(d.at, {.value = d.name, .message = "the part gives nothing", .allowed = "give VALUE"});
  scope_ = outer;
  if (inner.given->size() == 1) return inner.given->front();
  return {*inner.given};
}

// y = x w^T, and a bias behind it. Its operator is called after its weight, unless a label says
// otherwise.
TextValue BlockBuilder::linear(Call& call, const Naming& naming) {
  const TensorValue x = call.tensor(0, "x");
  const TensorValue w = call.tensor(1, "w");
  const std::string weight = graph_.tensor(w.operand.tensor).name;
  std::string base = after_weight(weight);
  if (base.starts_with(scope().prefix)) base = base.substr(scope().prefix.size());
  if (x.cols.value() != w.cols.value())
    fail(call.place(1), {.field = "linear",
                         .message = fmt::format("the weight is {}", shape_in_words(w)),
                         .allowed = fmt::format("[N, K] with K = {} ({}), the columns of x",
                                                x.cols.value(), words_.text(x.cols))});
  // The bias comes behind the product, and so does its tensor.
  const Expression& e = call.expression();
  const Argument* bias = call.named("b");
  const bool biased_in_order = call.in_order() > 2;
  if (biased_in_order) bias = &e.arguments[2];
  const auto is_given = [&] {
    if (bias == nullptr) return false;
    const Expression& b = *bias->value;
    return b.kind != ExpressionKind::choice || b.parts.size() > 2 || truth(*b.parts[1]);
  };
  const bool biased = is_given();
  const std::string result = result_name(naming, base);
  const std::string op = op_name(naming, base);
  const std::string site = site_name(naming, base);
  const TensorValue y =
      new_tensor(biased ? result + "_mm" : result, Role::activation, x.rows, w.rows, call.at());
  add_op(op, operators::gemm, site, {x, w}, {y}, {}, call.at());
  const auto b = call.tensor_or_nothing(2, "b");
  if (!b) return {y};
  const TensorValue sum = new_tensor(result, Role::activation, x.rows, w.rows, call.at());
  if (b->operand.rows != 1 || b->operand.cols != w.rows.value())
    fail(call.place(2),
         {.field = "linear",
          .message = fmt::format("the bias is {}", shape_in_words(*b)),
          .allowed = fmt::format("[{}], as many as the weight has rows", w.rows.value())});
  add_op(op + "_bias", operators::bias_add, site, {y, *b}, {sum}, {}, call.at());
  return {sum};
}

// Rows behind each other: rows(w_position[P, D], S - T, T).
TextValue BlockBuilder::rows(Call& call, const Naming&) {
  TensorValue x = call.tensor(0, "x");
  const ShapeSize begin = call.whole(1, "the first row");
  const ShapeSize count = call.whole(2, "the number of rows");
  const std::int64_t all = x.operand.rows;
  if (x.operand.at != RowRuns{} || begin.value() < 0 || count.value() < 1 ||
      begin.value() > all - count.value())
    fail(call.at(), {.field = "rows",
                     .message = fmt::format("{} rows from row {} on are not in {}", count.value(),
                                            begin.value(), shape_in_words(x)),
                     .allowed = "rows of the tensor"});
  x.operand.rows = count.value();
  x.operand.at.begin = begin.value();
  x.rows = count;
  return {x};
}

// Columns behind each other: split(qkv, H d, Hkv d, Hkv d).
TextValue BlockBuilder::split(Call& call, const Naming&) {
  const TensorValue x = call.tensor(0, "x");
  TextValues parts;
  std::int64_t begin = 0;
  for (std::size_t i = 1; i < call.in_order(); ++i) {
    const ShapeSize width = call.whole(i, "a number of columns");
    if (width.value() < 1 || width.value() > x.cols.value() - begin)
      fail(call.place(i), {.field = "split",
                           .value = std::to_string(width.value()),
                           .message = fmt::format("does not fit: {} of {} columns are left",
                                                  x.cols.value() - begin, x.cols.value())});
    TensorValue part = x;
    part.operand.col_begin += begin;
    part.operand.cols = width.value();
    part.cols = width;
    parts.push_back({part});
    begin += width.value();
  }
  if (begin != x.cols.value())
    fail(call.at(), {.field = "split",
                     .message = fmt::format("the parts have {} of the {} columns ({})", begin,
                                            x.cols.value(), words_.text(x.cols)),
                     .allowed = "parts that are all of it"});
  return {parts};
}

// The same tokens of every sequence: split_tokens(o, T, Tt).
TextValue BlockBuilder::split_tokens(Call& call, const Naming&) {
  const TensorValue x = call.tensor(0, "x");
  const std::int64_t B = workload_.batch;
  if (x.operand.rows % B != 0 || x.operand.at != RowRuns{})
    fail(call.place(0),
         {.field = "split_tokens",
          .message = fmt::format("{} rows are not {} whole sequences", x.operand.rows, B)});
  const std::int64_t tokens = x.operand.rows / B;
  TextValues parts;
  std::int64_t begin = 0;
  for (std::size_t i = 1; i < call.in_order(); ++i) {
    const ShapeSize count = call.whole(i, "a number of tokens");
    if (count.value() < 1 || count.value() > tokens - begin)
      fail(call.place(i), {.field = "split_tokens",
                           .value = std::to_string(count.value()),
                           .message = fmt::format("does not fit: {} of {} tokens are left",
                                                  tokens - begin, tokens)});
    TensorValue part = x;
    part.operand = graph_.rows_of_parts(x.operand.tensor, B, begin, count.value());
    part.operand.col_begin = x.operand.col_begin;
    part.operand.cols = x.operand.cols;
    const auto rows = ShapeSize::multiply(ShapeSize("B", B), count);
    part.rows = rows.value_or(ShapeSize(B * count.value()));
    parts.push_back({part});
    begin += count.value();
  }
  if (begin != tokens)
    fail(call.at(), {.field = "split_tokens",
                     .message = fmt::format("the parts have {} of the {} tokens", begin, tokens)});
  return {parts};
}

// Streams of tokens in one joint sequence: first all tokens of the first, then of the second.
TextValue BlockBuilder::join_tokens(Call& call, const Naming& naming) {
  std::vector<TensorValue> parts;
  std::optional<ShapeSize> rows;
  for (std::size_t i = 0; i < std::max<std::size_t>(call.in_order(), 2); ++i) {
    parts.push_back(call.tensor(i, "a tensor"));
    const TensorValue& part = parts.back();
    if (part.operand.rows % workload_.batch != 0)
      fail(call.place(i), {.field = "join_tokens",
                           .message = fmt::format("{} rows are not {} whole sequences",
                                                  part.operand.rows, workload_.batch)});
    if (part.operand.cols != parts.front().operand.cols)
      fail(call.place(i),
           {.field = "join_tokens",
            .message = fmt::format("is {}", shape_in_words(part)),
            .allowed = fmt::format("{} columns, as the first", parts.front().operand.cols)});
    rows = rows ? ShapeSize::add(*rows, part.rows) : part.rows;
  }
  if (parts.size() > operators::concat_rows.reads.size())
    fail(call.at(),
         {.field = "join_tokens",
          .message = fmt::format("joins at most {} streams", operators::concat_rows.reads.size())});
  const TensorValue y = new_tensor(result_name(naming, "joint"), Role::activation, *rows,
                                   parts.front().cols, call.at());
  add_op(op_name(naming, "join"), operators::concat_rows, site_name(naming, "join"), parts, {y},
         JointSequences{workload_.batch}, call.at());
  return {y};
}

// cache(k = k_rot, v = v): in decode the new rows go behind those of the cache, and what is given
// are the cache's rows, of which a window leaves the last ones. Elsewhere what came in.
TextValue BlockBuilder::cache(Call& call, const Naming& naming) {
  const auto window = call.whole_named("window", 0, kLargestDimension);
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
  for (const auto& [name, x] : parts) {
    if (x.operand.rows != workload_.rows())
      fail(call.at(),
           {.field = name,
            .message = fmt::format("is {}", shape_in_words(x)),
            .allowed = fmt::format("M = {} rows, those of the new tokens", workload_.rows())});
    caches.push_back(new_tensor(scope().prefix + "cache_" + name, Role::cache, *rows, x.cols,
                                call.at(), "[B·S, " + x.cols.written() + "]"));
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
    add_op(scope().prefix + "append_" + parts[i].first, operators::cache_append,
           site_name(naming, "kvcache"), {parts[i].second}, {appended}, Sequences{B, T}, call.at());
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
    return unused(tensor_names_, scope().prefix + own(name));
  };
  const auto operator_name = [&](const std::string& name) {
    return unused(op_names_, scope().prefix + own(name));
  };
  const std::string tokens =
      a.q_tokens == workload_.seq ? std::string("T") : std::to_string(a.q_tokens);
  const std::string keys = !k.tokens_words.empty()         ? k.tokens_words
                           : span == workload_.kv_tokens() ? std::string("S")
                                                           : std::to_string(span);
  const std::string symbol = fmt::format("[B·{}·{}, {}]", heads->written(), tokens, keys);
  const ShapeSize score_rows(checked_product<Flops>(B, H, a.q_tokens).value());
  const std::string site = site_name(naming, "attention");
  const TensorValue scores = new_tensor(tensor_name("scores"), Role::activation, score_rows,
                                        ShapeSize(span), call.at(), symbol);
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
  add_op(operator_name("scores"), operators::attention_scores, site, score_reads, {scores}, a,
         call.at());
  const TensorValue probs = new_tensor(tensor_name("probs"), Role::activation, score_rows,
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
  add_op(operator_name("context"), operators::attention_context, site, {probs, v}, {out}, a,
         call.at());
  return {out};
}

TextValue BlockBuilder::square_root(Call& call, const Naming&) {
  const ShapeSize x = call.whole(0, "a number");
  if (x.value() < 0) fail(call.place(0), {.field = "sqrt", .message = "of a negative number"});
  return {std::sqrt(static_cast<double>(x.value()))};
}

TextValue BlockBuilder::smaller(Call& call, const Naming&) {
  const ShapeSize a = call.whole(0, "a whole number");
  const ShapeSize b = call.whole(1, "a whole number");
  return {b.value() < a.value() ? b : a};
}

TextValue BlockBuilder::larger(Call& call, const Naming&) {
  const ShapeSize a = call.whole(0, "a whole number");
  const ShapeSize b = call.whole(1, "a whole number");
  return {b.value() > a.value() ? b : a};
}

}  // namespace fuseline
