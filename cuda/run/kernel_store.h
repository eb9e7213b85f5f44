// Sources to loaded machine code: from the cache on disk, or compiled and put there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/compile/cubin_cache.h"
#include "cuda/driver/driver.h"

namespace fuseline::cuda {

class KernelStore {
 public:
  // `target`: which kernels, where the GPU at hand runs both; empty: the newer. MissingError: no
  // toolkit to compile with, or one that does not know the GPU.
  KernelStore(const Device& device, CubinCache cache, std::optional<SmTarget> target = {});

  // Code for the GPU at hand, kept as long as the store. A cached file that does not load is
  // compiled anew.
  [[nodiscard]] const Module& load(const Source& source);
  // Compiles what neither is loaded nor in the cache, on so many threads of the host, so that
  // load() finds it. Errors are left to load().
  void compile_ahead(const std::vector<Source>& sources, int threads);
  // Every text is changed by this before it is compiled: for tests of those who judge kernels.
  void replace_texts(std::function<std::string(const std::string&)> change) {
    change_ = std::move(change);
  }
  // The source whose machine code has the function, which this store loaded.
  [[nodiscard]] const Source& source_of(const Function& function) const;
  [[nodiscard]] const SmCode& code() const { return code_; }
  [[nodiscard]] SmTarget target() const { return code_.target; }
  [[nodiscard]] int compiled() const { return compiled_; }  // how many were not in the cache

 private:
  [[nodiscard]] Module find_or_compile(const std::string& key, const Source& source);

  const Device* device_;
  CubinCache cache_;
  Compiler compiler_;
  SmCode code_;
  int compiled_ = 0;
  std::function<std::string(const std::string&)> change_{};
  std::map<std::string, Source> sources_{};         // by cache key
  std::map<std::string, Module> loaded_;            // by cache key
  std::map<std::string, std::vector<char>> ahead_;  // compiled, not loaded yet
};

}  // namespace fuseline::cuda
