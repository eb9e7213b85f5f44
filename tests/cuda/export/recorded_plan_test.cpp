// Launches as data, from the functions that get launches ready for a GPU. Needs the toolkit;
// skipped without it.
#include "cuda/export/recorded_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/compile/compiler.h"
#include "cuda/driver/recorded_driver.h"
#include "cuda/export/exported.h"
#include "model/policy.h"
#include "model/programs/gradient.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_raster.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/program_streams.h"
#include "tests/cuda/needs.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

Plan plan_of_text(const std::string& text) {
  const ProgramFile file = read_program_text(text, "test.fuse");
  EXPECT_TRUE(file.readable());
  return whole_plan(file);
}

class RecordedPlanTest : public test::NeedsCompiler {};

constexpr const char* kSecondRow =
    "fuse 1\nsize M = 64, N = 128\ninput x[M,N]\nweight w[4,N]\noutput y[M,N]\n\nprogram scaled\n"
    "  for each tile of [M, N]\n  x = load x[M,N]\n  w = load_cols w[1:2, N]\n  z = x * w\n"
    "  store y[M,N] = z\n";

// Numbers of columns from a row that is not the tensor's first: kernels took the first one's.
TEST_F(RecordedPlanTest, AddressesPointToTheRowsThatAreMeant) {
  const Plan plan = plan_of_text(kSecondRow);
  const RecordedPlan recorded = record_plan(plan, load_gpu("h200"), 2);
  ASSERT_EQ(recorded.launches.size(), 1U);
  const RecordedLaunch& launch = recorded.launches[0];
  ASSERT_EQ(launch.addresses.size(), 3U);
  const auto addend = [&](const char* name) {
    const int id = plan.graph.find_tensor(name)->index;
    const auto found = std::ranges::find(launch.addresses, id, &AddressPlace::target);
    EXPECT_NE(found, launch.addresses.end()) << name;
    return found->addend;
  };
  EXPECT_EQ(addend("x"), 0);
  EXPECT_EQ(addend("w"), 256);
  EXPECT_EQ(addend("y"), 0);
  EXPECT_EQ(launch.shape.block[0], 128U);
  EXPECT_THAT(recorded.codes[0].ptx, testing::HasSubstr(launch.function));
  EXPECT_FALSE(recorded.codes[0].cubin.empty());
}

TEST_F(RecordedPlanTest, AddressesLeaveNoTraceInTheParameters) {
  const Plan plan = plan_of_text(kSecondRow);
  const RecordedPlan a = record_plan(plan, load_gpu("h200"), 2);
  const RecordedPlan b = record_plan(plan, load_gpu("h200"), 2);
  EXPECT_EQ(a.launches[0].parameters, b.launches[0].parameters);
  EXPECT_EQ(a.codes[0].cubin, b.codes[0].cubin);
}

// An export has no bytes of this process: what nobody writes is zero, also where the process had
// something else before.
TEST_F(RecordedPlanTest, MemoryBeginsAsZeros) {
  const Device device = recorded_device({.name = "recorded",
                                         .major = 9,
                                         .minor = 0,
                                         .multiprocessors = 132,
                                         .memory = Bytes(std::int64_t{80} << 30),
                                         .l2 = Bytes(std::int64_t{60} << 20),
                                         .shared_per_block = Bytes(227 * 1024),
                                         .driver = ""});
  constexpr std::size_t kBytes = 50'000;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::vector<std::byte>> used;
    for (int j = 0; j < 20; ++j) used.emplace_back(2 * kBytes, std::byte{0xa5});
    used.clear();
    const DeviceBuffer buffer = device.allocate(Bytes(std::int64_t{kBytes}));
    std::vector<std::byte> seen(kBytes, std::byte{1});
    buffer.download(seen);
    EXPECT_EQ(std::ranges::count(seen, std::byte{0}), static_cast<std::ptrdiff_t>(kBytes));
  }
}

