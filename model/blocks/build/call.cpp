#include "model/blocks/build/call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace fuseline {

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

}  // namespace fuseline
