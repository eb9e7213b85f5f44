#include "model/programs/meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/error.h"
#include "model/programs/known_lines.h"

namespace fuseline {

double Roundings::off(double x, double terms, double magnitude) {
  const double by = std::uniform_real_distribution<double>(-1, 1)(random);
  // Two roundings of a step; partial sums of n terms are about sqrt(n) of them, and are rounded n
  // times.
  const double sums = terms > 1 ? 2 * terms * magnitude : 0;
  return static_cast<float>(x + by * unit_roundoff(Dtype::fp32) * (2 * std::fabs(x) + sums));
}

Meaning::Meaning(const Graph& graph, const Program& program, ExactTensors& tensors,
                 Roundings* roundings)
    : graph_(graph), program_(program), tensors_(tensors), roundings_(roundings) {
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
    for (const double x : source.data) magnitude += x * x;
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
  const std::int64_t matrices = space_.rows / std::get<GemmMainloop>(program_.mainloop).M;
  const std::int64_t height = space_.rows / matrices;
  const std::int64_t stacked = o.rows / height, beside = o.cols / width;
  const std::int64_t share = matrices / stacked, at = r / height;
  return {at / share * height + r % height, at % share * beside / share * width};
}

std::size_t Meaning::index(const Operand& o, std::int64_t tensor_row, std::int64_t col) const {
  const Tensor& t = graph_.tensor(o.tensor);
  return static_cast<std::size_t>(tensor_row * t.cols + o.col_begin + col);
}

double Meaning::read(const Operand& o, std::int64_t row, std::int64_t col) const {
  return tensors_.at(static_cast<std::size_t>(o.tensor.index)).at(index(o, o.tensor_row(row), col));
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
void Meaning::write(const Operand& o, std::int64_t row, std::int64_t col, double x) {
  if (roundings_ != nullptr) x = roundings_->stored(graph_.tensor(o.tensor).dtype, x);
  tensors_.at(static_cast<std::size_t>(o.tensor.index)).at(index(o, o.tensor_row(row), col)) = x;
}

double Meaning::reduced(ReduceFn fn, std::span<const double> numbers) {
  return meaning_of(fn)(numbers.data(), std::ssize(numbers));
}

namespace {

void multiply(const GemmMainloop& m, const Meaning& exact, ExactMatrix& y) {
  if (m.batch != 1 || m.weight.quantised() || m.activation.quantised() || !m.groups.empty() ||
      !m.depths.empty())
    throw MissingError(
        "a GEMM in a batch, in groups or of numbers in codes states no meaning in fp64 yet");
  std::vector<double> a(static_cast<std::size_t>(m.M * m.K));
  for (std::int64_t r = 0; r < m.M; ++r)
    for (std::int64_t k = 0; k < m.K; ++k)
      a[static_cast<std::size_t>(r * m.K + k)] =
          m.a_is_km ? exact.read(m.a, k, r) : exact.read(m.a, r, k);
  // Some columns at a time, so that b is read once and their sums are beside each other.
  constexpr std::int64_t kBeside = 8;
  std::vector<double> b(static_cast<std::size_t>(m.K * kBeside));  // [K, kBeside]
  for (std::int64_t n = 0; n < m.N; n += kBeside) {
    const std::int64_t cols = std::min(kBeside, m.N - n);
    for (std::int64_t c = 0; c < cols; ++c)
      for (std::int64_t k = 0; k < m.K; ++k)
        b[static_cast<std::size_t>(k * kBeside + c)] =
            m.b_is_kn ? exact.read(m.b, k, n + c) : exact.read(m.b, n + c, k);
    for (std::int64_t r = 0; r < m.M; ++r) {
      double sums[kBeside] = {};
      const double* row = a.data() + r * m.K;
      for (std::int64_t k = 0; k < m.K; ++k)
        for (std::int64_t c = 0; c < kBeside; ++c)
          sums[c] += row[k] * b[static_cast<std::size_t>(k * kBeside + c)];
      for (std::int64_t c = 0; c < cols; ++c) y.at(r, n + c) = sums[c];
    }
  }
}

}  // namespace

void run_meaning(const Graph& graph, const Program& program, ExactTensors& tensors,
                 Roundings* roundings) {
  Meaning exact(graph, program, tensors, roundings);
  if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop)) {
    multiply(*gemm, exact, exact.make(0, gemm->M, gemm->N));
    exact.round(0, static_cast<double>(gemm->K), -1);
  } else if (!std::holds_alternative<StreamMainloop>(program.mainloop) &&
             !std::holds_alternative<RowMainloop>(program.mainloop)) {
    throw MissingError("attention and scans state no meaning in fp64 yet");
  }
  for (const Primitive& p : program.body) {
    const LineKind* kind = kind_of(p);
    if (kind == nullptr || !kind->meaning)
      throw MissingError(std::string(p.name()) + " states no meaning in fp64 yet");
    kind->meaning(p, exact);
    if (roundings == nullptr) continue;
    const std::vector<Value> uses = p.uses();
    for (const Value v : p.defines()) {
      const std::int64_t read = uses.empty() ? 1 : std::ssize(exact.value(uses.front()).data);
      const double terms =
          static_cast<double>(read) /
          static_cast<double>(std::max<std::int64_t>(1, exact.value(v).cols * exact.value(v).rows));
      exact.round(v, terms, uses.empty() ? v : uses.front());
    }
  }
}

}  // namespace fuseline
