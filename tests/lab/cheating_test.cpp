// Ways to points without the work that a lab asks for, each tried. What a function can do to the
// checker is in student_code_test.cpp.
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/check.h"
#include "lab/student_code.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Without <memory>, which would be most of what the compiler reads.
constexpr const char* kIncludes =
    "#include <cstdint>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n"
    "#include <cstring>\n#include <new>\n#include <vector>\n"
    "#include <fcntl.h>\n#include <signal.h>\n#include <sys/stat.h>\n#include <sys/wait.h>\n"
    "#include <unistd.h>\n#include \"fuseline_lab.h\"\n"
    "using fuseline_lab::Source;\nusing fuseline_lab::Target;\n";

// Task 3.9 as judged; InputErrors as the diagnosis.
TaskResult judged_source(const std::string& text) {
  const auto folder = test::new_folder();
  test::write_file(folder / "stub.cpp", text);
  const Lab lab = make_lab(3, test::somebody());
  try {
    return judge_function(std::get<FunctionKey>(lab.tasks.back().key), folder);
  } catch (const InputError& error) {
    TaskResult result;
    result.verdict = Verdict::unjudged;
    result.diagnosis = error.what();
    return result;
  }
}

// The right function with `before` it and `first` at its beginning.
TaskResult judged(const std::string& before, const std::string& first) {
  std::string text = test::right_function(3, test::somebody());
  const std::string head = "float eps) {\n";
  const std::size_t at = text.find(head);
  EXPECT_NE(at, std::string::npos);
  text.insert(at + head.size(), first + "\n");
  return judged_source(kIncludes + before + "\n" + text);
}

TEST(SlowCheating, TheRightFunctionIsRightHere) {
  const TaskResult r = judged("", "std::printf(\"%g %s\\n\", 1.5, \"printing is free\");");
  EXPECT_EQ(r.verdict, Verdict::right) << r.diagnosis;
}

TEST(SlowCheating, TheChecksOwnNamesAreOutOfReach) {
  for (const char* name : {"values", "read_case", "stop"}) {
    const TaskResult r =
        judged(std::string("namespace fuseline_lab { const float* ") + name + "(const char*); }",
               std::string("if (fuseline_lab::") + name + "(\"x\") == nullptr) return;");
    EXPECT_EQ(r.verdict, Verdict::unjudged);
    EXPECT_THAT(r.diagnosis, HasSubstr("undefined reference"));
  }
  EXPECT_THAT(judged("#include \"harness.cpp\"", "").diagnosis, HasSubstr("does not compile"));
  EXPECT_THAT(judged("#include \"../check-sources/harness.cpp\"", "").diagnosis,
              HasSubstr("does not compile"));
}

// What a program would write to the checker by itself, as lab/harness/protocol.h has it.
constexpr const char* kRequest =
    "struct Request { std::uint32_t what, matrix; std::int64_t row, col; float value;"
    " std::uint32_t unused; };\n"
    "static void ask(const Request& r) { if (write(3, &r, sizeof r) < 0) std::abort(); }\n";

TEST(SlowCheating, NobodySaysThatItIsDoneButTheCheck) {
  const TaskResult r = judged(kRequest, "ask({5, 0, 0, 0, 0, 0});");
  EXPECT_EQ(r.verdict, Verdict::wrong);
  EXPECT_THAT(r.diagnosis, HasSubstr("said itself that it was done"));
}

TEST(SlowCheating, LoadsAreCountedHoweverTheyAreAskedFor) {
  const TaskResult r = judged(kRequest,
                              "for (std::int64_t i = 0; i < x.rows(); ++i)\n"
                              "  for (std::int64_t j = 0; j < x.cols(); ++j) {\n"
                              "    float v; ask({2, 0, i, j, 0, 0});\n"
                              "    if (read(3, &v, 4) != 4) return;\n  }");
  EXPECT_EQ(r.verdict, Verdict::wrong);
  EXPECT_THAT(r.diagnosis, HasSubstr("'x' is loaded 2 times as often as needed"));
}

