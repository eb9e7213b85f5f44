// What a student's function can do to the checker, and what the checker says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/check.h"
#include "lab/student_code.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Task 3.9 with this body of add_rms_norm.
TaskResult judged(const std::string& body) {
  const auto folder = test::new_folder();
  test::write_file(folder / "stub.cpp",
                   "#include <cstdint>\n#include <cstdio>\n#include <cstdlib>\n#include <vector>\n"
                   "#include \"fuseline_lab.h\"\n"
                   "using fuseline_lab::Source;\nusing fuseline_lab::Target;\n"
                   "void add_rms_norm(const Source& x, const Source& branch, const Source& weight,"
                   " const Target& sum, const Target& normed, float eps) {\n"
                   "(void)x, (void)branch, (void)weight, (void)sum, (void)normed, (void)eps;\n" +
                       body + "\n}\n");
  const Lab lab = make_lab(3, test::somebody());
  return judge_function(std::get<FunctionKey>(lab.tasks.back().key), folder);
}

TEST(SlowStudentCode, AnEndlessLoopIsStoppedAndTold) {
  const TaskResult r = judged("volatile bool on = true; while (on) {}");
  EXPECT_EQ(r.verdict, Verdict::wrong);
  EXPECT_THAT(r.diagnosis, HasSubstr("longer than 10 s"));
}

TEST(SlowStudentCode, AMemoryBombIsStoppedAndTold) {
  const TaskResult r = judged(
      "std::vector<std::vector<char>> held;\n"
      "while (true) held.emplace_back(1 << 20, 'x');");
  EXPECT_THAT(r.diagnosis, HasSubstr("more than 512 MiB"));
}

TEST(SlowStudentCode, AMemoryBombWithMallocIsStoppedAndTold) {
  const TaskResult r = judged(
      "while (true) { char* p = static_cast<char*>(std::malloc(1 << 20));\n"
      "for (int i = 0; i < (1 << 20); i += 64) *static_cast<volatile char*>(p + i) = 1; }");
  EXPECT_THAT(r.diagnosis, HasSubstr("more than 512 MiB"));
}

TEST(SlowStudentCode, AnIndexOutsideAMatrixIsNamed) {
  EXPECT_THAT(judged("x.load(0, x.cols());").diagnosis,
              HasSubstr("load outside the matrix: row 0, column 96 of x [5, 96]"));
  EXPECT_THAT(judged("sum.store(-1, 0, 1);").diagnosis,
              HasSubstr("store outside the matrix: row -1"));
}

TEST(SlowStudentCode, ACrashIsNamed) {
  EXPECT_THAT(judged("*reinterpret_cast<volatile int*>(8) = 1;").diagnosis, HasSubstr("SIGSEGV"));
  EXPECT_THAT(judged("std::abort();").diagnosis, HasSubstr("SIGABRT"));
}

TEST(SlowStudentCode, LeavingEarlyIsNoSuccess) {
  EXPECT_THAT(judged("std::exit(0);").diagnosis, HasSubstr("ended the program"));
  EXPECT_THAT(judged("throw 7;").diagnosis, Not(HasSubstr("agree")));
}

TEST(SlowStudentCode, TheInputsCannotBeReadUncountedNorTheResultWritten) {
  const TaskResult r = judged(
      "std::FILE* inputs = std::fopen(\"case\", \"rb\");\n"
      "std::printf(\"%s\", inputs == nullptr ? \"no file\" : \"a file\");\n"
      "std::FILE* out = std::fopen(\"result\", \"wb\");\n"
      "if (out != nullptr) std::fputs(\"token 0\\non_chip 0\\n\", out), std::fclose(out);\n"
      "std::exit(0);");
  EXPECT_EQ(r.printed, "no file");
  EXPECT_THAT(r.diagnosis, HasSubstr("before its results could be read"));
}

TEST(SlowStudentCode, AFloodOfOutputIsStopped) {
  EXPECT_THAT(judged("while (true) std::puts(\"hello\");").diagnosis, HasSubstr("printed more"));
}

TEST(SlowStudentCode, WhatAWrongFunctionPrintsIsShownWithoutControlCharacters) {
  const TaskResult r = judged("std::printf(\"scale %d\\n\\033[31m\", 7);");
  EXPECT_EQ(r.printed, "scale 7\n\\x1b[31m");
}

TEST(SlowStudentCode, ZerosAndEqualValuesFail) {
  const std::string loop =
      "for (std::int64_t i = 0; i < x.rows(); ++i) for (std::int64_t j = 0; j < x.cols(); ++j) ";
  for (const char* value : {"0.0f", "1.0f"}) {
    const TaskResult r =
        judged(loop + "{ sum.store(i, j, " + value + "); normed.store(i, j, " + value + "); }");
    EXPECT_EQ(r.verdict, Verdict::wrong);
    EXPECT_THAT(r.diagnosis, HasSubstr("differs from the fp64 reference"));
  }
}

TEST(SlowStudentCode, AStoreTooManyIsTold) {
  std::string body = test::right_function(3, test::somebody());
  const std::size_t at = body.find("sum.store(i, j, value);");
  ASSERT_NE(at, std::string::npos);
  body.insert(at, "sum.store(i, j, 0.0F);\n");
  const auto folder = test::new_folder();
  test::write_file(folder / "stub.cpp", body);
  const Lab lab = make_lab(3, test::somebody());
  const TaskResult r = judge_function(std::get<FunctionKey>(lab.tasks.back().key), folder);
  EXPECT_THAT(r.diagnosis, HasSubstr("'sum' is stored 2 times over"));
}

std::string compile_error(const std::string& text) {
  const auto folder = test::new_folder();
  test::write_file(folder / "stub.cpp", text);
  try {
    const ScratchFolder scratch;
    compile_student_code(folder / "stub.cpp", "lab/harness/lab_03.cpp", scratch);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SlowStudentCode, CompilerMessagesAreShownAndTrimmed) {
  const std::string error = compile_error("void f() { int x = \"text\"; }\n");
  EXPECT_THAT(error, HasSubstr("does not compile"));
  EXPECT_THAT(error, HasSubstr("stub.cpp:1:"));
  std::string many;
  for (int i = 0; i < 50; ++i) many += "int a" + std::to_string(i) + " = nothing;\n";
  EXPECT_THAT(compile_error(many), HasSubstr("more lines)"));
  EXPECT_LT(compile_error(many).size(), 4000U);
  EXPECT_THAT(compile_error("int unrelated;\n"), HasSubstr("add_rms_norm"));
}

TEST(StudentCode, AMissingFileIsAnInputError) {
  const ScratchFolder scratch;
  EXPECT_THROW(
      compile_student_code(test::new_folder() / "stub.cpp", "lab/harness/lab_03.cpp", scratch),
      InputError);
}

TEST(StudentCode, AMissingCompilerIsTold) {
  const char* before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  setenv("CXX", "no-such-compiler-7", 1);
  EXPECT_THROW(judged(""), MissingError);
  if (before == nullptr) {
    unsetenv("CXX");
  } else {
    setenv("CXX", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace fuseline::lab
