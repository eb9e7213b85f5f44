// From program to CUDA to machine code.
#include "gui/model/kernel_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "cuda/compile/compiler.h"
#include "cuda/compile/disassembler.h"
#include "cuda/emit/plan_source.h"
#include "gui/model/code_links.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A variable of the environment, as long as the test runs.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_.empty() ? unsetenv(name_) : setenv(name_, old_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
};

RunView coded_view(const std::string& policy, const std::string& gpu = "h200") {
  Document document = test::small_document({policy});
  document.setup.gpu = gpu;
  const RunId id = document.runs.all().front().id;
  ResultCache cache;
  const Results results = compute(document, cache);
  return *results.find(id);
}

std::size_t launch_of(const RunView& view, const std::string& kernel) {
  const auto& kernels = view.result->kernels;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].estimate.name == kernel) return i;
  ADD_FAILURE() << kernel;
  return 0;
}

const CodeLine& line_with(const KernelCode& code, const std::string& text) {
  for (const CodeLine& line : code.lines)
    if (line.text.find(text) != std::string::npos) return line;
  ADD_FAILURE() << text;
  return code.lines.front();
}

int program_line(const KernelCode& code, const std::string& text) {
  for (std::size_t i = 0; i < code.program.size(); ++i)
    if (code.program[i].find(text) != std::string::npos) return static_cast<int>(i) + 1;
  ADD_FAILURE() << text;
  return 0;
}

TEST(CodeLinks, FollowTheNamesOfValuesTensorsAndNumbers) {
  const std::vector<std::string> program = {"norm:  for each row of [8, 64]", "  x = load x[M,D]",
                                            "  m = s * 0.015625", "  m1 = m + 1e-05   // shifted",
                                            "  store xn[M,D] = m1"};
  const std::vector<std::string> cuda = {"//   m1 = m + 1e-05",
                                         "// in0 = x",
                                         "// c1 = 1e-05",
                                         "// out0 = xn",
                                         "    Tile<bf16> in0;",
                                         "    const auto in0 = load_tile(p.in0, place);",
                                         "    const auto m_1 = add_constant(m, p.c1);",
                                         "    store_tile(p.out0, place, m_1);",
                                         "    const auto other = twice(m);"};
  const std::vector<std::vector<int>> links = code_links(program, cuda);
  EXPECT_THAT(links[0], ElementsAre(4));
  EXPECT_THAT(links[1], ElementsAre(2));
  EXPECT_THAT(links[2], ElementsAre(4));
  EXPECT_THAT(links[3], ElementsAre(5));
  EXPECT_THAT(links[4], ElementsAre(2));
  EXPECT_THAT(links[5], ElementsAre(2));
  EXPECT_THAT(links[6], ElementsAre(4));
  EXPECT_THAT(links[7], ElementsAre(5));
  EXPECT_THAT(links[8], IsEmpty());
}

TEST(KernelCode, OfAnEpilogueNamesTheLinesOfTheProgram) {
  const RunView view = coded_view("coda");
  const KernelCode code =
      kernel_code(code_question(view, launch_of(view, "gate_up"), CodeLevel::cuda));
  EXPECT_EQ(code.problem, "");
  EXPECT_EQ(code.title, "gate_up of coda, for sm_90a");
  EXPECT_THAT(line_with(code, "const auto o = swiglu(").program,
              ElementsAre(program_line(code, "o = swiglu(")));
  EXPECT_THAT(line_with(code, "store_tile(p.act").program,
              ElementsAre(program_line(code, "store act")));
  EXPECT_THAT(line_with(code, "RowsIn<float> r_norm2;").program,
              ElementsAre(program_line(code, "load_rows r_norm2")));
  EXPECT_THAT(line_with(code, "using Gemm").program, ElementsAre(1));
  EXPECT_THAT(line_with(code, "#include").program, IsEmpty());
  // Every line of the program is somewhere in the text.
  for (std::size_t i = 0; i < code.program.size(); ++i) {
    const int line = static_cast<int>(i) + 1;
    EXPECT_TRUE(std::ranges::any_of(code.lines, [&](const CodeLine& l) {
      return std::ranges::find(l.program, line) != l.program.end();
    })) << code.program[i];
  }
  EXPECT_EQ(unlike_in(to_table(code)), "");
}

