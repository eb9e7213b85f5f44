// How the thread blocks of a wave read their operands through L2.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/kernels/gemm_panels.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// A wave reads its panels along k, at about the same depth at the same time. Nothing keeps thread
// blocks together: half of them, every other unit, fall behind, and no wave brings them together
// again. Each step is late by chance, so that the distance grows with the root of the way that they
// have gone along k since the kernel began. What they read late L2 may have lost. Where all that is
// read in between fits into a part of L2 the delay changes nothing, and the wave is read in
// lockstep.
class WaveReader {
 public:
  // `drift`: elements of k that half of the units are behind after one.
  WaveReader(const GemmProblem& problem, double drift)
      : problem_(&problem), of_one_(drift), all_(problem), ahead_(problem), behind_(problem) {}

  void clear();
  void add(const GemmUnit& unit);
  [[nodiscard]] Bytes distinct() { return bytes_of(*problem_, all_.distinct()); }

  // Of so many waves before it. Returns the number of blocks of 64 rows and a step of 64 along k.
  std::int64_t read(std::int64_t depth, std::int64_t waves_before, L2Cache& cache);

  // After read(): of each operand the share that L2 held, and the smaller of them.
  [[nodiscard]] double found();
  // After read(): what of the operands was missed, scales apart.
  [[nodiscard]] Bytes missed() const { return missed_.a + missed_.b - missed_.scales; }

 private:
  // What of the two operands L2 did not hold, scales included, and what of that were scales.
  struct Missed {
    Bytes a, b;
    Bytes scales;
  };

  std::int64_t read_panels(const std::vector<Panel>& panels, std::int64_t k, L2Cache& cache);
  [[nodiscard]] double share_of_way(std::int64_t depth, std::int64_t waves_before) const;

  const GemmProblem* problem_;
  double of_one_;
  WavePanels all_, ahead_, behind_;
  Missed missed_;
  std::int64_t units_ = 0;
};

}  // namespace fuseline
