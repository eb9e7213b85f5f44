// Functions of the language: those that make several operators, and those that make none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/blocks/build/call.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/ragged_rows.h"

namespace fuseline {

namespace {

// "w_qkv" is the weight of "qkv".
std::string after_weight(const std::string& weight) {
  return weight.starts_with("w_") && weight.size() > 2 ? weight.substr(2) : weight;
}

}  // namespace

const std::map<std::string, BlockBuilder::Function>& BlockBuilder::functions() {
  static const std::map<std::string, Function> all = {
      {"linear", &BlockBuilder::linear},
      {"expert_linear", &BlockBuilder::expert_linear},
      {"rows", &BlockBuilder::rows},
      {"split", &BlockBuilder::split},
      {"split_tokens", &BlockBuilder::split_tokens},
      {"join_tokens", &BlockBuilder::join_tokens},
      {"cache", &BlockBuilder::cache},
      {"attention", &BlockBuilder::attention},
      {"kept", &BlockBuilder::kept},
      {"recent", &BlockBuilder::recent},
      {"exact", &BlockBuilder::exact},
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
  const std::vector<TensorValue> beside = stored_weight(w, call.place(1));
  std::optional<CodedRows> coded;
  if (!beside.empty()) coded = coded_rows(x, site, call.place(0));
  const TensorValue y =
      new_tensor(biased ? result + "_mm" : result, Role::activation, x.rows, w.rows, call.at());
  std::vector<TensorValue> reads = {coded ? coded->codes : x, w};
  reads.insert(reads.end(), beside.begin(), beside.end());
  if (coded) reads.push_back(coded->scale);
  GemmLayout layout;
  if (!beside.empty()) layout.weight = workload_.formats.weights;
  if (coded) layout.activation = workload_.formats.activations;
  add_op(op, operators::gemm, site, reads, {y}, beside.empty() ? Attributes() : Attributes(layout),
         call.at());
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

// y = x w_g^T for the rows of each expert g, which lie behind each other: expert_linear(x, w_up[E,
// F, D], each = k). How many rows an expert has is what even routing of M tokens to k of E experts
// each gives.
TextValue BlockBuilder::expert_linear(Call& call, const Naming& naming) {
  const TensorValue x = call.tensor(0, "x");
  const TensorValue w = call.tensor(1, "w");
  const auto each = call.whole_named("each", 1, kLargestDimension);
  const Tensor& weight = graph_.tensor(w.operand.tensor);
  const auto needs = [&](bool holds, Position at, const std::string& message,
                         const std::string& allowed) {
    if (!holds) fail(at, {.field = "expert_linear", .message = message, .allowed = allowed});
  };
  needs(each.has_value(), call.at(), "'each' is missing", "each = the experts of a token");
  needs(weight.outer.size() == 2 && w.operand == graph_.whole(w.operand.tensor), call.place(1),
        "the weight has no matrix for each expert", "a weight of three sizes, [E, N, K]");
  const std::int64_t experts = weight.outer[0];
  const std::int64_t N = weight.outer[1];
  const std::int64_t k = each->value();
  needs(x.cols.value() == w.cols.value(), call.place(1),
        fmt::format("the weight is {}", shape_in_words(w)),
        fmt::format("[E, N, K] with K = {} ({}), the columns of x", x.cols.value(),
                    words_.text(x.cols)));
  needs(k <= experts, call.at(), fmt::format("{} of {} experts", k, experts),
        fmt::format("at most {}", experts));
  needs(x.operand.rows % k == 0, call.place(0),
        fmt::format("{} rows are not {} for each token", x.operand.rows, k), "a multiple");
  RaggedRows rows = routed_rows(workload_.routing, x.operand.rows / k, experts, k);
  std::string base = after_weight(weight.name);
  if (base.starts_with(scope().prefix)) base = base.substr(scope().prefix.size());
  TensorValue used = w;
  used.operand = graph_.rows(w.operand.tensor, 0, std::ssize(rows.groups) * N);
  const auto cols = ShapeSize::divide(w.rows, ShapeSize(experts));
  const StoredWeight& stored = workload_.formats.weights;
  const std::vector<TensorValue> beside = stored_weight(w, call.place(1));
  std::optional<CodedRows> coded;
  if (!beside.empty()) coded = coded_rows(x, site_name(naming, base), call.place(0));
  const TensorValue y = new_tensor(result_name(naming, base), Role::activation, x.rows,
                                   cols.value_or(ShapeSize(N)), call.at());
  std::vector<TensorValue> reads = {coded ? coded->codes : x, used};
  for (std::size_t i = 0; i < beside.size(); ++i) {
    const ScaleTensor of_one = stored.beside(N, w.cols.value())[i];
    TensorValue scales = beside[i];
    if (of_one.kind != ScaleKind::tensor_scale)
      scales.operand =
          graph_.rows(beside[i].operand.tensor, 0, std::ssize(rows.groups) * of_one.rows);
    reads.push_back(scales);
  }
  if (!beside.empty()) rows.weight = stored;
  if (coded) {
    reads.push_back(coded->scale);
    rows.activation = workload_.formats.activations;
  }
  add_op(op_name(naming, base), operators::grouped_gemm, site_name(naming, base), reads, {y}, rows,
         call.at());
  return {y};
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