// The kernel sweeps its tiles in the groups that the simulator reckons with, upright ones along M
// and turned ones along N.
TEST_F(RecordedPlanTest, ProductsAreSweptInTheGroupsOfTheSimulator) {
  const Gpu gpu = load_gpu("h200");
  std::set<bool> turned;
  for (const char* sizes : {"M = 1024, N = 28672, K = 4096", "M = 1432, N = 27648, K = 5120"}) {
    const Plan plan =
        plan_of_text(fmt::format("fuse 1\nsize {}\ninput x[M,K]\nweight w[N,K]\noutput y[M,N]\n\n"
                                 "program product\n  y = x[M,K] · w[N,K]ᵀ\n  store y[M,N] = y\n",
                                 sizes));
    const RecordedPlan recorded = record_plan(plan, gpu, 2);
    ASSERT_EQ(recorded.launches.size(), 1U);
    constexpr std::size_t kNumbers = 2 * 128;  // behind two tensor maps
    std::array<std::int32_t, 4> numbers{};     // M, N, K, group
    ASSERT_GE(recorded.launches[0].parameters.at(0).size(), kNumbers + sizeof numbers);
    std::memcpy(numbers.data(), recorded.launches[0].parameters[0].data() + kNumbers,
                sizeof numbers);
    const GemmProblem problem =
        gemm_problem_of(plan.kernels[0].phases.front(), AddressMap(plan), false);
    EXPECT_EQ(numbers[0], problem.m);
    const GemmTile tile = choose_tile(problem, gpu);
    turned.insert(tile.turned());
    const std::int64_t group = raster_group_of(problem, tile, gpu);
    EXPECT_EQ(numbers[3], group / std::max(tile.cluster_m, tile.cluster_n)) << sizes;
    EXPECT_NE(group, raster_group(false, tile, 0)) << "the usual one would show nothing";
  }
  EXPECT_EQ(turned.size(), 2U) << "both kinds of tiles";
}

// PyTorch refuses to write a product of bf16 to fp32: such a product stays a kernel of ours.
TEST_F(RecordedPlanTest, ProductsOfALibraryHaveTheTypeOfTheirOperands) {
  for (const bool wide : {false, true}) {
    Plan plan = plan_of_text(std::string("fuse 1\nsize M = 128, N = 128, K = 64\ninput x[M,K]\n"
                                         "weight w[N,K]\noutput y[M,N]") +
                             (wide ? ", fp32" : "") +
                             "\n\nprogram product\n  y = x[M,K] · w[N,K]ᵀ\n  store y[M,N] = y\n");
    plan.kernels.front().implementation = Implementation::library_gemm;
    const RecordedPlan recorded = record_plan(plan, load_gpu("a100"), 2);
    EXPECT_EQ(recorded.launches.at(0).product.has_value(), !wide);
  }
}

// Machine code of a whole block is made: some seconds.
// h = (x · w^T + r)², and the sum of each row across tiles.
constexpr const char* kSums =
    "fuse 1\nsize M = 64, K = 64, N = 256\ninput x[M,K]\nweight w[N,K]\ninput r[M,N]\n"
    "output h[M,N]\nactivation part[M,⌈N/128⌉], fp32\noutput s[M,1], fp32\n\nprogram p\n"
    "  y = x[M,K] · w[N,K]ᵀ\n  a = load r[M,N]\n  z = y + a\n  q = square(z)\n"
    "  store h[M,N] = q\n  store part[M,⌈N/128⌉] = sum(q)\n\nprogram finish\n"
    "  for each row of [M, ⌈N/128⌉]\n  b = load part[M,⌈N/128⌉]\n  t = row_sum(b)\n"
    "  e = t + 1\n  l = log(e)\n  store_rows s[M,1] = l\n";

std::vector<std::string> names_of(const Exported& e, const std::vector<int>& tensors) {
  std::vector<std::string> names;
  for (const int t : tensors) names.push_back(e.tensors[static_cast<std::size_t>(t)].name);
  return names;
}

TEST_F(RecordedPlanTest, ExportedProgramsHaveTheirGradient) {
  const ProgramFile file = read_program_text(kSums, "test.fuse");
  ProgramGradient gradient = program_gradient(file);
  gradient.plan = plan_of_text(gradient_text(gradient.plan, ""));
  const Exported e = exported_programs(whole_plan(file), &gradient, load_gpu("h200"), 2);
  EXPECT_EQ(e.no_gradient, "");
  ASSERT_EQ(e.operators.size(), 4U);
  const ExportedOperator &all = e.operators[2], &back = e.operators[3];
  EXPECT_EQ(all.gradient, "all_gradient");
  EXPECT_EQ(back.name, "all_gradient");
  EXPECT_THAT(names_of(e, all.inputs), testing::UnorderedElementsAre("x", "w", "r"));
  // Results first; the sums of the tiles are what the gradient reads.
  EXPECT_THAT(names_of(e, all.outputs), testing::ElementsAre("h", "s", "part"));
  EXPECT_THAT(names_of(e, back.inputs),
              testing::UnorderedElementsAre("x", "w", "r", "part", "d_h", "d_s"));
  EXPECT_THAT(names_of(e, back.outputs), testing::UnorderedElementsAre("d_x", "d_w", "d_r"));
  for (const auto& [d, of] : back.gradients)
    EXPECT_EQ(names_of(e, {d}).front(), "d_" + names_of(e, {of}).front());
  // Launches of the gradient stand behind those of the programs, and find their own code.
  for (const int l : back.launches) {
    const RecordedLaunch& launch = e.launches[static_cast<std::size_t>(l)];
    EXPECT_TRUE(launch.program.starts_with("d_")) << launch.program;
    EXPECT_THAT(e.codes.at(static_cast<std::size_t>(launch.code)).ptx,
                testing::HasSubstr(launch.function));
  }
}