TEST(KernelCode, IsThatOfTheArchitectureThatIsAskedFor) {
  const RunView view = coded_view("coda");
  CodeQuestion question = code_question(view, launch_of(view, "gate_up"), CodeLevel::cuda);
  EXPECT_TRUE(question.hopper);
  question.hopper = false;
  const KernelCode code = kernel_code(question);
  EXPECT_EQ(code.title, "gate_up of coda, for sm_80");
  EXPECT_THAT(line_with(code, "gemm_sm80<").program, ElementsAre(1));
  EXPECT_FALSE(code_question(coded_view("coda", "a100-sxm-80gb"), 0, CodeLevel::cuda).hopper);
}

TEST(KernelCode, OfALibraryIsSaidToBeOurs) {
  const RunView view = coded_view("eager");
  const KernelCode code =
      kernel_code(code_question(view, launch_of(view, "gate_up"), CodeLevel::cuda));
  EXPECT_THAT(code.note, HasSubstr("from a library"));
  EXPECT_FALSE(code.lines.empty());
}

// Every kernel of every policy has its text, or says why not.
TEST(KernelCode, OfEveryKernelIsThereOrSaysWhyNot) {
  for (const char* policy : {"eager", "per-operator", "torch-compile", "coda", "whole-block"}) {
    const RunView view = coded_view(policy);
    if (!view.ok()) continue;
    for (std::size_t i = 0; i < view.result->kernels.size(); ++i) {
      CodeQuestion question = code_question(view, i, CodeLevel::cuda);
      for (const bool hopper : {true, false}) {
        question.hopper = hopper;
        const KernelCode code = kernel_code(question);
        EXPECT_NE(code.lines.empty(), code.problem.empty())
            << policy << " " << view.result->kernels[i].estimate.name;
      }
    }
  }
}

TEST(KernelCode, WithoutADisassemblerSaysWhichToolsAreMissing) {
  const Variable home("CUDA_HOME", "/nowhere"), path("PATH", "/nowhere"),
      older("CUDA_PATH", "/nowhere");
  if (std::filesystem::exists("/usr/local/cuda/bin/nvdisasm") ||
      std::filesystem::exists("/usr/local/cuda/bin/cuobjdump"))
    GTEST_SKIP() << "a disassembler is where no variable is needed to find it";
  const RunView view = coded_view("coda");
  const KernelCode code = kernel_code(code_question(view, 1, CodeLevel::sass));
  EXPECT_THAT(code.lines, IsEmpty());
  EXPECT_THAT(code.problem, HasSubstr("nvdisasm"));
  EXPECT_THAT(code.problem, HasSubstr("cuobjdump"));
  EXPECT_THAT(code.problem, HasSubstr("CUDA toolkit"));
}

bool has_compiler() {
  try {
    return cuda::Compiler().makes(cuda::SmTarget::sm_90a);
  } catch (const MissingError&) {
    return false;
  }
}

TEST(KernelCode, OfPtxComesFromLinesOfTheProgram) {
  if (!has_compiler()) GTEST_SKIP() << "no NVRTC";
  const RunView view = coded_view("torch-compile");
  const KernelCode code =
      kernel_code(code_question(view, launch_of(view, "swiglu"), CodeLevel::ptx));
  ASSERT_EQ(code.problem, "");
  EXPECT_THAT(code.note, HasSubstr("registers"));
  EXPECT_THAT(line_with(code, ".entry").program, IsEmpty());
  // What computes the exponential is the line that asks for it, and what stores the one that
  // stores.
  EXPECT_THAT(line_with(code, "ex2.approx").program, Contains(program_line(code, "silu")));
  EXPECT_THAT(line_with(code, "st.global").program, Contains(program_line(code, "store act")));
}

