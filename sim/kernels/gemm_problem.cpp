#include "sim/kernels/gemm_problem.h"

#include <algorithm>

namespace fuseline {

GemmProblem plain_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::uint32_t a,
                       std::uint32_t b, std::uint32_t out, std::uint32_t workspace,
                       ElementSize element) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a.matrix = {a, m, k, element};
  problem.b.matrix = {b, n, k, element};
  EpilogueStream out_stream;
  out_stream.matrix = {out, m, n, element};
  out_stream.height = m;
  out_stream.width = n;
  out_stream.store = true;
  problem.epilogue.push_back(out_stream);
  problem.workspace_tensor = workspace;
  return problem;
}

std::int64_t GemmProblem::products_at_once() const {
  if (calls.empty()) return products();
  return std::ranges::max_element(calls, {}, &StridedBatch::count)->count;
}

std::int64_t GemmProblem::scale_bytes(std::int64_t n_begin, std::int64_t n_end,
                                      std::int64_t k_begin, std::int64_t k_end) const {
  std::int64_t bytes = 0;
  for (const GemmScales& s : scales)
    bytes += weight.beside(s.kind, n_begin, n_end, k_begin, k_end).elements() * s.matrix.element;
  return bytes;
}

std::int64_t GemmProblem::row_scale_bytes(std::int64_t m_begin, std::int64_t m_end,
                                          std::int64_t k_begin, std::int64_t k_end) const {
  if (!row_scales) return 0;
  const ScaleRange r = activation.beside(ScaleKind::scale, m_begin, m_end, k_begin, k_end);
  return r.elements() * row_scales->element;
}

}  // namespace fuseline
