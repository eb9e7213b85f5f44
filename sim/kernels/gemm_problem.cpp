#include "sim/kernels/gemm_problem.h"

namespace fuseline {

GemmProblem plain_gemm(std::int64_t m, std::int64_t n, std::int64_t k, std::uint32_t a,
                       std::uint32_t b, std::uint32_t out, std::uint32_t workspace,
                       std::int64_t element_bytes) {
  GemmProblem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.a.matrix = {a, m, k, element_bytes};
  problem.b.matrix = {b, n, k, element_bytes};
  EpilogueStream out_stream;
  out_stream.matrix = {out, m, n, element_bytes};
  out_stream.height = m;
  out_stream.width = n;
  out_stream.store = true;
  problem.epilogue.push_back(out_stream);
  problem.workspace_tensor = workspace;
  return problem;
}

}  // namespace fuseline
