// The vendor's attention: the rival of ours.
#pragma once

#include <memory>
#include <string>

#include "cuda/run/launch.h"
#include "cuda/vendor/vendor_attention.h"

namespace fuseline::cuda {

class Cudnn {
 public:
  // MissingError: no cuDNN 9 here, or fuseline was built without its headers. This must outlive
  // every launch prepared with it.
  explicit Cudnn(const Device& device);
  ~Cudnn();
  Cudnn(Cudnn&&) noexcept;
  Cudnn& operator=(Cudnn&&) noexcept;
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  [[nodiscard]] std::string version() const;  // "9.14.0"

  struct State;
  [[nodiscard]] State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// One launch. Empty: vendor_attention() says no, or the library has no kernel; then our own must
// do. The first kernel that the library proposes and can build.
Launches prepare_library_attention(const LaunchContext& context, Cudnn& library,
                                   const Program& program);

}  // namespace fuseline::cuda