TEST(KernelCode, OfSassIsReadFromTheDisassembler) {
  if (!has_compiler()) GTEST_SKIP() << "no NVRTC";
  // A stand-in that prints what nvdisasm would, for the line of the source that stores.
  const RunView view = coded_view("torch-compile");
  const std::size_t swiglu = launch_of(view, "swiglu");
  const KernelCode source = kernel_code(code_question(view, swiglu, CodeLevel::cuda));
  int line = 0;
  while (source.lines[static_cast<std::size_t>(line)].text.find("store_tile(p.out0") ==
         std::string::npos)
    ++line;
  const RunResult& result = *view.result;
  const std::string file =
      cuda::kernel_sources(*result.plan, result.plan->kernels[*result.kernels[swiglu].plan_kernel],
                           result.block->gpu, cuda::SmTarget::sm_90a)
          .front()
          .name;
  const TemporaryFolder folder("fuseline-test");
  const std::string script = folder.path() / "stand-in.sh";
  std::ofstream(script) << "test -s \"$1\" || exit 1\ncat <<'END'\n"
                           "\t.section\t.text.swiglu\n"
                           "\t//## File \"stream.cuh\", line 7 inlined at \""
                        << file << "\", line " << line + 1
                        << "\n        /*0080*/                   STG.E.128 [R2], R4 ;\n"
                           "\t//## File \"stream.cuh\", line 9\n"
                           "        /*0090*/                   EXIT ;\nEND\n";
  const Variable own("FUSELINE_DISASSEMBLER", "sh " + script);
  const KernelCode code = kernel_code(code_question(view, swiglu, CodeLevel::sass));
  ASSERT_EQ(code.problem, "");
  EXPECT_THAT(line_with(code, "STG.E.128").program, Contains(program_line(code, "store act")));
  EXPECT_THAT(line_with(code, "EXIT").program, IsEmpty());
}

TEST(KernelCode, OfADisassemblerThatFailsSaysWhatItSaid) {
  if (!has_compiler()) GTEST_SKIP() << "no NVRTC";
  const Variable own("FUSELINE_DISASSEMBLER", "echo 'unknown machine' >&2; false");
  const RunView view = coded_view("torch-compile");
  const KernelCode code =
      kernel_code(code_question(view, launch_of(view, "swiglu"), CodeLevel::sass));
  EXPECT_THAT(code.problem, HasSubstr("unknown machine"));
}

// A compiler's process that crashes is a sentence in the view, and the window goes on.
TEST(KernelCode, OfACompilerThatEndsWithoutAnAnswerSaysHow) {
  const RunView view = coded_view("coda");
  const TemporaryFolder folder("fuseline-test");
  const std::string script = folder.path() / "crashes.sh";
  std::ofstream(script) << "#!/bin/sh\nkill -SEGV $$\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const CodeQuestion question = code_question(view, launch_of(view, "gate_up"), CodeLevel::ptx);
  EXPECT_THAT(kernel_code(question, {}, compiles_with(script)).problem, HasSubstr("signal 11"));
  EXPECT_THAT(kernel_code(question, {}, compiles_with(folder.path() / "nothing")).problem,
              HasSubstr("cannot be started"));
}

// What nobody waits for any more is ended: the stand-in would sleep for longer than any test may.
TEST(KernelCode, EndsACompilationThatIsNotWantedAnyMore) {
  const RunView view = coded_view("coda");
  const TemporaryFolder folder("fuseline-test");
  const std::string script = folder.path() / "sleeps.sh";
  std::ofstream(script) << "#!/bin/sh\nexec sleep 3600\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  std::stop_source stop;
  stop.request_stop();
  const cuda::Source source{"nothing.cu", ""};
  EXPECT_FALSE(compiles_with(script)(source, cuda::SmTarget::sm_90a, stop.get_token()).has_value());
}

}  // namespace
}  // namespace fuseline::gui
