#include "lab/object_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lab/sandbox.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

std::string object_of(const std::string& source) {
  const auto folder = test::new_folder();
  test::write_file(folder / "a.cpp", source);
  SandboxLimits limits;
  limits.memory = Bytes(std::int64_t{4} << 30);
  limits.may_start_processes = true;
  const SandboxResult r =
      run_sandboxed({"c++", "-std=c++20", "-O1", "-c", "a.cpp", "-o", "a.o"}, folder, limits);
  EXPECT_EQ(r.exit_status, 0) << r.output;
  return test::read_file(folder / "a.o");
}

TEST(ObjectFile, CountsVariablesAndNoConstants) {
  EXPECT_EQ(read_object(object_of("int f() { return 1; }")).static_storage, Bytes(0));
  EXPECT_EQ(read_object(object_of("int a[100]; int b = 7;")).static_storage, Bytes(404));
  EXPECT_EQ(read_object(object_of("thread_local char a[64];")).static_storage, Bytes(64));
  EXPECT_EQ(read_object(object_of("extern const int t[9] = {1, 2};")).static_storage, Bytes(0));
  EXPECT_EQ(read_object(object_of("struct A { virtual ~A(); }; A::~A() {}\n"
                                  "void g(); void f() { try { g(); } catch (int) {} }"))
                .static_storage,
            Bytes(0));
}

TEST(ObjectFile, NamesWhatItNeedsAndDefines) {
  const ObjectFile object = read_object(
      object_of("extern \"C\" int puts(const char*); static int h() { return puts(\"x\"); }\n"
                "int f() { return h(); }\nint variable = 3;\n"));
  EXPECT_THAT(object.needs, Contains("puts"));
  EXPECT_THAT(object.needs, Not(Contains("_Z1fv")));
  EXPECT_THAT(object.defines, ElementsAre("_Z1fv"));
  EXPECT_FALSE(object.runs_early);
  // However it is written, what stands among code can be called.
  EXPECT_THAT(
      read_object(object_of("asm(\".globl write\\n.type write, @object\\nwrite: nop\");")).defines,
      ElementsAre("write"));
}

TEST(ObjectFile, RefusesWhatIsNone) {
  const std::string whole = object_of("int a[100]; int f() { return a[3]; }");
  EXPECT_THROW(read_object(""), MissingError);
  EXPECT_THROW(read_object("int main() {}"), MissingError);
  // Cut anywhere, it is refused or read, and never more than that.
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    try {
      static_cast<void>(read_object(whole.substr(0, size)));
    } catch (const MissingError&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace fuseline::lab
