#include "model/programs/meaning.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "model/programs/known_lines.h"

namespace fuseline {

Meaning::Meaning(const Graph& graph, const Program& program, ExactTensors& tensors)
    : graph_(graph), program_(program), tensors_(tensors) {
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
  return tensors_.at(static_cast<std::size_t>(o.tensor.index)).at(index(o, row, col));
}
void Meaning::write(const Operand& o, std::int64_t row, std::int64_t col, double x) {
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

void run_meaning(const Graph& graph, const Program& program, ExactTensors& tensors) {
  Meaning exact(graph, program, tensors);
  if (const auto* gemm = std::get_if<GemmMainloop>(&program.mainloop)) {
    multiply(*gemm, exact, exact.make(0, gemm->M, gemm->N));
  } else if (!std::holds_alternative<StreamMainloop>(program.mainloop) &&
             !std::holds_alternative<RowMainloop>(program.mainloop)) {
    throw MissingError("attention and scans state no meaning in fp64 yet");
  }
  for (const Primitive& p : program.body) {
    const LineKind* kind = kind_of(p);
    if (kind == nullptr || !kind->meaning)
      throw MissingError(std::string(p.name()) + " states no meaning in fp64 yet");
    kind->meaning(p, exact);
  }
}

}  // namespace fuseline
