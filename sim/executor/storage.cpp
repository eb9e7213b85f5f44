#include "sim/executor/storage.h"

#include <algorithm>

#include "base/error.h"
#include "sim/executor/float_formats.h"

namespace fuseline::executor {

Storage::Storage(Dtype type, std::int64_t rows, std::int64_t cols)
    : type_(type),
      rows_(rows),
      cols_(cols),
      data_(std::make_unique<std::byte[]>(
          static_cast<std::size_t>(checked_product<Bytes>(rows, cols, size_of(type)).value()))) {}

Bytes Storage::bytes() const { return checked_product<Bytes>(rows_, cols_, size_of(type_)); }

const std::byte* Storage::at(std::int64_t row, std::int64_t col) const {
  return data_.get() + (row * cols_ + col) * size_of(type_);
}

std::byte* Storage::at(std::int64_t row, std::int64_t col) {
  return data_.get() + (row * cols_ + col) * size_of(type_);
}

void Storage::read(std::int64_t row, std::int64_t col, std::int64_t count, float* values) const {
  FUSELINE_ASSERT(row >= 0 && row < rows_ && col >= 0 && col + count <= cols_, "outside a tensor");
  const std::int64_t shared = size_of(type_).bits() < 8 ? 2 : 1;  // elements of one byte
  const std::int64_t before = (row * cols_ + col) % shared;
  const std::int64_t whole = ceil_div(before + count, shared) * shared;
  if (before == 0 && whole == count) return widen(type_, at(row, col), values, count);
  std::vector<float> bytes(static_cast<std::size_t>(whole));
  widen(type_, at(row, col - before), bytes.data(), whole);
  std::copy_n(bytes.begin() + before, count, values);
}

void Storage::write(std::int64_t row, std::int64_t col, std::int64_t count, const float* values) {
  FUSELINE_ASSERT(row >= 0 && row < rows_ && col >= 0 && col + count <= cols_, "outside a tensor");
  narrow(type_, values, at(row, col), count);
}

void Storage::write(std::int64_t row, std::int64_t col, std::int64_t count, const double* values) {
  FUSELINE_ASSERT(row >= 0 && row < rows_ && col >= 0 && col + count <= cols_, "outside a tensor");
  narrow(type_, values, at(row, col), count);
}

std::vector<double> to_doubles(const Storage& storage) {
  std::vector<double> result(static_cast<std::size_t>(storage.rows() * storage.cols()));
  std::vector<float> row(static_cast<std::size_t>(storage.cols()));
  for (std::int64_t r = 0; r < storage.rows(); ++r) {
    storage.read(r, 0, storage.cols(), row.data());
    for (std::int64_t c = 0; c < storage.cols(); ++c)
      result[static_cast<std::size_t>(r * storage.cols() + c)] = row[static_cast<std::size_t>(c)];
  }
  return result;
}

}  // namespace fuseline::executor