TEST(SlowCheating, NonsenseOnTheChannelIsTold) {
  for (const char* request : {"{9, 0, 0, 0, 0, 0}", "{2, 77, 0, 0, 0, 0}", "{4, 0, 0, 0, 0, 0}"}) {
    EXPECT_THAT(judged(kRequest, std::string("ask(") + request + ");").diagnosis,
                HasSubstr("in place of the check"));
  }
  EXPECT_THAT(judged("", "Target(0).store(0, 0, 1);").diagnosis, HasSubstr("which is a source"));
  EXPECT_THAT(judged("", "(void)Source(3).load(0, 0);").diagnosis, HasSubstr("which is a target"));
  // It asks and asks and never reads.
  EXPECT_EQ(judged(kRequest, "while (true) ask({2, 0, 0, 0, 0, 0});").verdict, Verdict::wrong);
}

TEST(SlowCheating, AChildCannotLoadForItsParent) {
  EXPECT_THAT(judged("", "if (fork() == 0) _exit(0);").diagnosis, HasSubstr("fork"));
#if defined(__x86_64__)
  const TaskResult r =
      judged("",
             "long result; asm volatile(\"syscall\" : \"=a\"(result) : \"a\"(57L) :"
             " \"rcx\", \"r11\", \"memory\");\n"
             "std::printf(\"%ld\", result); std::exit(0);");
  EXPECT_EQ(r.printed, "-1");
#endif
}

TEST(SlowCheating, NoFileNoFifoNoPipeNoSignal) {
  const TaskResult r =
      judged("static int before_main = open(\"/proc/self/mem\", O_RDONLY);",
             "int ends[2];\n"
             "std::printf(\"%d %d %d %d %d %d\", before_main, open(\"/proc/self/mem\", O_RDWR),\n"
             "  mkfifo(\"result\", 0600), symlink(\"/dev/zero\", \"result\"), pipe(ends),\n"
             "  kill(getppid(), SIGKILL)); std::exit(0);");
  EXPECT_EQ(r.printed, "-1 -1 -1 -1 -1 -1");
}

// Holding more than the chip: every place that a few lines reach.
TEST(SlowCheating, WhatIsHeldOnChipIsSeenEverywhere) {
  const struct {
    const char* before;
    const char* first;
  } ways[] = {
      {"static char big[1 << 20];", "big[x.rows()] = 1; if (big[7] != 0) return;"},
      {"static thread_local char big[1 << 20];", "big[x.rows()] = 1; if (big[7] != 0) return;"},
      {"template <int n> struct Big { static inline char data[n]; };",
       "Big<1 << 20>::data[x.rows()] = 1;"},
      {"static std::vector<float> big(1 << 18);", "big[0] = eps;"},
      {"", "static volatile float big[4096] = {1}; big[x.rows()] = eps;"},
      {"", "volatile float big[16384]; for (auto& b : big) b = eps;"},
      {"",
       "float* big = static_cast<float*>(std::malloc(1 << 20)); std::memset(big, 1, 1 << 20);"
       " if (big[9] == eps) return;"},
      {"", "void* big = std::calloc(1024, 1024); if (big == nullptr) return;"},
      {"", "void* big = std::realloc(std::malloc(1), 1 << 20); if (big == nullptr) return;"},
      {"", "void* big = std::aligned_alloc(4096, 1 << 20); if (big == nullptr) return;"},
      {"struct alignas(64) Line { float f[16]; };",
       "std::vector<Line> big(4096); big[3].f[0] = eps;"},
      {"", "float* big = new (std::nothrow) float[1 << 18]; if (big == nullptr) return;"},
  };
  for (const auto& way : ways) {
    SCOPED_TRACE(std::string(way.before) + " " + way.first);
    const TaskResult r = judged(way.before, way.first);
    EXPECT_EQ(r.verdict, Verdict::wrong);
    EXPECT_THAT(r.diagnosis,
                AllOf(HasSubstr("the function holds"), HasSubstr("one row is enough")));
  }
}

TEST(SlowCheating, WaysAroundTheCountingAreRefusedByName) {
  EXPECT_THAT(judged("extern \"C\" void* __real_malloc(std::size_t);",
                     "if (__real_malloc(1 << 20) == nullptr) return;")
                  .diagnosis,
              HasSubstr("__real_malloc"));
  EXPECT_THAT(judged("#include <sys/mman.h>",
                     "if (mmap(nullptr, 1 << 20, 3, 34, -1, 0) == nullptr) return;")
                  .diagnosis,
              HasSubstr("get around the counting"));
  EXPECT_THAT(judged("void* operator new(std::size_t n) { return std::malloc(n); }", "").diagnosis,
              HasSubstr("multiple definition"));
}

