#include "model/programs/meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/error.h"
#include "model/batch_corner.h"
#include "model/programs/known_lines.h"
#include "model/programs/mainloop_meaning.h"

namespace fuseline {

double Roundings::off(double x, double terms, double magnitude) {
  const double by = std::uniform_real_distribution<double>(-1, 1)(random);
  if (!std::isfinite(x)) return x;  // a masked score
  // Two roundings of a step; partial sums of n terms are about sqrt(n) of them, and are rounded n
  // times.
  const double sums = terms > 1 ? 2 * terms * magnitude : 0;
  return static_cast<float>(x + by * unit_roundoff(Dtype::fp32) * (2 * std::fabs(x) + sums));
}

Meaning::Meaning(const Graph& graph, const Program& program, ExactTensors& tensors,
                 Roundings* roundings, int threads)
    : graph_(graph),
      program_(program),
      tensors_(tensors),
      roundings_(roundings),
      threads_(threads) {
  std::vector<std::string> problems;
  space_ = index_space_of(graph, program, problems);
}

const ExactMatrix& Meaning::value(Value v) const {
  const auto i = static_cast<std::size_t>(v);
  FUSELINE_ASSERT(v >= 0 && i < values_.size() && !values_[i].empty(), "a value before it is made");
  return values_[i].front();
}

void Meaning::make(Value v, ExactMatrix m) {
  const auto i = static_cast<std::size_t>(v);
  if (values_.size() <= i) values_.resize(i + 1);
  values_[i].clear();
  values_[i].push_back(std::move(m));
}

ExactMatrix& Meaning::make(Value v, std::int64_t rows, std::int64_t cols) {
  make(v, ExactMatrix(rows, cols));
  return values_[static_cast<std::size_t>(v)].front();
}

void Meaning::round(Value v, double terms, Value from) {
  if (roundings_ == nullptr) return;
  ExactMatrix& m = values_[static_cast<std::size_t>(v)].front();
  double magnitude = 0;
  if (terms > 1) {
    const ExactMatrix& source = from >= 0 ? value(from) : m;
    for (const double x : source.data) magnitude += std::isfinite(x) ? x * x : 0;
    magnitude = std::sqrt(magnitude / static_cast<double>(source.data.size()));
  }
  // Value 0 is a sum already: its terms are smaller by the square root of their number.
  if (from < 0) magnitude /= std::sqrt(terms);
  for (double& x : m.data) x = roundings_->off(x, terms, magnitude);
}

Corner Meaning::place(const Operand& o, std::int64_t width, std::int64_t r) const {
  if (space_.heads > 1) {
    const std::int64_t tokens = std::get<RowMainloop>(program_.mainloop).tokens;
    const std::int64_t sequence = r / tokens / space_.heads;
    return {sequence * tokens + r % tokens, r / tokens % space_.heads * width};
  }
  if (space_.batch <= 1) return {r, 0};
  const std::int64_t height = std::get<GemmMainloop>(program_.mainloop).M;
  const Corner corner = corner_of(o, space_.rows / height, r / height, height, width);
  return {corner.row + r % height, corner.col};
}

std::size_t Meaning::index(const Operand& o, std::int64_t tensor_row, std::int64_t col) const {
  const Tensor& t = graph_.tensor(o.tensor);
  return static_cast<std::size_t>(tensor_row * t.cols + o.col_begin + col);
}

double Meaning::read(const Operand& o, std::int64_t row, std::int64_t col) const {
  return tensors_.at(static_cast<std::size_t>(o.tensor.index)).at(index(o, o.tensor_row(row), col));
}
const double* Meaning::from(const Operand& o, std::int64_t row, std::int64_t col) const {
  return tensors_.at(static_cast<std::size_t>(o.tensor.index)).data() +
         index(o, o.tensor_row(row), col);
}
double Meaning::read_row(const Operand& o, std::int64_t row, std::int64_t col) const {
  const Tensor& t = graph_.tensor(o.tensor);
  if (row < 0 || row >= t.rows)
    throw InputError({.field = "program " + program_.name,
                      .value = std::to_string(row),
                      .message = "is named as a row of " + t.name + ", which it does not have",
                      .allowed = fmt::format("rows 0 to {}", t.rows - 1)});
  return tensors_.at(static_cast<std::size_t>(o.tensor.index)).at(index(o, row, col));
}
std::int64_t Meaning::number(const Operand& o, std::int64_t row, std::int64_t col) const {
  return std::llround(read(o, row, col));
}
void Meaning::write(const Operand& o, std::int64_t row, std::int64_t col, double x) {
  if (roundings_ != nullptr) x = roundings_->stored(graph_.tensor(o.tensor).dtype, x);
  tensors_.at(static_cast<std::size_t>(o.tensor.index)).at(index(o, o.tensor_row(row), col)) = x;
}

double Meaning::reduced(ReduceFn fn, std::span<const double> numbers) {
  return meaning_of(fn)(numbers.data(), std::ssize(numbers));
}

namespace {

// Numbers that a primitive loads: where they are more than it makes, it sums them.
std::int64_t loaded(const Primitive& p) {
  std::int64_t most = 1;
  for (const Access& a : p.accesses())
    if (!a.store) most = std::max(most, a.elements());
  return most;
}

void run_lines(const std::vector<Primitive>& lines, Meaning& exact) {
  for (const Primitive& p : lines) {
    const LineKind* kind = kind_of(p);
    if (kind == nullptr || !kind->meaning)
      throw MissingError(std::string(p.name()) + " states no meaning in fp64 yet");
    kind->meaning(p, exact);
    if (!exact.rounds()) continue;
    const std::vector<Value> uses = p.uses();
    const std::int64_t read = uses.empty() ? loaded(p) : std::ssize(exact.value(uses.front()).data);
    for (const Value v : p.defines()) {
      const double terms =
          static_cast<double>(read) /
          static_cast<double>(std::max<std::int64_t>(1, exact.value(v).cols * exact.value(v).rows));
      exact.round(v, terms, uses.empty() ? -1 : uses.front());
    }
  }
}

}  // namespace

void run_meaning(const Graph& graph, const Program& program, ExactTensors& tensors,
                 Roundings* roundings, int threads) {
  Meaning exact(graph, program, tensors, roundings, threads);
  run_lines(program.prologue, exact);
  run_mainloop_meaning(program, exact);
  run_lines(program.body, exact);
}

}  // namespace fuseline
