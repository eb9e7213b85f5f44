// Walks one phase of a kernel through L2: what it moves, and what it costs beyond an empty launch.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/attention_kernel.h"
#include "sim/kernels/gemm_model.h"
#include "sim/kernels/program_streams.h"
#include "sim/kernels/remembering_l2.h"
#include "sim/kernels/scan_kernel.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/memory/traffic.h"

namespace fuseline {

// One GEMM of a kernel, kept so that it can be timed again at another clock.
struct WalkedGemm {
  GemmProblem problem;
  GemmEstimate estimate;
};

// One launch, timed at the boost clock.
struct WalkedKernel {
  KernelEstimate estimate;
  Seconds fixed;    // the part that no clock changes: launch, memory, barriers
  Seconds compute;  // the part outside GEMMs that slows down with the SM clock
  std::vector<WalkedGemm> gemms;
  Bytes resident{};  // of the watched tensor, what L2 holds when the launch is over
};

// The kernel's time with every clock-bound part at this fraction of the boost clock.
Seconds time_at(const WalkedKernel& kernel, const Gpu& gpu, double clock_factor);

// What one phase of a kernel costs beyond an empty launch, and the launches it leaves behind.
struct WalkedPhase {
  WalkedKernel kernel;  // fixed and compute without the launch
  std::vector<WalkedKernel> followers;
  TileShape tile;
};

// How a phase goes through L2.
using AnyWalk = std::variant<GemmWalk, AttentionWalk, ScanWalk, StreamWalk>;

class PhaseWalker {
 public:
  PhaseWalker(const Plan& plan, const Gpu& gpu, const AddressMap& addresses, RememberingL2& l2)
      : plan_(plan), gpu_(gpu), addresses_(addresses), l2_(l2) {}

  WalkedPhase walk(const Kernel& kernel, const Program& program);
  // One of the launches that a framework has beside the kernel or in its place.
  WalkedKernel walk(const Kernel& kernel, const FrameworkLaunch& launch);
  [[nodiscard]] AnyWalk walk_of(const Kernel& kernel, const Program& program) const;
  // A short launch behind a kernel, of its kind.
  [[nodiscard]] WalkedKernel follower(const std::string& name, KernelKind kind, Seconds work,
                                      HbmTraffic hbm, Bytes l2) const;

 private:
  template <class OneWalk>
  WalkTraffic through_l2(const OneWalk& one);
  WalkedPhase gemm(const Kernel& kernel, const Program& program);
  WalkedPhase attention(const Kernel& kernel, const Program& program);
  WalkedPhase scan(const Kernel& kernel, const Program& program);
  WalkedPhase chain(const Kernel& kernel, const Program& program);
  WalkedPhase stream(const Kernel& kernel, const Program& program);

  const Plan& plan_;
  const Gpu& gpu_;
  const AddressMap& addresses_;
  RememberingL2& l2_;
};

}  // namespace fuseline
