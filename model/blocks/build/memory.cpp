// What a block keeps between tokens besides keys and values: the functions kept and recent; and
// exact, which says what is kept in fp32.
#include <fmt/format.h>

#include "model/blocks/build/call.h"
#include "model/operators/all_operators.h"

namespace fuseline {

// kept(B H P, N): in decode a tensor that was there before, such as a state that an operator
// overwrites or keys of an encoder's tokens; nothing elsewhere. fp32 with exact = yes.
TextValue BlockBuilder::kept(Call& call, const Naming& naming) {
  const ShapeSize rows = call.whole(0, "a number of rows");
  const ShapeSize cols = call.whole(1, "a number of columns");
  const bool fp32 = call.flag_named("exact").value_or(false);
  if (workload_.phase != Phase::decode) return {Nothing{}};
  const std::string what = naming.targets.empty() ? "state" : naming.targets.front();
  const std::string name = tensor_names_.unused(scope().prefix + "cache_" + what);
  TensorValue made = new_tensor(name, Role::cache, rows, cols, call.at());
  if (fp32) graph_.tensor(made.operand.tensor).dtype = Dtype::fp32;
  if (rows.value() % workload_.batch == 0) made.cached_tokens = rows.value() / workload_.batch;
  return {made};
}

// recent(x, n): in decode the n tokens of each sequence before the new ones, which are stored
// behind them; nothing elsewhere, where a sequence begins.
TextValue BlockBuilder::recent(Call& call, const Naming& naming) {
  const TensorValue x = call.tensor(0, "x");
  const ShapeSize count = call.whole(1, "a number of tokens");
  if (count.value() < 0 || count.value() > kLargestDimension)
    fail(call.place(1), {.field = "recent",
                         .value = std::to_string(count.value()),
                         .message = "is no number of tokens",
                         .allowed = fmt::format("0 to {}", kLargestDimension)});
  if (workload_.phase != Phase::decode || count.value() == 0) return {Nothing{}};
  if (x.operand.rows != workload_.rows())
    fail(call.place(0),
         {.field = "recent",
          .message = fmt::format("is {}", shape_in_words(x)),
          .allowed = fmt::format("M = {} rows, those of the new tokens", workload_.rows())});
  const std::int64_t B = workload_.batch;
  const std::int64_t T = workload_.seq;
  const std::int64_t all = count.value() + T;
  const std::string base = graph_.tensor(x.operand.tensor).name;
  const std::string name = tensor_names_.unused(scope().prefix + "cache_" + base);
  TensorValue kept = new_tensor(name, Role::cache, ShapeSize(B * all), x.cols, call.at());
  const TensorId id = kept.operand.tensor;
  TensorValue appended = kept;
  appended.operand = graph_.rows_of_parts(id, B, count.value(), T);
  add_op(op_names_.unused(scope().prefix + "append_" + base), operators::cache_append,
         site_name(naming, "append"), {x}, {appended}, Sequences{B, T}, call.at());
  kept.operand = graph_.rows_of_parts(id, B, 0, count.value());
  kept.rows = ShapeSize(B * count.value());
  return {kept};
}

// exact(y): the result is kept in fp32.
TextValue BlockBuilder::exact(Call& call, const Naming&) {
  const TensorValue y = call.tensor(0, "y");
  Tensor& tensor = graph_.tensor(y.operand.tensor);
  if (tensor.role == Role::input || tensor.role == Role::cache)
    fail(call.place(0), {.field = "exact",
                         .value = tensor.name,
                         .message = "comes from outside the block",
                         .allowed = "what the block computes, or a weight"});
  if (y.operand != graph_.whole(y.operand.tensor) || beside_.contains(y.operand.tensor))
    fail(call.place(0),
         {.field = "exact",
          .value = tensor.name,
          .message = beside_.contains(y.operand.tensor) ? "is a weight in few bits"
                                                        : "is part of a tensor, which has one type",
          .allowed = "a whole tensor of its own"});
  tensor.dtype = Dtype::fp32;
  return {y};
}

}  // namespace fuseline
