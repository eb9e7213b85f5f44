// Calls of operators: shapes are checked and inferred with the letters of the operator's own
// description, so that an operator from anywhere is called without a line here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "model/blocks/build/call.h"
#include "model/operators/operator_call.h"
#include "model/operators/operator_table.h"
#include "model/operators/shape_letters.h"

namespace fuseline {

namespace {

// Letters of a description and what they stand for in a call.
class CalledSizes {
 public:
  // Whether the size agrees with the letter, which may carry a factor: "N", "2N", "1".
  bool agrees(const std::string& letter, const ShapeSize& size) {
    const auto [factor, name] = shape_letter(letter);
    if (name.empty()) return size.value() == factor;
    const auto known = bound_.find(name);
    if (known != bound_.end()) return known->second.value() * factor == size.value();
    const auto one = ShapeSize::divide(size, ShapeSize(factor));
    if (!one) return false;
    bound_[name] = factor == 1 ? size : *one;
    return true;
  }

  [[nodiscard]] std::optional<ShapeSize> size(const std::string& letter) const {
    const auto [factor, name] = shape_letter(letter);
    if (name.empty()) return ShapeSize(factor);
    const auto known = bound_.find(name);
    if (known == bound_.end()) return std::nullopt;
    if (factor == 1) return known->second;
    return ShapeSize::multiply(ShapeSize(factor), known->second);
  }

  // "M = 4096, N = 11008", of the letters in `of`.
  [[nodiscard]] std::string bindings(const std::string& rows, const std::string& cols) const {
    std::vector<std::string> words;
    for (const std::string& letter : {rows, cols}) {
      const auto known = bound_.find(shape_letter(letter).name);
      if (known != bound_.end())
        words.push_back(fmt::format("{} = {}", known->first, known->second.value()));
    }
    return fmt::format("{}", fmt::join(words, ", "));
  }

 private:
  std::map<std::string, ShapeSize> bound_;
};

}  // namespace

// What an operator's own function asks of the call.
class TextCall final : public OperatorCall {
 public:
  using Second = BlockBuilder::SecondResult;

  TextCall(BlockBuilder& builder, Call& call, const std::vector<TensorValue>& reads)
      : builder_(builder), call_(call), reads_(reads) {}

  [[nodiscard]] const Workload& workload() const override { return builder_.workload_; }
  [[nodiscard]] std::size_t reads() const override { return reads_.size(); }
  [[nodiscard]] const Operand& read(std::size_t i) const override { return reads_.at(i).operand; }

  std::int64_t whole(const char* name, std::int64_t least, std::int64_t most) override {
    if (const auto size = call_.whole_named(name, least, most)) return size->value();
    builder_.fail(call_.at(),
                  {.value = call_.expression().text,
                   .message = fmt::format("needs '{}'", name),
                   .allowed = fmt::format("{} = a whole number from {} to {}", name, least, most)});
  }
  std::int64_t whole_or(const char* name, std::int64_t absent, std::int64_t least,
                        std::int64_t most) override {
    const auto size = call_.whole_named(name, least, most);
    return size ? size->value() : absent;
  }
  double number_or(const char* name, double absent, double least, double most) override {
    const auto number = call_.number_named(name);
    if (!number) return absent;
    if (!std::isfinite(*number) || *number < least || *number > most)
      builder_.fail(call_.named(name)->value->at,
                    {.field = name,
                     .value = fmt::format("{}", *number),
                     .message = "is out of range",
                     .allowed = fmt::format("a number from {} to {}", least, most)});
    return *number;
  }
  bool flag_or(const char* name, bool absent) override {
    return call_.flag_named(name).value_or(absent);
  }
  std::string word_or(const char* name, const std::vector<std::string>& words) override {
    return call_.word_named(name, words, words.front().c_str());
  }
  void also_result(std::int64_t rows, std::int64_t cols, Dtype type) override {
    second_ = Second{ShapeSize(rows), ShapeSize(cols), type, {}};
  }
  void overwrites(std::size_t read) override { second_ = Second{.place = reads_.at(read)}; }
  void result(std::int64_t rows, std::int64_t cols) override {
    shape_ = {ShapeSize(rows), ShapeSize(cols)};
  }
  void result_in(Dtype type) override { type_ = type; }
  [[noreturn]] void refuse(const std::string& message, const std::string& allowed) const override {
    builder_.fail(call_.at(),
                  {.value = call_.expression().text, .message = message, .allowed = allowed});
  }
  [[nodiscard]] std::optional<Dtype> type() const { return type_; }
  [[nodiscard]] const std::optional<Second>& second() const { return second_; }
  [[nodiscard]] const std::optional<std::pair<ShapeSize, ShapeSize>>& shape() const {
    return shape_;
  }

