#include "model/primitives/program_names.h"

#include <fmt/format.h>

namespace fuseline {

std::string ProgramNames::name(Value v) const {
  const auto i = static_cast<std::size_t>(v);
  if (v >= 0 && i < names_.size() && !names_[i].empty()) return names_[i];
  return v == 0 ? "y" : fmt::format("v{}", v);
}

std::string ProgramNames::text(const Operand& o) const {
  const Tensor& t = graph_.tensor(o.tensor);
  std::string shape;
  for (const char c : t.symbol)
    if (c != ' ') shape += c;
  if (shape.empty()) shape = fmt::format("[{},{}]", t.rows, t.cols);
  if (o.cols == t.cols && o.rows == t.rows) return t.name + shape;
  const std::size_t comma = shape.find(',');
  std::string rows = shape.substr(1, comma - 1);
  std::string cols = shape.substr(comma + 1, shape.size() - comma - 2);
  if (o.at.run > 0)
    rows = fmt::format("{}:{} of every {}", o.at.begin, o.at.begin + o.at.run, o.at.step);
  else if (o.at.begin > 0)
    rows = fmt::format("{}:{}", o.at.begin, o.at.begin + o.rows);
  else if (o.rows != t.rows)
    rows = fmt::format("{} of {}", o.rows, rows);
  if (o.cols != t.cols) cols = fmt::format("{}:{}", o.col_begin, o.col_begin + o.cols);
  return fmt::format("{}[{}, {}]", t.name, rows, cols);
}

}  // namespace fuseline
