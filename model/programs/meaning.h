// What a program means: its primitives on whole values in fp64, without tiles. The executor's
// results are held against it.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/primitives/tile_context.h"
#include "model/program.h"
#include "model/program_space.h"
#include "model/programs/meanings.h"
#include "model/programs/value_function.h"

namespace fuseline {

// A whole value: one row stands for all rows, and fewer columns than a partner has repeat.
struct ExactMatrix {
  ExactMatrix(std::int64_t r, std::int64_t c)
      : rows(r), cols(c), data(static_cast<std::size_t>(r * c)) {}

  [[nodiscard]] double& at(std::int64_t r, std::int64_t c) {
    return data[static_cast<std::size_t>(r * cols + c)];
  }
  [[nodiscard]] double at(std::int64_t r, std::int64_t c) const {
    return data[static_cast<std::size_t>(r * cols + c)];
  }
  [[nodiscard]] double repeated(std::int64_t r, std::int64_t c) const {
    return at(rows == 1 ? 0 : r, c % cols);
  }

  std::int64_t rows, cols;
  std::vector<double> data;
};

// The tensors of a graph in fp64, by id.
using ExactTensors = std::vector<std::vector<double>>;

// Roundings as a machine makes them: every result of a step is off by chance, by as much as fp32
// can be, and what is stored is rounded to its type. What this changes is what roundings can
// change.
struct Roundings {
  std::mt19937_64 random{};
  double (*stored)(Dtype type, double x) = nullptr;

  // So many sums of terms of that magnitude came before x.
  [[nodiscard]] double off(double x, double terms, double magnitude);
};

// What a primitive asks of the values before it, and of memory.
class Meaning {
 public:
  // `roundings`: null for none. `threads`: of products.
  Meaning(const Graph& graph, const Program& program, ExactTensors& tensors, Roundings* roundings,
          int threads);

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] std::int64_t rows() const { return space_.rows; }
  [[nodiscard]] std::int64_t heads() const { return space_.heads; }
  [[nodiscard]] const ExactMatrix& value(Value v) const;
  void make(Value v, ExactMatrix m);
  ExactMatrix& make(Value v, std::int64_t rows, std::int64_t cols);
  // Where there are roundings: of a sum of so many terms, as large as those of `from` (-1: as it).
  void round(Value v, double terms, Value from);
  [[nodiscard]] bool rounds() const { return roundings_ != nullptr; }
  template <class F>
  void fill(Value v, std::int64_t rows, std::int64_t cols, F f) {
    ExactMatrix m(rows, cols);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c) m.at(r, c) = f(r, c);
    make(v, std::move(m));
  }
  // Row r of the index space, column 0 of a value `width` columns wide, in an operand that holds
  // heads or the matrices of a batch side by side.
  [[nodiscard]] Corner place(const Operand& o, std::int64_t width, std::int64_t r) const;

  [[nodiscard]] double read(const Operand& o, std::int64_t row, std::int64_t col) const;
  // The same number and, behind it, those of the columns to its right.
  [[nodiscard]] const double* from(const Operand& o, std::int64_t row, std::int64_t col) const;
  // A whole number that names a row or a place: roundings do not move it.
  [[nodiscard]] std::int64_t number(const Operand& o, std::int64_t row, std::int64_t col) const;
  [[nodiscard]] double read_row(const Operand& o, std::int64_t tensor_row, std::int64_t col) const;
  void write(const Operand& o, std::int64_t row, std::int64_t col, double x);
  [[nodiscard]] static double reduced(ReduceFn fn, std::span<const double> numbers);

 private:
  [[nodiscard]] std::size_t index(const Operand& o, std::int64_t tensor_row,
                                  std::int64_t col) const;

  const Graph& graph_;
  const Program& program_;
  ExactTensors& tensors_;
  Roundings* roundings_;
  int threads_;
  IndexSpace space_;
  std::vector<std::vector<ExactMatrix>> values_;  // by value; empty: not made
};

// Runs one program. MissingError: a mainloop, primitive or function that states no meaning.
void run_meaning(const Graph& graph, const Program& program, ExactTensors& tensors,
                 Roundings* roundings = nullptr, int threads = 1);

}  // namespace fuseline
