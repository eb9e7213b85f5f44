// Tensors as they lie in HBM: in their storage type, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/graph.h"

namespace fuseline::executor {

class Storage {
 public:
  // All zero.
  Storage(Dtype type, std::int64_t rows, std::int64_t cols);

  [[nodiscard]] Dtype type() const { return type_; }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t cols() const { return cols_; }
  [[nodiscard]] Bytes bytes() const;

  // `count` elements of one row from `col`, as fp32; writing rounds. Types of 4 bits are written in
  // whole bytes.
  void read(std::int64_t row, std::int64_t col, std::int64_t count, float* values) const;
  void write(std::int64_t row, std::int64_t col, std::int64_t count, const float* values);
  void write(std::int64_t row, std::int64_t col, std::int64_t count, const double* values);
  // The elements themselves, of a row from `col`.
  [[nodiscard]] const std::byte* at(std::int64_t row, std::int64_t col) const;
  [[nodiscard]] std::byte* at(std::int64_t row, std::int64_t col);

 private:
  Dtype type_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::unique_ptr<std::byte[]> data_;
};

// Given tensors by name; plans share those that they do not change.
using Inputs = std::map<std::string, std::shared_ptr<const Storage>>;

// The tensor's elements as doubles, row-major.
std::vector<double> to_doubles(const Storage& storage);

}  // namespace fuseline::executor
