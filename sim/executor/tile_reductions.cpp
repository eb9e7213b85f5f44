// The primitives that sum over a tile's rows or columns.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

namespace {

// Terms at the end of a sum that a fault leaves out.
std::int64_t missed(std::int64_t count) { return std::clamp<std::int64_t>(count / 16, 1, 128); }

}  // namespace

void TileInterpreter::execute(const RowReduce& p) {
  const Matrix& x = values_[index(p.in)];
  Matrix& out = shaped(p.out);
  std::int64_t count = x.cols;
  if (faulty(FaultKind::missed_partial) || faulty(FaultKind::missed_column_partial))
    count -= missed(count);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    out.row(r)[0] = reduce(p.fn, x.row(r), count);
  }
}

void TileInterpreter::execute(const TileReduce& p) {
  FUSELINE_ASSERT(area_.batch == 1, "partials of a batch");
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  const std::int64_t numbers = numbers_of(p);
  const bool by_row = p.axis == Axis::rows;
  const std::int64_t begin = by_row ? range.begin : area_.row_begin;
  const std::int64_t end = by_row ? range.end : area_.row_end;
  const std::int64_t length = by_row ? layout_.width(p.in) : area_.height;
  const std::int64_t across = by_row ? area_.row_begin : range.begin;
  const std::int64_t count = by_row ? x.rows : x.cols;
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  // The i-th row (column) of a value between two places along the reduced axis.
  const auto line = [&](const Matrix& m, std::int64_t i, std::int64_t from, std::int64_t to) {
    if (by_row) return m.row(i) + from;
    for (std::int64_t r = from; r < to; ++r)
      column[static_cast<std::size_t>(r - from)] = m.row(r)[i];
    return static_cast<const float*>(column.data());
  };
  for (std::int64_t block = begin / partial_tile; block * partial_tile < end; ++block) {
    const std::int64_t first = std::max(begin, block * partial_tile);
    const std::int64_t last = std::min(end, (block + 1) * partial_tile);
    std::vector<float> partial(static_cast<std::size_t>(count * numbers));
    for (std::int64_t i = 0; i < count; ++i) {
      float* to = partial.data() + i * numbers;
      const float* values = line(x, i, first - begin, last - begin);
      if (p.fn == ReduceFn::sum_and_squares) {
        to[0] = reduce(ReduceFn::sum, values, last - first);
        to[1] = reduce(ReduceFn::sum_squares, values, last - first);
        continue;
      }
      to[0] = reduce(p.fn, values, last - first);
      if (p.second < 0) continue;
      values = line(values_[index(p.second)], i, first - begin, last - begin);
      to[1] = reduce(p.fn, values, last - first);
    }
    const bool whole =
        first == block * partial_tile && (last == (block + 1) * partial_tile || last == length);
    if (whole) {
      store_partials(p, block, across, partial, *port_);
    } else {
      const std::int64_t part = by_row ? area_.col_tile : area_.row_tile;
      partials_.add({current_, block, across, part}, std::move(partial));
    }
  }
}

// Of each block of columns: maximum, sum of exponentials, target's value (zero where the target
// lies elsewhere).
void TileInterpreter::execute(const OnlineLogSumExp& p) {
  const Matrix& x = values_[index(p.in)];
  const ColumnRange range = columns(p.in);
  std::vector<std::int64_t> targets;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    float target = 0;
    port_->load(p.targets, area_.row_begin + r, 0, 1, &target);
    targets.push_back(static_cast<std::int64_t>(target));
  }
  for (std::int64_t block = range.begin / partial_tile; block * partial_tile < range.end; ++block) {
    const std::int64_t first = std::max(range.begin, block * partial_tile);
    const std::int64_t last = std::min(range.end, (block + 1) * partial_tile);
    std::vector<float> states;
    for (std::int64_t r = 0; r < x.rows; ++r) {
      const float* values = x.row(r) + first - range.begin;
      const float top = reduce(ReduceFn::max, values, last - first);
      float sum = 0;
      for (std::int64_t c = 0; c < last - first; ++c) sum += std::exp(values[c] - top);
      const std::int64_t target = targets[static_cast<std::size_t>(r)] - first;
      const bool here = target >= 0 && target < last - first;
      states.insert(states.end(), {top, sum, here ? values[target] : 0.0F});
    }
    const bool whole = first == block * partial_tile &&
                       (last == (block + 1) * partial_tile || last == layout_.width(p.in));
    if (whole)
      store_partials(p, block, area_.row_begin, states, *port_);
    else
      partials_.add({current_, block, area_.row_begin, area_.col_tile}, std::move(states));
  }
}

void TileInterpreter::execute(const ColumnReduce& p) {
  const Matrix& x = values_[index(p.in)];
  FUSELINE_ASSERT(x.rows == area_.height, "a tile does not hold whole columns");
  Matrix& out = shaped(p.out);
  const std::int64_t count =
      x.rows - (faulty(FaultKind::missed_column_partial) ? missed(x.rows) : 0);
  std::vector<float> column(static_cast<std::size_t>(x.rows));
  for (std::int64_t c = 0; c < x.cols; ++c) {
    for (std::int64_t r = 0; r < x.rows; ++r) column[static_cast<std::size_t>(r)] = x.row(r)[c];
    out.row(0)[c] = reduce(p.fn, column.data(), count);
  }
}

void TileInterpreter::execute(const HeadSum& p) {
  const Matrix& x = values_[index(p.in)];
  Matrix& out = shaped(p.out);
  FUSELINE_ASSERT(x.cols % (p.count * p.width) == 0, "a tile cuts a group of heads");
  for (std::int64_t r = 0; r < out.rows; ++r) {
    for (std::int64_t c = 0; c < out.cols; ++c) {
      const float* first = x.row(r) + c / p.width * p.count * p.width + c % p.width;
      float sum = first[0];
      for (std::int64_t head = 1; head < p.count; ++head) sum += first[head * p.width];
      out.row(r)[c] = sum;
    }
  }
}

}  // namespace fuseline::executor