TEST(SlowCheating, NothingOfTheSystemIsReplaced) {
  // The check's own messages go through write().
  EXPECT_THAT(
      judged("extern \"C\" ssize_t write(int, const void*, size_t n) { return n; }", "").diagnosis,
      HasSubstr("'write': is defined"));
  EXPECT_THAT(judged("extern \"C\" { void* early() { return nullptr; }\n"
                     "int other() __attribute__((ifunc(\"early\"))); }",
                     "")
                  .diagnosis,
              HasSubstr("is defined"));
  EXPECT_THAT(judged("static void* early() { return nullptr; }\n"
                     "static void other() __attribute__((ifunc(\"_ZL5earlyv\"), used));",
                     "")
                  .diagnosis,
              HasSubstr("runs before the check"));
  EXPECT_THAT(judged("static void early() {}\n__attribute__((section(\".preinit_array\"), used))"
                     " static void (*const first)() = early;",
                     "")
                  .diagnosis,
              HasSubstr("runs before the check"));
}

TEST(SlowCheating, WritingAroundABlockDoesNotChangeWhatIsCounted) {
  const TaskResult r = judged("",
                              "auto* big = new volatile std::size_t[64];\n"
                              "for (int i = 2; i <= 6; ++i) std::printf(\"%zu \", big[-i]);\n"
                              "big[-2] = 0; std::vector<float> held(1 << 16); held[1] = eps;\n"
                              "if (held[2] != 0) return;");
  EXPECT_EQ(r.verdict, Verdict::wrong);
}

TEST(SlowCheating, ManySmallBlocksAreCountedExactly) {
  // In an order that moves entries about; all are given back, so the function stays right.
  const TaskResult r = judged("",
                              "std::vector<void*> kept(20, nullptr);\n"
                              "for (int i = 0; i < 20000; ++i) {\n"
                              "  void*& slot = kept[static_cast<std::size_t>(i * 7 % 20)];\n"
                              "  std::free(slot); slot = std::malloc(1);\n"
                              "}\n"
                              "for (void* p : kept) std::free(p);");
  EXPECT_EQ(r.verdict, Verdict::right) << r.diagnosis;
}

// Two checks may draw sizes whose sums are near each other, four hardly.
TEST(SlowCheating, TheChecksVariablesLieElsewhereEachTime) {
  std::set<std::string> distances;
  for (int check = 0; check < 4; ++check) {
    const TaskResult r =
        judged("static char mine; static void here() {}",
               "std::printf(\"%td\", &mine - reinterpret_cast<char*>(&here)); std::exit(0);");
    EXPECT_FALSE(r.printed.empty()) << r.diagnosis;
    distances.insert(r.printed);
  }
  EXPECT_GT(distances.size(), 1U);
}

TEST(SlowCheating, EndingTheProgramIsTheStudentsDoing) {
  for (const int status : {0, 1, 84, 85, 88, 255}) {
    const TaskResult r = judged("", "_exit(" + std::to_string(status) + ");");
    EXPECT_EQ(r.verdict, Verdict::wrong);
    EXPECT_THAT(r.diagnosis, HasSubstr("it ended the program before its results could be read"));
  }
}

TEST(SlowCheating, TextsThatAreNoUtf8AreMadePrintable) {
  const TaskResult printed =
      judged("", "std::printf(\"\\xff\\xc3(\\xed\\xa0\\x80\"); std::exit(0);");
  EXPECT_EQ(printed.printed, "\\xff\\xc3(\\xed\\xa0\\x80");
  const TaskResult thrown =
      judged("#include <stdexcept>", "throw std::runtime_error(\"\\xfe\\x1b[31m\");");
  EXPECT_THAT(thrown.diagnosis, HasSubstr("an exception left the function: \\xfe\\x1b[31m"));
  EXPECT_THAT(judged_source("int \xff\xfe = 1;\n").diagnosis, HasSubstr("does not compile"));
}

}  // namespace
}  // namespace fuseline::lab
