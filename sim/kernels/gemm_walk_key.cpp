// What decides which chunks a GEMM touches: its units in their order, and all of it as the memory
// of walks keeps it.
#include <cmath>

#include "sim/kernels/gemm_traffic.h"
#include "sim/kernels/tail_parts.h"

namespace fuseline {
namespace {

void describe(const std::vector<MatrixOrigin>& origins, WalkKey& key) {
  key.number(std::ssize(origins));
  for (const MatrixOrigin& o : origins) {
    key.number(o.row);
    key.number(o.col);
  }
}

void describe(const GemmOperand& operand, WalkKey& key) {
  key.matrix(operand.matrix);
  key.number(operand.transposed ? 1 : 0);
  describe(operand.origins, key);
}

}  // namespace

GemmSchedule schedule_of(const GemmWalk& gemm) {
  const GemmProblem& p = gemm.problem;
  if (!p.depths.empty())
    return schedule_depths(p.depths, p.m, p.n, gemm.tile, gemm.blocks_at_once, gemm.raster_group);
  if (!p.calls.empty())
    return schedule_calls(p.calls, p.m, p.n, p.k, gemm.tile, gemm.blocks_at_once,
                          gemm.raster_group);
  if (p.groups.empty())
    return schedule_gemm(p.m, p.n, p.k, p.batch, gemm.tile, gemm.blocks_at_once, gemm.raster_group);
  return schedule_groups(p.groups, p.n, p.k, gemm.tile, gemm.blocks_at_once, gemm.raster_group);
}

void describe(const GemmWalk& gemm, WalkKey& key) {
  const GemmProblem& p = gemm.problem;
  const GemmTile& t = gemm.tile;
  key.kind(WalkKey::Kind::gemm);
  for (const std::int64_t number :
       {p.m, p.n, p.k, p.batch, t.m, t.n, t.k, t.cluster_m, t.cluster_n, t.cluster_k, t.split_k,
        t.tail_parts, gemm.blocks_at_once, gemm.raster_group,
        static_cast<std::int64_t>(std::llround(gemm.drift * 1e6))}) {
    key.number(number);
  }
  key.number(std::ssize(p.groups));
  for (const std::int64_t rows : p.groups) key.number(rows);
  key.number(std::ssize(p.depths));
  for (const std::int64_t depth : p.depths) key.number(depth);
  key.number(std::ssize(p.calls));
  for (const StridedBatch& call : p.calls)
    for (const std::int64_t number : {call.first, call.step, call.count}) key.number(number);
  describe(p.a, key);
  describe(p.b, key);
  key.number(std::ssize(p.scales));
  for (const GemmScales& s : p.scales) {
    key.matrix(s.matrix);
    key.number(static_cast<std::int64_t>(s.kind));
    key.number(s.rows_of_group);
    key.number(p.weight.group);
    key.number(p.weight.scale_row(p.n));
    key.number(p.weight.pairs ? 1 : 0);
  }
  if (p.row_scales) {
    key.matrix(*p.row_scales);
    key.number(p.activation.group);
  }
  key.number(std::ssize(p.epilogue));
  for (const EpilogueStream& s : p.epilogue) {
    key.matrix(s.matrix);
    key.number(s.height);
    key.number(s.width);
    key.number(s.store ? 1 : 0);
    key.number(static_cast<std::int64_t>(s.rows));
    key.number(static_cast<std::int64_t>(s.cols));
    key.number(s.of_columns ? 1 : 0);
    describe(s.origins, key);
  }
  key.tensor(p.workspace_tensor);
  key.number(adds_together(p) ? 1 : 0);
}

}  // namespace fuseline
