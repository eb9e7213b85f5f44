#include "gui/model/kernel_code.h"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/compile/disassembler.h"
#include "cuda/emit/plan_source.h"
#include "gui/model/code_links.h"

namespace fuseline::gui {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

cuda::SmTarget code_target(const CodeQuestion& q) {
  return q.hopper ? cuda::SmTarget::sm_90a : cuda::SmTarget::sm_80;
}

std::string use_text(const cuda::Compiled& compiled, const cuda::ToolkitVersion& version) {
  const cuda::ResourceUse& use = compiled.use;
  std::string text =
      fmt::format("CUDA {}.{}: {} registers", version.major, version.minor, use.registers);
  text += use.spill_bytes > 0 ? fmt::format(", {} bytes spilled", use.spill_bytes)
                              : std::string(", nothing spilled");
  if (use.shared_bytes > 0)
    text += fmt::format(", {} bytes of static shared memory", use.shared_bytes);
  return text;
}

// One source and where its lines come from.
struct LinkedSource {
  cuda::Source source;
  std::vector<std::string> lines;
  std::vector<std::vector<int>> links;
};

void add_cuda(KernelCode& code, const LinkedSource& s) {
  if (!code.lines.empty()) code.lines.push_back({});
  for (std::size_t i = 0; i < s.lines.size(); ++i) code.lines.push_back({s.lines[i], s.links[i]});
}

// What is compiled says which lines of the CUDA text it comes from; these know the program's.
// False: `stop` came first.
bool add_compiled(KernelCode& code, const LinkedSource& s, const cuda::SmTarget target,
                  const CompileCode& compile, const std::stop_token& stop) {
  // Before the compiler's seconds: what cannot be shown is not compiled.
  const bool to_sass = code.level == CodeLevel::sass;
  const cuda::Disassembler tool = to_sass ? cuda::find_disassembler() : cuda::Disassembler{};
  const std::optional<cuda::CompiledApart> made = compile(s.source, target, stop);
  if (!made) return false;
  const cuda::Compiled& compiled = made->compiled;
  const std::vector<cuda::MachineLine> lines =
      to_sass ? cuda::sass_lines(cuda::disassemble(tool, compiled.cubin), s.source.name)
              : cuda::ptx_lines(compiled.ptx, s.source.name);
  code.note += (code.note.empty() ? "" : "; ") + use_text(compiled, made->toolkit);
  if (to_sass) code.note += ", read with " + tool.name;
  if (!code.lines.empty()) code.lines.push_back({});
  for (const cuda::MachineLine& line : lines) {
    const auto at = static_cast<std::size_t>(line.source_line);
    code.lines.push_back(
        {line.text, at >= 1 && at <= s.links.size() ? s.links[at - 1] : std::vector<int>{}});
  }
  return true;
}

}  // namespace

CompileCode compiles_here() {
  return [](const cuda::Source& source, const cuda::SmCode& target, const std::stop_token&) {
    return std::optional(cuda::compile_here(source, target, true));
  };
}

std::optional<bool> answered_compile(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != cuda::kCompileOption) return std::nullopt;
  return cuda::answer_compile(argv[2]);
}

CompileCode compiles_with(const std::filesystem::path& program) {
  return [program](const cuda::Source& source, const cuda::SmCode& target,
                   const std::stop_token& stop) {
    return cuda::compile_apart(program, source, target, true, stop);
  };
}

const char* name_of(CodeLevel level) {
  switch (level) {
    case CodeLevel::cuda:
      return "CUDA";
    case CodeLevel::ptx:
      return "PTX";
    case CodeLevel::sass:
      break;
  }
  return "SASS";
}

CodeQuestion code_question(const RunView& view, std::size_t launch, CodeLevel level) {
  CodeQuestion q{view.result, launch, subject_of(view), true, level};
  if (view.result != nullptr && view.result->block != nullptr) {
    try {
      q.hopper = cuda::target_of(view.result->block->gpu) == cuda::SmTarget::sm_90a;
    } catch (const MissingError&) {  // a GPU that no code of ours runs on: kernel_code() says so
    }
  }
  return q;
}

KernelCode kernel_code(const CodeQuestion& q, const std::stop_token& stop,
                       const CompileCode& compile) {
  KernelCode code;
  code.about = q.about;
  code.level = q.level;
  if (q.result == nullptr || q.result->plan == nullptr || q.result->block == nullptr) {
    code.problem = "The run has no plan.";
    return code;
  }
  if (q.launch >= q.result->kernels.size() || !q.result->kernels[q.launch].plan_kernel) {
    code.problem = "No planned kernel corresponds to this launch.";
    return code;
  }
  const Plan& plan = *q.result->plan;
  const std::size_t index = *q.result->kernels[q.launch].plan_kernel;
  const Kernel& kernel = plan.kernels[index];
  const cuda::SmTarget target = code_target(q);
  code.title = fmt::format("{} of {}, for {}", kernel.name, plan.policy, cuda::name_of(target));
  if (q.result->explanation) {
    for (const std::string& phase : q.result->explanation->kernels[index].programs)
      for (std::string& line : lines_of(phase)) code.program.push_back(std::move(line));
  }
  if (kernel.implementation == Implementation::library_gemm ||
      kernel.implementation == Implementation::library_attention ||
      kernel.implementation == Implementation::library_scan)
    code.note =
        "The plan takes it from a library, whose text is closed: this is our own kernel of "
        "the same program";
  try {
    for (cuda::Source& source : cuda::kernel_sources(plan, kernel, q.result->block->gpu, target)) {
      if (stop.stop_requested()) return code;
      LinkedSource s{std::move(source), {}, {}};
      s.lines = lines_of(s.source.text);
      s.links = code_links(code.program, s.lines);
      if (q.level == CodeLevel::cuda) {
        add_cuda(code, s);
        continue;
      }
      if (!add_compiled(code, s, target, compile, stop)) return code;
    }
  } catch (const MissingError& error) {
    code.lines.clear();
    code.problem = error.what();
  } catch (const InternalError& error) {  // kernels of one architecture alone
    code.lines.clear();
    code.problem = fmt::format("There is no code for {}: {}", cuda::name_of(target), error.what());
  }
  return code;
}

Table to_table(const KernelCode& code) {
  Table table{"code", {"line", "level", "program_lines", "text"}, {}};
  std::int64_t number = 0;
  for (const std::string& line : code.program)
    add_row(table, {++number, std::string("program"), std::to_string(number), line}, code.about);
  number = 0;
  for (const CodeLine& line : code.lines) {
    add_row(table,
            {++number, std::string(name_of(code.level)),
             fmt::format("{}", fmt::join(line.program, " ")), line.text},
            code.about);
  }
  return table;
}

}  // namespace fuseline::gui
