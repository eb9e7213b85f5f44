#include "cuda/emit/stream_parameters.h"

#include "cuda/emit/widths.h"

#include <fmt/format.h>

namespace fuseline::cuda {

namespace {}  // namespace

std::string StreamParameters::add(StreamField field) {
  field.name = fmt::format("{}{}", field.name, numbers_[field.name]++);
  fields_.push_back(std::move(field));
  return fields_.back().name;
}

std::string StreamParameters::operand(StreamFieldKind kind, const char* name,
                                      const Operand& operand) {
  StreamField field{kind, name, operand};
  // Numbers per row move one by one anyway, and a table's columns repeat.
  const bool repeats = kind == StreamFieldKind::table && operand.cols % kVectorCols != 0;
  if (kind != StreamFieldKind::rows && kind != StreamFieldKind::partials)
    field.aligned = !odd_ && !repeats && moves_vectors(graph_, operand);
  return add(std::move(field));
}

std::string StreamParameters::of(Value v, StreamFieldKind kind, const char* name,
                                 const Operand& from) {
  std::string& known = of_[{v, kind}];
  if (known.empty()) known = operand(kind, name, from);
  return known;
}

std::string StreamParameters::constant(Value v, double number) {
  std::string& known = of_[{v, StreamFieldKind::constant}];
  if (!known.empty()) return known;
  StreamField field{StreamFieldKind::constant, "c"};
  field.constant = number;
  return known = add(std::move(field));
}

std::string StreamParameters::visible(Value v, const AttentionShape& attention, std::int64_t keys) {
  std::string& known = of_[{v, StreamFieldKind::visible}];
  if (!known.empty()) return known;
  StreamField field{StreamFieldKind::visible, "visible"};
  field.attention = attention;
  field.count = keys;
  return known = add(std::move(field));
}

std::string StreamParameters::row_groups(Value v, const std::vector<std::int64_t>& lengths) {
  std::string& known = of_[{v, StreamFieldKind::row_groups}];
  if (!known.empty()) return known;
  StreamField field{StreamFieldKind::row_groups, "groups"};
  field.lengths = lengths;
  return known = add(std::move(field));
}

std::string StreamParameters::count(const char* name, std::int64_t number) {
  std::string& known = counts_[number];
  if (!known.empty()) return known;
  StreamField field{StreamFieldKind::count, name};
  field.count = number;
  return known = add(std::move(field));
}

}  // namespace fuseline::cuda
