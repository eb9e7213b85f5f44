// Sources to loaded machine code: from the cache on disk, or compiled and put there.
#pragma once

#include <optional>
#include <string>

#include "cuda/compile/compiler.h"
#include "cuda/compile/cubin_cache.h"
#include "cuda/driver/driver.h"

namespace fuseline::cuda {

class KernelStore {
 public:
  // MissingError: no toolkit to compile with.
  KernelStore(const Device& device, CubinCache cache);

  // Code for the GPU at hand. A cached file that does not load is compiled anew.
  [[nodiscard]] Module load(const Source& source);
  [[nodiscard]] SmTarget target() const { return target_; }
  [[nodiscard]] int compiled() const { return compiled_; }  // how many were not in the cache

 private:
  const Device* device_;
  CubinCache cache_;
  Compiler compiler_;
  SmTarget target_;
  int compiled_ = 0;
};

// Everything that the code depends on: toolkit, options, text with its headers.
std::string cache_key(const Compiler& compiler, SmTarget architecture, const Source& source);

}  // namespace fuseline::cuda
