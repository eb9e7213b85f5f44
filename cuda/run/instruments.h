// What a measurement uses beside our own kernels: the vendor's libraries and the GPU's counters, as
// far as they are here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/counters/counter_check.h"
#include "cuda/counters/range_profiler.h"
#include "cuda/driver/driver.h"
#include "cuda/vendor/cublaslt_gemm.h"
#include "cuda/vendor/cudnn_attention.h"

namespace fuseline::cuda {

class Instruments {
 public:
  struct Wanted {
    bool library = false, attention = false, counters = false;
  };
  // What is missing, or wrong about a copy of known size, is left out and noted.
  Instruments(const Device& device, const Wanted& wanted);

  // Null: it is not here, or was not wanted.
  [[nodiscard]] CublasLt* library() { return library_ ? &*library_ : nullptr; }
  [[nodiscard]] Cudnn* attention() { return attention_ ? &*attention_ : nullptr; }
  [[nodiscard]] RangeProfiler* profiler() { return profiler_ ? &*profiler_ : nullptr; }
  [[nodiscard]] const RangeProfiler* profiler() const { return profiler_ ? &*profiler_ : nullptr; }

  [[nodiscard]] const std::string& names() const { return names_; }  // of the libraries
  [[nodiscard]] const std::optional<CounterCheck>& checked() const { return checked_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void open_library(const Device& device);
  void open_attention(const Device& device);
  void open_profiler(const Device& device);

  std::optional<CublasLt> library_;
  std::optional<Cudnn> attention_;
  std::optional<RangeProfiler> profiler_;
  std::optional<CounterCheck> checked_;
  std::string names_;
  std::vector<std::string> notes_;
};

}  // namespace fuseline::cuda
