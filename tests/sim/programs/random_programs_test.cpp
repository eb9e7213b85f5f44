// A random legal program never fails later.
#include "tests/sim/programs/random_run.h"

namespace fuseline {
namespace {

// `first`: the number of the first file.
void run(std::uint64_t first, std::uint64_t files, const test::RandomProgramOptions& options,
         const char* gpu_name) {
  const Gpu gpu = load_gpu(gpu_name);
  test::RandomRun run(gpu, options);
  int failed = 0;
  for (std::uint64_t i = first; i < first + files && failed < 5; ++i) failed += run.file(i) ? 0 : 1;
  const test::RandomRunCounts& c = run.counts();
  testing::Test::RecordProperty("files", static_cast<int>(c.files));
  testing::Test::RecordProperty("legal", static_cast<int>(c.legal));
  testing::Test::RecordProperty("programs", static_cast<int>(c.programs));
  testing::Test::RecordProperty("lines", static_cast<int>(c.lines));
  for (const auto& [rule, count] : c.refused)
    testing::Test::RecordProperty("refused by " + rule, static_cast<int>(count));
  // The run says something: much is legal, several lines long, compared, and by a tolerance that
  // wrong results do not meet; what is refused is refused by many rules.
  EXPECT_GT(c.legal, c.files * 3 / 10);
  EXPECT_GT(c.lines, 2 * c.programs);
  EXPECT_GT(c.tensors, c.legal * 9 / 10);
  EXPECT_LT(c.vague, c.tensors / 5);
  EXPECT_LT(c.without_numbers, c.legal / 20);
  EXPECT_GE(c.refused.size(), files < 1000 ? 5U : 8U);
}

TEST(RandomPrograms, NeverFailLaterWhereTheyAreLegal) { run(0, 5000, {}, "h200"); }

TEST(RandomPrograms, NeverFailLaterOnAnOlderGpu) {
  run(200'000, 500, {.largest = 60}, "a100-sxm-80gb");
}

TEST(LongRandomPrograms, NeverFailLaterWhereTheyAreLegal) { run(0, 100'000, {}, "h200"); }

TEST(RandomPrograms, AreTheSameForTheSameSeed) {
  EXPECT_EQ(test::RandomPrograms(3).next(), test::RandomPrograms(3).next());
  EXPECT_NE(test::RandomPrograms(3).next(), test::RandomPrograms(4).next());
}

}  // namespace
}  // namespace fuseline
