// What a lab's function sees of memory. Source and Target stand for matrices in HBM, which is
// another process here: every load and store goes there, one element at a time, and is counted
// there. Everything else that the function holds (its own variables, arrays and vectors) is on
// chip: it costs no traffic, but there is not much of it. Vectors, malloc, static variables and
// large local arrays are counted against the chip's capacity.
#pragma once

#include <cstdint>

namespace fuseline_lab {

// A matrix that can be read. Its elements are stored in bf16 (2 bytes); load() gives a float.
class Source {
 public:
  explicit Source(int index) : index_(index) {}
  float load(std::int64_t row, std::int64_t col) const;
  std::int64_t rows() const;
  std::int64_t cols() const;

 private:
  int index_;
};

// A matrix that can be written. store() rounds to bf16.
class Target {
 public:
  explicit Target(int index) : index_(index) {}
  void store(std::int64_t row, std::int64_t col, float value) const;
  std::int64_t rows() const;
  std::int64_t cols() const;

 private:
  int index_;
};

// One tile of a GEMM's result, still in registers: reading it costs no traffic. Element (i, j) is
// row first_row + i and column first_col + j of the matrix; tiles at the edges are smaller.
struct Accumulator {
  std::int64_t first_row = 0, first_col = 0;
  std::int64_t rows = 0, cols = 0;
  const float* values = nullptr;
  float at(std::int64_t i, std::int64_t j) const { return values[i * cols + j]; }
};

}  // namespace fuseline_lab
