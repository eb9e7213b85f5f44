// Programs of one's own, executed on the CPU and held against the fp64 meaning of their text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/executor/parallel.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

struct VerifiedTensor {
  std::string name, program;  // that stored it
  double error = 0;           // relative L2
  double allowed = 0;
  std::int64_t rows = 0, of_rows = 0;  // of the program that were checked, where that is its own
  [[nodiscard]] bool agrees() const { return error <= allowed; }
};

struct VerifiedKernel {
  std::string name;
  std::int64_t loaded = 0, stored = 0;  // bytes counted
  std::vector<std::string> differing;   // tensors whose bytes are not the simulator's
};

struct VerifiedPrograms {
  std::vector<VerifiedTensor> tensors;
  std::vector<VerifiedKernel> kernels;
  [[nodiscard]] bool passed() const;
};

// Random inputs. A tensor agrees when its relative L2 error is below four times what rounding to
// the types of the stored tensors on its way, and sums in fp32, can add: roundings u_i of each
// tensor and (2·sqrt(K) + 8)·2^-24 of each sum of K terms. Steps that make errors larger, such as
// the difference of two near numbers, are allowed what they do: the fp64 meaning runs a second time
// with a random rounding behind each step, and four times the difference is allowed as well. Where
// a result is further off, it runs 15 times more, and the root mean square of the differences takes
// the place of the first, which may be small by chance.
// MissingError: a primitive or mainloop that states no meaning. InputError: more than 2^31
// multiplications, which fp64 without tiles would take minutes for; a result that is not finite in
// fp64, or that roundings change by as much as it is.
VerifiedPrograms verify_programs(const Plan& plan, const Gpu& gpu, std::uint64_t seed,
                                 const executor::Workers& workers);

}  // namespace fuseline
