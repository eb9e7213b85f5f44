// What an estimate is of, as far as its error depends on it.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

// An empty text means any.
struct WorkClass {
  std::string what;     // one of band_subjects()
  std::string phase;    // "forward", "decode", "train"
  std::string maker;    // whose kernels: "own", "library"; of a gain also "mixed"
  std::string kernels;  // of a block "dense", "scores", "experts", "scans"; of a kernel its kind
  std::string size;     // "short", "small", "large"
  // Of a kernel, or of plans that hold one: its kind where that is judged apart, "chain". Only
  // classes of the same kind count, and where there is none the work counts as on a GPU that nobody
  // measured.
  std::string apart = {};
  // What else says how far such estimates err, in the order of trait_names() (sim/sure/traits.h).
  // Of a class, and of estimates of which it is not known, there are none.
  std::vector<double> traits = {};

  friend bool operator==(const WorkClass&, const WorkClass&) = default;
};

// "time" and "hbm" of a block, "kernel_time" and "kernel_hbm", and the "gain" of two plans.
const std::vector<std::string>& band_subjects();

// Kinds of kernels that are judged apart: "chain".
const std::vector<std::string>& kinds_judged_apart();

}  // namespace fuseline
