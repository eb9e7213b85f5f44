// GEMM rates that others published, beside what the simulator predicts:
// scenarios/published/gemm.csv. No constant is fitted to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline {

struct PublishedGemm {
  std::string source{}, citation{};
  std::string gpu{};  // a name of gpu_names()
  std::int64_t m = 0, n = 0, k = 0;
  FlopsPerSecond rate{};  // of bf16 operands
  std::string caveat{};
};

// InputError: an unknown GPU, sizes or rates that are none.
std::vector<PublishedGemm> load_published_gemms(const std::string& path);

struct JudgedGemm {
  PublishedGemm published;
  FlopsPerSecond predicted;
  // Of the time: predicted over published, less 1. Positive where the prediction is too slow.
  [[nodiscard]] double error() const { return published.rate / predicted - 1; }
};

JudgedGemm judge(const PublishedGemm& gemm);

// A table, a line for each; the mean of the absolute errors per GPU below it.
std::string published_table(const std::vector<JudgedGemm>& gemms);

}  // namespace fuseline
