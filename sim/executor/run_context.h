// What the code that runs one phase needs to know.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/plan.h"
#include "sim/executor/fault.h"
#include "sim/executor/memory.h"
#include "sim/executor/parallel.h"
#include "sim/executor/schedule.h"

namespace fuseline::executor {

struct RunContext {
  const Graph& graph;
  const Program& program;
  const PhaseSchedule& schedule;
  Workers workers;
  std::vector<Port>& ports;                // one a thread
  std::optional<FaultPoint> fault;         // of this phase
  std::function<void(double)> progress{};  // share of this phase that is done

  [[nodiscard]] Port& port(int thread) const { return ports[static_cast<std::size_t>(thread)]; }
  // The fault, if it acts on a primitive of the body (or prologue).
  [[nodiscard]] std::optional<FaultPoint> fault_in(bool prologue) const {
    return fault && fault->prologue == prologue ? fault : std::nullopt;
  }
  [[nodiscard]] bool has_fault(FaultKind kind) const { return fault && fault->kind == kind; }
};

// Runs the phase's program: one of the functions below.
void run_phase(const RunContext& context);

void run_gemm(const RunContext& context, const GemmMainloop& mainloop);
void run_attention(const RunContext& context, const AttentionMainloop& mainloop);
void run_attention_gradient(const RunContext& context, const AttentionMainloop& mainloop);
void run_scan(const RunContext& context, const ScanMainloop& mainloop);
void run_scan_gradient(const RunContext& context, const ScanMainloop& mainloop);
// Programs whose tiles need no mainloop.
void run_tiles(const RunContext& context, const StreamMainloop& mainloop);
void run_tiles(const RunContext& context, const RowMainloop& mainloop);

}  // namespace fuseline::executor
