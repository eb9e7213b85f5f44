#include "sim/kernels/operand_rows.h"

#include <cstdint>
#include <numeric>

namespace fuseline {
namespace {

constexpr std::int64_t kLineBytes = 128;  // of L2, and of a row of a bulk copy's box

// A stored row of a transposed operand, of which the gradients of weights have two, is as long as
// the matrix is wide, whatever the number of tokens along k.
std::int64_t stored_columns(const GemmProblem& problem, const GemmOperand& operand) {
  return operand.transposed ? operand.matrix.cols : problem.k;
}

}  // namespace

// Of the operand's rows the share that does not begin at a line. The first one does.
double rows_between_lines(const GemmProblem& problem, const GemmOperand& operand) {
  if (operand.matrix.element.bits() < 8) return 0;
  const std::int64_t bytes = stored_columns(problem, operand) * operand.matrix.element;
  return 1 - static_cast<double>(std::gcd(bytes, kLineBytes)) / static_cast<double>(kLineBytes);
}

bool fetches_by_elements(const GemmProblem& problem, const Gpu& gpu) {
  const std::int64_t alignment = gpu.constants.gemm.alignment_bytes;
  const auto odd = [alignment](std::int64_t columns, ElementSize element) {
    return columns * element % alignment != 0;
  };
  // Results are of the other operand's type where b is stored in few bits, and of another one where
  // both are.
  ElementSize result = (problem.weight.quantised() ? problem.a : problem.b).matrix.element;
  if (problem.activation.quantised())
    for (const EpilogueStream& stream : problem.epilogue)
      if (stream.store) result = stream.matrix.element;
  return problem.library && problem.batch == 1 && !problem.rows_of_tokens && problem.m > 1 &&
         (odd(stored_columns(problem, problem.a), problem.a.matrix.element) ||
          odd(problem.n, result) ||
          (problem.weight.quantised() && odd(problem.k, problem.b.matrix.element)));
}

double crossing_rows(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu) {
  if (problem.library || !has_feature(gpu, Feature::bulk_copy)) return 0;
  // Blocks that share an operand's panel ask L2 for it once.
  const double of_a = static_cast<double>(tile.m) / static_cast<double>(tile.cluster_n);
  const double of_b = static_cast<double>(tile.n) / static_cast<double>(tile.cluster_m);
  return (of_a * rows_between_lines(problem, problem.a) +
          of_b * rows_between_lines(problem, problem.b)) /
         (of_a + of_b);
}

}  // namespace fuseline
