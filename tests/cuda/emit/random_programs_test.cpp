// Kernels of random legal programs: each becomes source or is refused by what is missing, and a
// sample of them becomes machine code.
#include <gtest/gtest.h>

#include <string>

#include "cuda/emit/plan_source.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "sim/programs/tile_check.h"
#include "tests/cuda/emit/compile_support.h"
#include "tests/support/random_program.h"

namespace fuseline::cuda {
namespace {

// Sources of the legal programs of a file; `missing`: kernels that we do not have.
std::vector<Source> sources_of(std::uint64_t seed, const Gpu& gpu, int& missing) {
  const std::string text = fuseline::test::RandomPrograms(seed).next();
  const ProgramFile file = read_program_text(text, "random.fuse");
  std::vector<Source> all;
  if (!check_programs(file).empty() || !check_tiles(file, gpu).empty()) return all;
  const Plan plan = whole_plan(file);
  for (const Kernel& kernel : plan.kernels) try {
      for (Source& s : kernel_sources(plan, kernel, gpu, target_of(gpu)))
        all.push_back(std::move(s));
    } catch (const MissingError&) {
      ++missing;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "seed " << seed << ": " << e.what() << "\n" << text;
    }
  return all;
}

class RandomProgramSources : public test::CompileTest {
 protected:
  // Files from `first` on, until so many have kernels.
  void expect_compile(const char* gpu_name, std::uint64_t first, int wanted) {
    const Gpu gpu = load_gpu(gpu_name);
    if (!makes(target_of(gpu))) GTEST_SKIP() << "the toolkit does not make code for " << gpu_name;
    int missing = 0;
    for (std::uint64_t seed = first; wanted > 0; ++seed) {
      const std::vector<Source> sources = sources_of(seed, gpu, missing);
      if (sources.empty()) continue;
      --wanted;
      for (const Source& source : sources) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const test::Passed passed(*compiler_, target_of(gpu), source, "code");
        if (passed.known()) continue;
        try {
          const bool made = !compiler_->compile(source, target_of(gpu)).ptx.empty();
          EXPECT_TRUE(made);
          if (made) passed.remember();
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what() << "\n" << source.text;
        }
      }
    }
  }
};

TEST(RandomProgramText, BecomesSourceOrNamesWhatIsMissing) {
  for (const char* name : {"h200", "a100-sxm-80gb"}) {
    const Gpu gpu = load_gpu(name);
    int missing = 0, made = 0;
    for (std::uint64_t seed = 0; seed < 1000; ++seed)
      made += static_cast<int>(sources_of(seed, gpu, missing).size());
    EXPECT_GT(made, 400);
    EXPECT_LT(missing, made / 3);
  }
}

TEST_F(RandomProgramSources, CompileForHopper) { expect_compile("h200", 300'000, 5); }
TEST_F(RandomProgramSources, CompileForAmpere) { expect_compile("a100-sxm-80gb", 300'000, 5); }

using SlowRandomProgramSources = RandomProgramSources;
TEST_F(SlowRandomProgramSources, CompileForHopper) { expect_compile("h200", 310'000, 40); }
TEST_F(SlowRandomProgramSources, CompileForAmpere) { expect_compile("a100-sxm-80gb", 310'000, 40); }

}  // namespace
}  // namespace fuseline::cuda
