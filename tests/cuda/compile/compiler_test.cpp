#include "cuda/compile/compiler.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cuda/compile/no_compiler.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

// Tests that compile need a toolkit; they are skipped, with its reason, where there is none.
class NvrtcCompiler : public testing::Test {
 protected:
  void SetUp() override {
    try {
      compiler.emplace();
    } catch (const MissingError& error) {
      end_without_compiler(error);
    }
  }
  std::optional<Compiler> compiler;
};

TEST_F(NvrtcCompiler, MakesMachineCodeAndReportsResources) {
  const Compiled compiled = compiler->compile(
      {"scale.cu",
       "#include \"element.cuh\"\n"
       "extern \"C\" __global__ void scale(fuseline::gpu::bf16* x) {\n"
       "  __shared__ float s[32];\n"
       "  s[threadIdx.x] = fuseline::gpu::to_float(x[threadIdx.x]);\n"
       "  __syncthreads();\n"
       "  x[threadIdx.x] = fuseline::gpu::from_float<fuseline::gpu::bf16>(2 * s[31 - "
       "threadIdx.x]);\n"
       "}\n"},
      SmTarget::sm_80);
  EXPECT_GT(compiled.cubin.size(), 500U);
  EXPECT_THAT(compiled.ptx, HasSubstr(".target sm_80"));
  EXPECT_GT(compiled.use.registers, 0);
  EXPECT_EQ(compiled.use.shared_bytes, 128);
  EXPECT_EQ(compiled.use.spill_bytes, 0);
}

TEST_F(NvrtcCompiler, MakesAmpereKernelsInTheCodeOfNewerGpus) {
  const Source source{"nothing.cu", "extern \"C\" __global__ void nothing() {}\n"};
  const SmCode newer(SmTarget::sm_80, 86);
  ASSERT_TRUE(compiler->makes(newer));
  EXPECT_THAT(compiler->compile(source, newer).ptx, HasSubstr(".target sm_86"));
  const SmCode unknown(SmTarget::sm_80, 999);
  EXPECT_FALSE(compiler->makes(unknown));
  try {
    (void)compiler->compile(source, unknown);
    FAIL() << "compiled";
  } catch (const MissingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sm_999"));
  }
}

TEST_F(NvrtcCompiler, ReportsSpills) {
  const Compiled compiled = compiler->compile(
      {"spill.cu",
       "extern \"C\" __global__ void __launch_bounds__(1024, 2) spill(float* x) {\n"
       "  float v[64];\n"
       "  for (int i = 0; i < 64; ++i) v[i] = x[i * 1024 + threadIdx.x];\n"
       "  __syncthreads();\n"
       "  for (int i = 0; i < 64; ++i) x[i * 1024 + threadIdx.x] = v[63 - i] * v[i];\n"
       "}\n"},
      SmTarget::sm_80);
  EXPECT_GT(compiled.use.spill_bytes, 0);
}

TEST_F(NvrtcCompiler, NamesFileAndLineOfAnError) {
  try {
    (void)compiler->compile({"broken.cu", "#include \"element.cuh\"\nint f() { return y; }\n"},
                            SmTarget::sm_80);
    FAIL() << "compiled";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("broken.cu(2)"));
    EXPECT_THAT(error.what(), HasSubstr("\"y\""));
  }
}

// A toolkit that was installed by halves is missing, and no bug of ours.
TEST_F(NvrtcCompiler, SaysWhichHeaderOfTheToolkitCannotBeRead) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "half_a_toolkit";
  fs::create_directories(root / "include");
  std::ofstream(root / "include" / "cuda_bf16.h") << "#include \"part_that_is_missing.h\"\n";
  const char* before = std::getenv("CUDA_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("CUDA_HOME", root.c_str(), 1);
  const Compiler half;
  try {
    (void)half.compile({"scale.cu", "#include \"element.cuh\"\n"}, SmTarget::sm_80);
    ADD_FAILURE() << "compiled";
  } catch (const MissingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("part_that_is_missing.h"));
    EXPECT_THAT(error.what(), HasSubstr((root / "include").string()));
  }
  if (kept.empty())
    unsetenv("CUDA_HOME");
  else
    setenv("CUDA_HOME", kept.c_str(), 1);
  fs::remove_all(root);
}

}  // namespace
}  // namespace fuseline::cuda
