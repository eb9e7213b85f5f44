// NVRTC in a process of its own. A long-running program such as the window does it this way: NVRTC
// keeps tens of megabytes in the process that called it, and a crash of the compiler would take
// the program along.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>

#include "cuda/compile/compiler.h"

namespace fuseline::cuda {

struct CompiledApart {
  Compiled compiled;
  ToolkitVersion toolkit;
};

// The same in this process.
CompiledApart compile_here(const Source& source, const SmCode& code, bool line_numbers);

// Starts `program --compile FOLDER`, which must call answer_compile(FOLDER), and reads its answer.
// Errors as Compiler's. InternalError too where the process ends without an answer: it says by
// which signal. None: `stop` ended the process.
std::optional<CompiledApart> compile_apart(const std::filesystem::path& program,
                                           const Source& source, const SmCode& code,
                                           bool line_numbers, const std::stop_token& stop = {});

constexpr const char* kCompileOption = "--compile";

// Compiles what stands in the folder and writes the answer there, errors included. False: there was
// no place for an answer, or no question in the folder.
bool answer_compile(const std::filesystem::path& folder);

}  // namespace fuseline::cuda
