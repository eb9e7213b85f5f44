// Gradients of programs become kernels: a partial's gradient is one number for each row and tile,
// which an epilogue loads for all columns of a group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cuda/emit/epilogue_source.h"
#include "cuda/emit/plan_source.h"
#include "model/programs/gradient.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* kStatistics =
    "fuse 1\nsize M = 256, K = 512, N = 1024\ninput x[M,K]\nweight w[N,K]\ninput r[M,N]\n"
    "output h[M,N]\nactivation part[M,⌈N/128⌉], fp32\noutput s[M,1], fp32\n\nprogram p\n"
    "  y = x[M,K] · w[N,K]ᵀ\n  a = load r[M,N]\n  z = y + a\n  store h[M,N] = z\n"
    "  store part[M,⌈N/128⌉] = sum_squares(z)\n\nprogram finish\n  for each row of [M, ⌈N/128⌉]\n"
    "  q = load part[M,⌈N/128⌉]\n  t = row_sum(q)\n  store_rows s[M,1] = t\n";

// The same, but z is stored nowhere: its gradient needs the product again.
std::string nothing_stored() {
  std::string text = kStatistics;
  const std::string store = "  store h[M,N] = z\n";
  return text.replace(text.find(store), store.size(), "  q = tanh(z)\n  store h[M,N] = q\n");
}

Plan gradient_plan(const ProgramFile& file, Products products = Products::again) {
  const std::string text = gradient_text(program_gradient(file, {}, products).plan, "");
  const ProgramFile read = read_program_text(text, "gradient");
  EXPECT_TRUE(check_programs(read).empty()) << text;
  return whole_plan(read);
}

TEST(GradientPrograms, LoadTheGradientOfPartialsInAnEpilogue) {
  const Plan plan = gradient_plan(read_program_text(nothing_stored(), "text"));
  for (const Kernel& k : plan.kernels) {
    if (k.name != "d_p") continue;
    const EpilogueSource source = epilogue_source(plan.graph, k.phases.at(0), "Epilogue");
    EXPECT_THAT(source.text, HasSubstr("RowsIn<float> d_part;"));
    EXPECT_THAT(source.text, HasSubstr("= load_groups<2, 128>(p.d_part, slab);"));
    // r and d_h come through shared memory, the numbers of groups do not.
    EXPECT_THAT(source.text, HasSubstr("tile_loads = 2, "));
    EXPECT_EQ(source.needs.tile_loads, 2);
    EXPECT_EQ(source.needs.column_group, 128);
    return;
  }
  FAIL() << "the gradient has no program d_p";
}

class GradientProgramSources : public test::CompileTest {
 protected:
  void expect_compile(const ProgramFile& file, const char* gpu_name) {
    const Gpu gpu = load_gpu(gpu_name);
    if (!makes(target_of(gpu))) GTEST_SKIP() << "the toolkit does not make code for " << gpu_name;
    for (const Products products : {Products::again, Products::kept}) {
      const Plan plan = gradient_plan(file, products);
      for (const Kernel& kernel : plan.kernels)
        for (const Source& source : kernel_sources(plan, kernel, gpu, target_of(gpu))) {
          const Compiled compiled = compiler_->compile(source, target_of(gpu));
          EXPECT_FALSE(compiled.ptx.empty());
          EXPECT_EQ(compiled.use.spill_bytes, 0) << source.text;
        }
    }
  }
  // What is stored anyway, what is kept or made again, and sums across tiles beside sums of
  // columns.
  void expect_all_compile(const char* gpu_name) {
    expect_compile(read_program_text(kStatistics, "text"), gpu_name);
    expect_compile(read_program_text(nothing_stored(), "text"), gpu_name);
    expect_compile(read_program_file(FUSELINE_SOURCE_DIR "/scenarios/programs/norm-router.fuse"),
                   gpu_name);
  }
};

TEST_F(GradientProgramSources, CompileForHopper) { expect_all_compile("h200"); }
TEST_F(GradientProgramSources, CompileForAmpere) { expect_all_compile("a100-sxm-80gb"); }

}  // namespace
}  // namespace fuseline::cuda