TEST_F(RecordedPlanTest, ExportedProgramsSayWhyTheyHaveNoGradient) {
  const ProgramFile file = read_program_text(
      "fuse 1\nsize M = 64, N = 128\ninput x[M,N]\noutput y[M,N]\n\nprogram more\n"
      "  for each tile of [M, N]\n  a = load x[M,N]\n  z = a * 2\n  store y[M,N] += z\n",
      "test.fuse");
  ASSERT_TRUE(file.readable());
  const ProgramGradient none{.plan = whole_plan(file), .forward = {}, .of = {}};
  const Exported e = exported_programs(whole_plan(file), &none, load_gpu("h200"), 2);
  EXPECT_THAT(e.no_gradient, testing::HasSubstr("changes y"));
  EXPECT_EQ(e.operators.back().name, "all");
  EXPECT_EQ(e.operators.back().gradient, "");
}

class SlowExportedBlock : public RecordedPlanTest {};

TEST_F(SlowExportedBlock, TwoLayersHaveAnEntryAndAnExit) {
  ModelConfig config = test::tiny_llama();
  config.D = 256;
  config.F = 512;
  config.H = 4;
  config.Hkv = 2;
  config.d = 64;
  const Gpu gpu = load_gpu("a100");
  const Workload work{.batch = 1, .seq = 128};
  const Plan plan = make_plan("coda", config, work, plan_target(gpu));
  const Exported e = exported_block(plan, gpu, 2, 2);
  ASSERT_EQ(e.operators.size(), 1U);
  const ExportedOperator& forward = e.operators[0];
  EXPECT_EQ(forward.launches.size(), 1 + 2 * plan.kernels.size());
  EXPECT_EQ(e.launches[static_cast<std::size_t>(forward.launches[0])].program, "entry");
  const auto names = [&](const std::vector<int>& all) {
    std::set<std::string> out;
    for (const int t : all) out.insert(e.tensors[static_cast<std::size_t>(t)].name);
    return out;
  };
  const std::set<std::string> inputs = names(forward.inputs);
  for (const char* name : {"x", "cos", "w_o_0", "w_o_1", "w_down_0", "w_down_1"})
    EXPECT_TRUE(inputs.contains(name)) << name;
  EXPECT_FALSE(inputs.contains("x_stats"));  // the entry makes them
  EXPECT_TRUE(names(forward.outputs).contains("y"));
  EXPECT_TRUE(names(forward.temporaries).contains("y_0"));  // the second layer's input
  // Whatever a launch points to is a tensor or a workspace.
  for (const RecordedLaunch& l : e.launches) {
    for (const AddressPlace& a : l.addresses) {
      EXPECT_LT(a.target, static_cast<int>(e.tensors.size())) << l.function;
      EXPECT_LT(-1 - a.target, static_cast<int>(e.workspaces.size())) << l.function;
    }
  }
}

// The layers of a plan for codes leave x ∘ γ of the next layer; the first layer's γ is read by the
// entry alone.
TEST_F(SlowExportedBlock, LayersWithWeightsInCodesHaveTheirFirstNormsWeight) {
  ModelConfig config = test::tiny_llama();
  config.D = 256;
  config.F = 512;
  config.H = 4;
  config.Hkv = 2;
  config.d = 64;
  const Gpu gpu = load_gpu("a100");
  Workload work{.batch = 1, .seq = 24};
  work.formats.weights = parse_stored_weight("int4", "--weights", "bf16");
  const Exported e = exported_block(make_plan("coda", config, work, plan_target(gpu)), gpu, 2, 2);
  ASSERT_EQ(e.operators.size(), 1U);
  std::map<std::string, int> inputs;
  for (const int t : e.operators[0].inputs) ++inputs[e.tensors[static_cast<std::size_t>(t)].name];
  for (const char* name : {"w_norm1_0", "w_norm1_1", "w_norm1_next", "w_qkv_scale_0"})
    EXPECT_EQ(inputs[name], 1) << name;
  EXPECT_EQ(inputs["x_weighted"], 0);  // the entry makes it
}

}  // namespace
}  // namespace fuseline::cuda
