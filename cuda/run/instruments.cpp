#if FUSELINE_HAS_CUDA

#include "cuda/run/instruments.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

Instruments::Instruments(const Device& device, const Wanted& wanted) {
  if (wanted.library) open_library(device);
  if (wanted.attention) open_attention(device);
  if (wanted.counters) open_profiler(device);
}

void Instruments::open_library(const Device& device) {
  try {
    library_.emplace(device);
    names_ = "cuBLASLt " + library_->version();
  } catch (const MissingError& error) {
    notes_.push_back(fmt::format("{}: our own GEMM takes its place", error.what()));
  }
}

void Instruments::open_attention(const Device& device) {
  try {
    attention_.emplace(device);
    names_ += (library_ ? ", cuDNN " : "cuDNN ") + attention_->version();
  } catch (const MissingError& error) {
    notes_.push_back(fmt::format("{}: our own attention takes its place", error.what()));
  }
}

void Instruments::open_profiler(const Device& device) {
  try {
    profiler_.emplace(device);
    checked_ = check_counters(device, *profiler_);
    if (checked_->passed()) return;
    notes_.push_back("counters not used, they are wrong about a copy of known size: " +
                     describe(*checked_));
  } catch (const MissingError& error) {
    notes_.push_back(fmt::format("no counters: {}", error.what()));
  }
  profiler_.reset();
}

}  // namespace fuseline::cuda

#endif
