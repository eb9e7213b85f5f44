#include "sim/kernels/gemm_epilogue_walk.h"

#include <algorithm>
#include <utility>

#include "model/primitives/basics.h"

namespace fuseline {
namespace {

// The rows (or columns) of an epilogue tensor of `size` that belong to output rows [begin, end) of
// `extent`.
OutputRange addressed(OutputRange output, std::int64_t extent, std::int64_t size,
                      Addressing addressing) {
  if (addressing == Addressing::repeated) {
    if (output.end - output.begin >= size) return {0, size};
    const std::int64_t begin = output.begin % size;
    return {begin, std::min(size, begin + (output.end - output.begin))};
  }
  return {output.begin * size / extent, ceil_div(output.end * size, extent)};
}

struct Region {
  OutputRange rows, cols;
  [[nodiscard]] std::int64_t elements() const {
    return (rows.end - rows.begin) * (cols.end - cols.begin);
  }
};

Region region_of(const GemmProblem& problem, const EpilogueStream& stream, const GemmUnit& unit) {
  OutputRange rows = asked_by_rows(problem, stream, {unit.m_begin, unit.m_end});
  OutputRange cols = asked_by_cols(problem, stream, {unit.n_begin, unit.n_end});
  if (stream.of_columns) std::swap(rows, cols);
  const MatrixOrigin origin = stream.origin(unit.batch);
  return {{rows.begin + origin.row, rows.end + origin.row},
          {cols.begin + origin.col, cols.end + origin.col}};
}

}  // namespace

OutputRange asked_by_rows(const GemmProblem& problem, const EpilogueStream& stream,
                          OutputRange output) {
  // One number for each 128 rows, of the tile that has their first one.
  if (stream.of_columns)
    return {ceil_div(output.begin, partial_tile),
            std::min(stream.width, ceil_div(output.end, partial_tile))};
  return addressed(output, problem.m, stream.height, stream.rows);
}

OutputRange asked_by_cols(const GemmProblem& problem, const EpilogueStream& stream,
                          OutputRange output) {
  return stream.of_columns ? addressed(output, problem.n, stream.height, stream.rows)
                           : addressed(output, problem.n, stream.width, stream.cols);
}

Bytes epilogue_bytes(const GemmProblem& problem, const GemmUnit& unit) {
  Bytes bytes;
  for (const EpilogueStream& stream : problem.epilogue) {
    bytes += Bytes(region_of(problem, stream, unit).elements() * stream.matrix.element);
  }
  return bytes;
}

Bytes fetched_bytes(const GemmProblem& problem, const GemmUnit& unit) {
  Bytes bytes;
  for (const EpilogueStream& stream : problem.epilogue)
    if (is_fetched(stream))
      bytes += Bytes(region_of(problem, stream, unit).elements() * stream.matrix.element);
  return bytes;
}

void run_epilogue(const GemmProblem& problem, const GemmUnit& unit, L2Cache& cache) {
  for (const EpilogueStream& stream : problem.epilogue) {
    const Region region = region_of(problem, stream, unit);
    if (!stream.store) {
      cache.read(stream.matrix, region.rows.begin, region.rows.end, region.cols.begin,
                 region.cols.end);
    } else {
      cache.write(stream.matrix, region.rows.begin, region.rows.end, region.cols.begin,
                  region.cols.end);
    }
  }
}

Bytes run_whole_epilogue(const GemmProblem& problem, L2Cache& cache) {
  Bytes bytes;
  for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
    for (std::int64_t row = 0; row < problem.m; row += kChunkEdge) {
      const GemmUnit rows{batch, row, std::min(problem.m, row + kChunkEdge), 0, problem.n, 0, 0,
                          0,     0};
      run_epilogue(problem, rows, cache);
      bytes += epilogue_bytes(problem, rows);
    }
  }
  return bytes;
}

}  // namespace fuseline
