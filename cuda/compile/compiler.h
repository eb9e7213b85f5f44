// CUDA C++ to machine code while the program runs (NVRTC). Needs the toolkit, but neither a GPU nor
// a driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fuseline::cuda {

// The instruction sets that kernels are written for.
enum class SmTarget : std::uint8_t { sm_80, sm_90a };
const char* name_of(SmTarget);

// The instruction set that the assembler makes: the target's own where `capability` is 0. Machine
// code of sm_80 runs on GPUs of compute capability 8.x only; a newer GPU gets the same kernels in
// its own code: {SmTarget::sm_80, 120} for compute capability 12.0.
struct SmCode {
  SmTarget target = SmTarget::sm_80;
  int capability = 0;

  // NOLINTNEXTLINE(google-explicit-constructor): a target is an architecture
  SmCode(SmTarget t, int c = 0) : target(t), capability(c) {}
  [[nodiscard]] std::string name() const;  // "sm_120"
};

struct ToolkitVersion {
  int major = 0, minor = 0;
};

// One program text; it may include every file of cuda/kernels (device_headers.h).
struct Source {
  std::string name;  // appears in messages: "gate_up.cu"
  std::string text;
};

// What the assembler says of one kernel.
struct ResourceUse {
  int registers = 0;
  std::int64_t stack_bytes = 0;
  std::int64_t spill_bytes = 0;   // stores and loads
  std::int64_t shared_bytes = 0;  // static
};

struct Compiled {
  std::vector<char> cubin;
  std::string ptx;
  std::string log;  // warnings and the assembler's report
  ResourceUse use;  // the sum of spills and the largest of the rest, over the kernels of the source
};

class Compiler {
 public:
  // Finds NVRTC in $CUDA_HOME, $CUDA_PATH, /usr/local/cuda and where the loader looks.
  // MissingError: no toolkit, or fuseline was built without one; the message says what to install.
  Compiler();
  ~Compiler();
  Compiler(Compiler&&) noexcept;
  Compiler& operator=(Compiler&&) noexcept;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  [[nodiscard]] ToolkitVersion version() const;
  // CUDA 12 or newer makes sm_90a code; older ones sm_80 only. For a newer GPU's own code the
  // toolkit must know the GPU.
  [[nodiscard]] bool makes(const SmCode& architecture) const;
  // Options that take part in the result, for a cache's key.
  [[nodiscard]] std::vector<std::string> options(const SmCode& architecture) const;

  // MissingError: the toolkit is too old for the architecture. InternalError with the compiler's
  // messages: the text does not compile (texts are ours).
  // `line_numbers`: the code says which lines it comes from; it is otherwise the same.
  [[nodiscard]] Compiled compile(const Source& source, const SmCode& architecture,
                                 bool line_numbers = false) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace fuseline::cuda
