#include <algorithm>
#include <variant>

#include "model/operators/operator_table.h"
#include "sim/executor/run_context.h"

namespace fuseline::executor {

namespace {

struct RunMainloop {
  const RunContext& context;
  void operator()(const GemmMainloop& m) const { run_gemm(context, m); }
  void operator()(const AttentionMainloop& m) const {
    if (m.gradient) return run_attention_gradient(context, m);
    run_attention(context, m);
  }
  void operator()(const ScanMainloop& m) const {
    if (m.gradient) return run_scan_gradient(context, m);
    run_scan(context, m);
  }
  void operator()(const StreamMainloop& m) const { run_tiles(context, m); }
  void operator()(const RowMainloop& m) const { run_tiles(context, m); }
};

}  // namespace

void run_phase(const RunContext& context) {
  std::visit(RunMainloop{context}, context.program.mainloop);
}

}  // namespace fuseline::executor
