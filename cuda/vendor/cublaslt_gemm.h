// The vendor's GEMMs: what frameworks call, and what our own mainloop is measured against.
#pragma once

#include <memory>
#include <string>

#include "cuda/run/launch.h"
#include "cuda/vendor/vendor_gemm.h"

namespace fuseline::cuda {

class CublasLt {
 public:
  // MissingError: no cuBLASLt here, or fuseline was built without its header. The device must
  // outlive this, and this every launch prepared with it: they share one workspace, so launches of
  // one CublasLt run one after another.
  explicit CublasLt(const Device& device);
  ~CublasLt();
  CublasLt(CublasLt&&) noexcept;
  CublasLt& operator=(CublasLt&&) noexcept;
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  [[nodiscard]] std::string version() const;  // "13.1.0"

  struct State;
  [[nodiscard]] State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// One launch, of one call or, where a batch lies at unequal distances, of several. Empty:
// supports() says no, or the library proposes no algorithm; then our own kernel must do. Tries the
// first 8 of the library's proposals on the GPU with cold caches and keeps the fastest; the same
// problem gets the same algorithm as long as the CublasLt lives. Does not change the program's
// results.
Launches prepare_library_gemm(const LaunchContext& context, CublasLt& library,
                              const Program& program);

}  // namespace fuseline::cuda
