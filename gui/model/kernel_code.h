// What a planned kernel becomes: its program, the CUDA text that is made of it, the PTX that NVRTC
// makes of that, and the GPU's own instructions where a disassembler is at hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cuda/compile/compile_apart.h"
#include "gui/model/results.h"
#include "gui/model/table.h"

namespace fuseline::gui {

enum class CodeLevel : std::uint8_t { cuda, ptx, sass };
const char* name_of(CodeLevel level);  // "CUDA"

struct CodeQuestion {
  std::shared_ptr<const RunResult> result;
  std::size_t launch = 0;
  Subject about{};
  bool hopper = true;  // code for sm_90a, else for sm_80
  CodeLevel level = CodeLevel::cuda;
  friend bool operator==(const CodeQuestion&, const CodeQuestion&) = default;
};
// Of the longest kernel where the view shows no other. `hopper`: as the run's GPU is.
CodeQuestion code_question(const RunView& view, std::size_t launch, CodeLevel level);

struct CodeLine {
  std::string text;
  std::vector<int> program{};  // lines of the program that it comes from, 1-based
};

struct KernelCode {
  std::string title;                 // "gate_up of coda, for sm_90a"
  std::vector<std::string> program;  // lines
  std::vector<CodeLine> lines;       // of the level that was asked for
  std::string note;     // registers and shared memory; what stands for a library's code
  std::string problem;  // why there are no lines: what is missing, and what to install
  Subject about{};
  CodeLevel level = CodeLevel::cuda;
};

// How a text is compiled: in this process, or in one of its own. None: `stop` ended it.
using CompileCode = std::function<std::optional<cuda::CompiledApart>(
    const cuda::Source&, const cuda::SmCode&, const std::stop_token& stop)>;
CompileCode compiles_here();
CompileCode compiles_with(const std::filesystem::path& program);  // cuda::compile_apart()
// What such a program does first. None: it was not started to compile. Else whether there was a
// question and a place for the answer.
std::optional<bool> answered_compile(int argc, char** argv);

// The CUDA text takes a millisecond; PTX and machine code are compiled, which takes seconds.
KernelCode kernel_code(const CodeQuestion& question, const std::stop_token& stop = {},
                       const CompileCode& compile = compiles_here());

Table to_table(const KernelCode& code);

}  // namespace fuseline::gui
