// Numbers of rows that are stored in one byte: kernels that gather by them become machine code.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "cuda/emit/kernel_source.h"
#include "cuda/emit/plan_source.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "tests/cuda/emit/compile_support.h"

namespace fuseline::cuda {
namespace {

class SlowByteIds : public test::CompileTest {};

TEST_F(SlowByteIds, OfGatheredRowsCompile) {
  for (const char* format : {"int8", "e4m3"}) {
    const std::string text = fmt::format(
        "fuse 1\n\nsize M = 31\nsize V = 5\ninput ids[M, 1], {}\ninput table[V, 64]\n"
        "output y[M, 64]\n\nprogram take\n  for each tile of [M, 64]\n"
        "  v = gather(table[V, 64], ids[M, 1])\n  store y[M, 64] = v\n",
        format);
    const ProgramFile file = read_program_text(text, "take.fuse");
    ASSERT_TRUE(file.readable()) << text;
    const Plan plan = whole_plan(file);
    for (const char* name : {"h200", "a100-sxm-80gb"}) {
      const Gpu gpu = load_gpu(name);
      const SmTarget target = target_of(gpu);
      if (!makes(target)) continue;
      for (const Source& source : kernel_sources(plan, plan.kernels.front(), gpu, target))
        expect_compiles(source, source.name, target, {});
    }
  }
}

}  // namespace
}  // namespace fuseline::cuda
