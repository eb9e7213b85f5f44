// Which launches of a trace are which kernels of a plan: by their order, by what their names say,
// and, where these leave a choice, by their times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/plan.h"

namespace fuseline {

// Names are those of libraries and of compilers: nvjet_*, *gemm*, cutlass and triton_mm are GEMMs;
// flash, fmha and sdpa attention; triton_poi_* pointwise; triton_red_* and triton_per_* reductions.
KernelKind kind_of_launch(const std::string& name);

// A second kernel of one call of a library: the sum of split-K, the merge of split attention.
bool belongs_to_launch_before(const std::string& name);

// Whether the name speaks of one of these operators: "silu" of swiglu, "CatArray" of concat_halves.
// Nothing when the name speaks of no operator that is known here.
std::optional<bool> name_speaks_of(const std::string& name, std::span<const std::string> operators);

struct SeenLaunch {
  std::string name;
  Seconds time;
};

struct PlannedKernel {
  KernelKind kind = KernelKind::pointwise;
  std::vector<std::string> operators;  // kinds: "rms_norm", "gemm"; and the kernel's own name
  Seconds time;
  bool generated = false;  // by a compiler: Triton's kernels have names of their own
};

// What a launch was matched by.
enum class MatchedBy : std::uint8_t {
  nothing,
  name,   // its name speaks of the kernel's operators
  kind,   // its name says the kind, and the order says which of that kind
  order,  // only its place between others
  part,   // a further launch of the kernel before
  time,   // out of order: the same kind, and a time that fits
  hand,   // a person said so
};

struct LaunchMatch {
  std::optional<std::size_t> planned;
  MatchedBy by = MatchedBy::nothing;
};

struct KernelAlignment {
  std::vector<LaunchMatch> launches;
  double score = 0;  // of both lists: higher where more of both was matched, and better
};

// Time grows with the product of the two lengths.
KernelAlignment align_launches(std::span<const SeenLaunch> launches,
                               std::span<const PlannedKernel> planned);

const char* name_of(MatchedBy);

}  // namespace fuseline