 private:
  BlockBuilder& builder_;
  Call& call_;
  const std::vector<TensorValue>& reads_;
  std::optional<std::pair<ShapeSize, ShapeSize>> shape_;
  std::optional<Dtype> type_;
  std::optional<Second> second_;
};

TextValue BlockBuilder::operator_call(const Operator& kind, const Expression& e,
                                      const Naming& naming) {
  Call call(*this, e);
  std::vector<TensorValue> reads;
  std::vector<Position> places;
  for (std::size_t i = 0; i < kind.reads.size(); ++i) {
    const OperandSpec& spec = kind.reads[i];
    if (spec.optional) {
      const auto tensor = call.tensor_or_nothing(i, spec.name);
      if (!tensor) continue;
      if (reads.size() != i)
        fail(call.at(),
             {.value = e.text,
              .message = fmt::format("'{}' is given without the operand before it", spec.name)});
      reads.push_back(*tensor);
    } else {
      reads.push_back(call.tensor(i, spec.name));
    }
    places.push_back(call.place(i));
  }
  TextCall text(*this, call, reads);
  const Attributes attributes = kind.called(text);
  call.finish();
  TextValue result =
      apply(kind, reads, places, attributes, naming, e.at, text.shape(), text.second());
  const auto* several = result.get<TextValues>();
  const TextValue& first = several == nullptr ? result : several->front();
  if (text.type()) graph_.tensor(first.get<TensorValue>()->operand.tensor).dtype = *text.type();
  return result;
}

TextValue BlockBuilder::apply(const Operator& kind, const std::vector<TensorValue>& reads,
                              const std::vector<Position>& places, const Attributes& attributes,
                              const Naming& naming, Position at,
                              std::optional<std::pair<ShapeSize, ShapeSize>> shape,
                              const std::optional<SecondResult>& second) {
  CalledSizes letters;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const OperandSpec& spec = kind.reads[i];
    if (letters.agrees(spec.rows, reads[i].rows) && letters.agrees(spec.cols, reads[i].cols))
      continue;
    const std::string bound = letters.bindings(spec.rows, spec.cols);
    fail(places[i], {.field = kind.name.value,
                     .message = fmt::format("'{}' is {}", spec.name, shape_in_words(reads[i])),
                     .allowed = fmt::format("[{}, {}]{}", spec.rows, spec.cols,
                                            bound.empty() ? "" : " with " + bound)});
  }
  if (!shape) {
    const OperandSpec& spec = kind.write.value;
    const auto rows = letters.size(spec.rows);
    const auto cols = letters.size(spec.cols);
    FUSELINE_ASSERT(rows && cols, std::string("the shape of the result of ") + kind.name.value);
    shape = {*rows, *cols};
  }
  const bool names_each = second && naming.outermost && naming.targets.size() == 2;
  const std::string name =
      names_each ? scope().prefix + naming.targets[0] : result_name(naming, kind.name.value);
  const TensorValue result = new_tensor(name, Role::activation, shape->first, shape->second, at);
  const std::string otherwise =
      naming.outermost && !naming.targets.empty() ? naming.targets.front() : kind.name.value;
  std::vector<TensorValue> writes{result};
  const bool gives_two = second && !second->place;
  if (second)
    writes.push_back(second->place ? *second->place : second_tensor(kind, *second, naming, at));
  add_op(op_name(naming, otherwise), kind, site_name(naming, otherwise), reads, writes, attributes,
         at);
  if (gives_two) return {TextValues{{result}, {writes.back()}}};
  return {result};
}

// What the second name before '=' calls, or the operand's name in the operator's description.
TensorValue BlockBuilder::second_tensor(const Operator& kind, const SecondResult& second,
                                        const Naming& naming, Position at) {
  const bool named = naming.outermost && naming.targets.size() == 2;
  const std::string name = named ? scope().prefix + naming.targets[1]
                                 : tensor_names_.unused(result_name(naming, kind.also_writes.name));
  const TensorValue made = new_tensor(name, Role::activation, second.rows, second.cols, at);
  graph_.tensor(made.operand.tensor).dtype = second.type;
  return made;
}

}  // namespace fuseline
