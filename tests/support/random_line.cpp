#include "tests/support/random_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fuseline::test {

void RandomLine::makes(std::span<Value* const> results) {
  for (Value* v : results) *v = next_++;
}
void RandomLine::stores(std::string_view, Operand& to, bool* add) {
  if (add != nullptr) *add = dice_.chance(0.03);
  if (dice_.chance(0.03) && !file_.graph.tensors().empty()) return operand(to);
  const bool twice = dice_.chance(0.03);
  const std::int64_t cols = dice_.chance(0.5) && !program_.shapes.empty()
                                ? std::max<std::int64_t>(1, program_.shapes.rbegin()->second.width)
                                : columns();
  to = file_.graph.whole(add_tensor(dice_.chance(0.85) ? program_.rows : 1, twice ? 2 * cols : cols,
                                    dice_.chance(0.5) ? Role::output : Role::activation));
  stored_.push_back(to.tensor);
  if (!twice) return;
  to.cols = cols;
  to.col_begin = dice_.chance(0.5) ? 0 : cols;
}
void RandomLine::value(Value& v) {
  std::vector<Value> known;
  for (const auto& [name, shape] : program_.shapes) known.push_back(name);
  // What was made last is used most: chains are longer than bushes.
  v = known.empty() ? 0 : dice_.chance(0.5) ? known.back() : dice_.one_of(known);
}
void RandomLine::operand(Operand& o) {
  if (first_operand) {
    o = file_.graph.whole(*std::exchange(first_operand, std::nullopt));
    return;
  }
  std::vector<TensorId> there = file_.stored;
  for (std::size_t i = 0; i < file_.graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Role role = file_.graph.tensor(id).role;
    if (role == Role::input || role == Role::weight || role == Role::table) there.push_back(id);
    if (dice_.chance(0.01)) there.push_back(id);
  }
  if (!there.empty() && dice_.chance(0.3)) {
    o = file_.graph.whole(dice_.one_of(there));
    if (dice_.chance(0.2)) {
      o.cols = dice_.number(1, o.cols);
      o.col_begin = dice_.number(0, file_.graph.tensor(o.tensor).cols - o.cols);
    }
    if (dice_.chance(0.1)) {
      o.rows = dice_.number(1, o.rows);
      o.at.begin = dice_.number(0, file_.graph.tensor(o.tensor).rows - o.rows);
    }
    return;
  }
  static const std::vector<Role> roles = {Role::input, Role::weight, Role::table};
  o = file_.graph.whole(
      add_tensor(dice_.chance(0.7) ? program_.rows : 1, columns(), dice_.one_of(roles)));
}
void RandomLine::slice(Value& in, std::int64_t& begin, std::int64_t& count) {
  value(in);
  const auto known = program_.shapes.find(in);
  const std::int64_t width = known == program_.shapes.end() ? 1 : known->second.width;
  begin = dice_.chance(0.5) ? 0 : dice_.number(0, width - 1);
  count = dice_.chance(0.5) ? std::max<std::int64_t>(1, width / 2) : dice_.number(1, width);
}
void RandomLine::pattern(std::string_view, std::vector<Value>& in, double* constant) {
  for (Value& v : in) value(v);
  static const std::vector<double> constants = {0.5, 0.25, 2, 1, 1e-5, 0.0625, 1.5, -1};
  if (constant != nullptr) *constant = dice_.one_of(constants);
}
void RandomLine::more(std::vector<Operand>& operands) {
  operands.resize(static_cast<std::size_t>(dice_.number(1, 2)));
  for (Operand& o : operands) operand(o);
}
void RandomLine::more(std::vector<Value>& values) {
  values.resize(dice_.chance(0.2) ? 1 : 0);
  for (Value& v : values) value(v);
}
void RandomLine::number(std::string_view, std::int64_t& n, std::int64_t usual) {
  n = usual;
  if (usual != kNeeded && dice_.chance(0.7)) return;
  const std::int64_t cols = columns();
  n = dice_.one_of<std::int64_t>({1, 2, 4, 8, 16, cols, std::max<std::int64_t>(1, cols / 2),
                                  program_.rows, dice_.number(1, 64)});
}
void RandomLine::real(std::string_view, double& x, double usual) {
  x = dice_.chance(0.8) ? usual : 0.5;
}
void RandomLine::numbers(std::string_view, std::vector<std::int64_t>& all) { all.clear(); }
void RandomLine::flag(std::string_view, bool& on) { on = dice_.chance(0.1); }
void RandomLine::named(std::string_view, std::optional<Operand>& o) {
  o.reset();
  if (dice_.chance(0.3)) operand(o.emplace());
}
void RandomLine::named(std::string_view, std::vector<Operand>& all) { all.clear(); }
void RandomLine::named(std::string_view, Value& v) {
  v = -1;
  if (dice_.chance(0.3)) value(v);
}
void RandomLine::choice(std::string_view, int& which, std::span<const std::string_view> words) {
  which = static_cast<int>(dice_.number(0, std::ssize(words) - 1));
}
void RandomLine::text(std::string_view, const std::string&,
                      const std::function<void(const std::string&)>&) {}
void RandomLine::transposed(bool& on) { on = dice_.chance(0.2); }
void RandomLine::space(std::int64_t& rows, std::int64_t& cols) {
  rows = program_.rows;
  cols = program_.cols;
}
void RandomLine::named_value_of(Value& v, Operand& o) {
  v = -1;
  operand(o);
}
void RandomLine::makes_some(Value& first, Value& second) {
  second = -1;
  makes(first);
}
TensorId RandomLine::add_tensor(std::int64_t rows, std::int64_t cols, Role role) {
  static const std::vector<Dtype> types = {Dtype::bf16, Dtype::bf16, Dtype::bf16, Dtype::fp16,
                                           Dtype::fp32, Dtype::fp32, Dtype::fp32, Dtype::e4m3,
                                           Dtype::int8, Dtype::int4};
  Dtype type = dice_.one_of(types);
  if (size_of(type).bits() <= 8 && !dice_.chance(0.2)) type = Dtype::fp32;
  const auto letter = [&](std::int64_t size) {
    const auto known = file_.letters.find(size);
    return known == file_.letters.end() ? std::to_string(size) : known->second;
  };
  return file_.graph.add_tensor({.name = fmt::format("t{}", file_.graph.tensors().size()),
                                 .symbol = "[" + letter(rows) + ", " + letter(cols) + "]",
                                 .role = role,
                                 .dtype = type,
                                 .rows = rows,
                                 .cols = cols});
}
std::int64_t RandomLine::columns() {
  std::vector<std::int64_t> widths = {program_.cols,
                                      program_.cols,
                                      1,
                                      (program_.cols + partial_tile - 1) / partial_tile,
                                      std::max<std::int64_t>(1, program_.cols / 2),
                                      (program_.rows + partial_tile - 1) / partial_tile};
  for (const auto& [v, shape] : program_.shapes) widths.push_back(shape.width);
  return std::max<std::int64_t>(1, dice_.one_of(widths));
}

}  // namespace fuseline::test
