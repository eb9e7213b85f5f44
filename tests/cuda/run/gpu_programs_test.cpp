// `program measure` on a real GPU, and kernels that cheat. Skipped, with the reason, where there is
// none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure_programs.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "model/programs/unfused_programs.h"

namespace fuseline::cuda {
namespace {

constexpr const char* kTwice =
    "fuse 1\nsize M = 4096, N = 8192\ninput x[M,N]\noutput y[M,N]\n\nprogram twice\n"
    "  for each tile of [M, N]\n  x = load x[M,N]\n  z = x * 2\n  store y[M,N] = z\n";

constexpr const char* kProduct =
    "fuse 1\nsize M = 512, N = 768, K = 1024\ninput x[M,K]\nweight w[N,K]\ninput r[M,N]\n"
    "output y[M,N]\nactivation s[M,⌈N/128⌉], fp32\noutput total[M,1], fp32\n\nprogram product\n"
    "  y = x[M,K] · w[N,K]ᵀ\n  r = load r[M,N]\n  h = y + r\n  store y[M,N] = h\n"
    "  store s[M,⌈N/128⌉] = sum_squares(h)\n\nprogram finish\n  for each row of [M, ⌈N/128⌉]\n"
    "  p = load s[M,⌈N/128⌉]\n  t = row_sum(p)\n  store_rows total[M,1] = t\n";

class SlowGpuPrograms : public testing::Test {
 protected:
  void SetUp() override {
    try {
      gpu_ = known_gpu(device_here());
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
    options_.workers.threads = executor::available_threads();
    options_.replays = 5;
    options_.counters = false;
  }

  ProgramMeasurement measured(const char* text) {
    const ProgramFile file = read_program_text(text, "test.fuse");
    EXPECT_TRUE(file.readable());
    const Plan plan = whole_plan(file);
    const std::optional<Plan> unfused = unfused_programs(file);
    return measure_programs(plan, unfused ? &*unfused : nullptr, gpu_, options_);
  }

  // Lines ahead of the kernel, and at the begin of its body.
  void cheat(const std::string& globals, const std::string& begin) {
    options_.replace_source = [=](const std::string& text) {
      std::string changed = text;
      const std::size_t kernel = changed.find("extern \"C\" __global__");
      EXPECT_NE(kernel, std::string::npos);
      const std::size_t body = changed.find(") {\n", kernel);
      EXPECT_NE(body, std::string::npos);
      changed.insert(body + 4, begin + "\n");
      changed.insert(kernel, globals + "\n");
      return changed;
    };
  }

  static std::vector<std::string> rules(const ProgramMeasurement& m) {
    std::vector<std::string> all;
    for (const ClaimFault& f : m.programs.faults) all.push_back(f.rule);
    return all;
  }

  Gpu gpu_;
  ProgramMeasureOptions options_;
};

TEST_F(SlowGpuPrograms, AcceptsHonestProgramsAndTheirUnfusedPlan) {
  const ProgramMeasurement m = measured(kProduct);
  EXPECT_THAT(rules(m), testing::IsEmpty()) << m.programs.faults.front().text;
  ASSERT_TRUE(m.unfused);
  EXPECT_THAT(m.unfused->faults, testing::IsEmpty()) << m.unfused->faults.front().text;
  EXPECT_EQ(m.programs.kernels.size(), 2U);
  EXPECT_EQ(m.unfused->kernels.size(), 4U);
  EXPECT_THAT(rules(measured(kTwice)), testing::IsEmpty());
}

// Works while its results are checked, and rests while it is timed.
TEST_F(SlowGpuPrograms, FindsAKernelThatDoesNothingWhenTimed) {
  cheat("__device__ unsigned calls;",
        "  if (calls > 3) return;\n"
        "  if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(&calls, 1);");
  EXPECT_THAT(rules(measured(kTwice)), testing::Contains("no-work"));
}

// Stores everything in the warm-ups, so that all results are right behind the timing too.
TEST_F(SlowGpuPrograms, FindsARateAboveWhatTheGpuHas) {
  cheat("__device__ unsigned calls;",
        "  if (calls > 100) return;\n"
        "  if (blockIdx.x == 0 && threadIdx.x == 0) atomicAdd(&calls, 1);");
  EXPECT_THAT(rules(measured(kTwice)), testing::ElementsAre("above-ceilings"));
}

TEST_F(SlowGpuPrograms, FindsOutputsThatIgnoreTheInputs) {
  options_.replace_source = [](const std::string& text) {
    std::string changed = text;
    const std::string load = "load_tile(p.in0, place)";
    const std::size_t at = changed.find(load);
    EXPECT_NE(at, std::string::npos);
    return changed.replace(at, load.size(), "decltype(" + load + "){}");
  };
  EXPECT_THAT(rules(measured(kTwice)), testing::IsSupersetOf({"wrong", "ignores-inputs"}));
}

// Answers for the first input that it sees, and for no other one.
TEST_F(SlowGpuPrograms, FindsResultsThatAreRightForOneSeed) {
  cheat("__device__ unsigned known;",
        "  const unsigned first = *reinterpret_cast<const unsigned*>(params.in0.data);\n"
        "  if (known != 0 && known != first) return;\n"
        "  known = first;");
  EXPECT_THAT(rules(measured(kTwice)), testing::Contains("one-seed"));
}

}  // namespace
}  // namespace fuseline::cuda
