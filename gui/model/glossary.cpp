#include "gui/model/glossary.h"

#include <algorithm>
#include <cctype>

#include "gui/model/text.h"
#include "model/custom_fusion.h"

namespace fuseline::gui {

namespace {

const std::vector<Term>& words() {
  static const std::vector<Term> all = {
      {"HBM",
       "The GPU's main memory beside the chip. Bytes that cross its pins cost the most time "
       "and energy, so fusion is about keeping tensors from going there and back."},
      {"L2",
       "The cache that all SMs share. What a kernel leaves in it, the next one can read "
       "without HBM."},
      {"SMEM",
       "Shared memory: fast memory inside an SM that the threads of a block share. Tiles "
       "of GEMM operands wait there."},
      {"registers",
       "The fastest memory, private to threads. Accumulators of GEMM tiles live "
       "there; an epilogue works on them before anything is stored."},
      {"SM",
       "Streaming multiprocessor: one of the GPU's cores, with tensor cores, registers and "
       "shared memory of its own."},
      {"kernel",
       "What one launch executes: a set of operators with a program, a tile shape and a "
       "schedule."},
      {"launch",
       "The start of a kernel. Even inside a CUDA graph about a microsecond goes by "
       "between two of them."},
      {"launch gap",
       "The time between the end of one kernel and the first useful work of the "
       "next."},
      {"operator",
       "One mathematical step of the block: a GEMM, a norm, RoPE, an activation, a "
       "residual addition, attention."},
      {"plan", "The kernels of a block in order, and which tensors live in HBM or only on chip."},
      {"policy", "A named way to turn a block into kernels. Each imitates a real system."},
      {"custom", "Your own policy: the edges of the graph that you keep on chip."},
      {"rewrite",
       "A change of the graph that keeps its algebra, such as scaling rows after a "
       "GEMM instead of before it, so that more can be fused."},
      {"fusion", "Two neighbouring operators in one kernel: what goes between them stays on chip."},
      {"on chip", "A tensor that is made and used inside one kernel and never stored to memory."},
      {"GEMM", "General matrix multiply, y = x · wᵀ. Most of a Transformer's arithmetic."},
      {"epilogue",
       "The short program that a GEMM kernel runs on each finished tile while it is "
       "still in registers."},
      {"tile", "The part of a result that one thread block computes, rows × columns × depth."},
      {"split-K",
       "Several thread blocks share one tile's sum and a further launch adds their "
       "parts. Used when a GEMM has too few tiles to fill the GPU."},
      {"least through HBM",
       "The block's weights and caches moved once, and what of its inputs and outputs L2 cannot "
       "hand from block to block. No fusion can go below it. Compulsory bytes count all inputs and "
       "outputs."},
      {"roofline",
       "The most FLOP/s that a kernel can reach at its FLOPs per byte: bandwidth times "
       "intensity, up to the peak. As a fidelity: compulsory bytes against ceilings, "
       "without caches."},
      {"ridge",
       "Where bandwidth and peak meet: left of it memory sets the time, right of it "
       "arithmetic."},
      {"hierarchy",
       "The simulator's default fidelity: tiles in their real order through a "
       "simulated L2, time from the slowest of tensor cores, shared memory, L2, HBM."},
      {"baseline", "The run that all others are compared with."},
      {"measured",
       "Read by hardware counters and timers on a real GPU. Everything else is "
       "predicted."},
      {"predicted", "Computed by the simulator from the plan and the GPU's description."},
      {"steady state",
       "The block as one of many equal layers, each with its own weights, L2 warm "
       "from the layer before."},
      {"replay",
       "The block run again and again on the same input, as benchmarks do. Predictions "
       "that are judged by a measurement are replays too."},
      {"residency", "How much of a tensor L2 holds at a time."},
      {"bound: tensor", "The tensor cores set the kernel's time: it computes as fast as it can."},
      {"bound: hbm", "HBM bandwidth sets the kernel's time."},
      {"bound: l2", "L2 bandwidth sets the kernel's time."},
      {"bound: smem", "Shared memory, or what the SMs can issue, sets the kernel's time."},
      {"bound: launch", "The kernel is so short that its launch takes most of its time."},
      {"bound: sync",
       "Waiting at barriers between the phases of one launch takes most of its "
       "time."},
      {"MAPE", "Mean absolute percentage error: the mean of |predicted − measured| over measured."},
      {"bias", "The mean signed error: positive when predictions are too high."},
      {"what if",
       "Factors on the GPU's numbers, to see which of them the block is sensitive to. "
       "No measurement is compared with a changed GPU."},
      {"crossover",
       "The size at which one policy becomes faster than another, interpolated on "
       "log axes between the two nearest sizes that were simulated."},
      {"waterfall", "What each fusion takes off the unfused block's traffic, step by step."},
      {"decode",
       "Generating tokens: a few new tokens for each sequence against a cache of keys "
       "and values."},
      {"prefill", "The forward pass over a whole prompt; phase forward."}};
  return all;
}

}  // namespace

std::vector<Term> glossary() {
  std::vector<Term> all = words();
  for (const PolicyInfo& p : policies()) {
    all.push_back({p.name, "Imitates " + p.imitates + ". Fuses: " + p.fuses + "."});
  }
  for (const std::string& name : rewrite_names()) {
    all.push_back({name, "Rewrite: " + rewrite_summary(name) + "."});
  }
  std::ranges::stable_sort(
      all, [](const Term& a, const Term& b) { return lower_case(a.name) < lower_case(b.name); });
  return all;
}

std::string explain_term(const std::string& name) {
  const std::string wanted = lower_case(name);
  for (const Term& term : glossary()) {
    if (lower_case(term.name) == wanted) return term.text;
  }
  return {};
}

}  // namespace fuseline::gui
