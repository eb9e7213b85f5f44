// Which planned kernel a launch of a trace was, and where a trace repeats itself.
#include "sim/traces/kernel_alignment.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/traces/repeats.h"

namespace fuseline {
namespace {

TEST(Repeats, AreFoundWhereverTheyBegin) {
  const std::vector<std::uint32_t> launches = {9, 1, 2, 2, 3, 1, 2, 2, 3, 1, 2, 2, 3, 8, 7};
  const std::vector<Repeat> found = find_repeats(launches, 100, 5);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].begin, 1U);
  EXPECT_EQ(found[0].length, 4U);
  EXPECT_EQ(found[0].covered, 12U);
  const std::vector<std::uint32_t> list = {2, 3, 1, 2};
  EXPECT_EQ(occurrences(launches, list), (std::vector<std::size_t>{3, 7}));
  EXPECT_TRUE(find_repeats(std::vector<std::uint32_t>{1, 2, 3, 4}, 100, 5).empty());
  EXPECT_TRUE(find_repeats({}, 100, 5).empty());
}

TEST(KernelAlignment, AProductThatCameLaterIsFoundByItsTime) {
  const std::vector<PlannedKernel> planned = {
      {KernelKind::gemm, {"d_weight", "gemm"}, microseconds(300)},
      {KernelKind::gemm, {"d_input", "gemm"}, microseconds(100)},
      {KernelKind::pointwise, {"add"}, microseconds(10)}};
  const std::vector<SeenLaunch> launches = {
      {"nvjet_sm90_tst_1", microseconds(104)},
      {"vectorized_elementwise_kernel<8, CUDAFunctor_add<c10::BFloat16>>", microseconds(11)},
      {"nvjet_sm90_tst_2", microseconds(290)}};
  const KernelAlignment found = align_launches(launches, planned);
  EXPECT_EQ(found.launches[0].planned, 1U);
  EXPECT_EQ(found.launches[1].planned, 2U);
  EXPECT_EQ(found.launches[1].by, MatchedBy::name);
  EXPECT_EQ(found.launches[2].planned, 0U);
  EXPECT_EQ(found.launches[2].by, MatchedBy::time);
}

TEST(KernelAlignment, NeverTakesAProductForAnythingElse) {
  const std::vector<PlannedKernel> planned = {{KernelKind::norm, {"rms_norm"}, microseconds(10)}};
  const std::vector<SeenLaunch> launches = {{"nvjet_sm90_tst_1", microseconds(10)},
                                            {"flash_fwd_kernel", microseconds(10)}};
  for (const LaunchMatch& m : align_launches(launches, planned).launches) EXPECT_FALSE(m.planned);
  EXPECT_EQ(kind_of_launch("triton_poi_fused__scaled_dot_product_cudnn_attention_view_1"),
            KernelKind::pointwise);
  EXPECT_EQ(kind_of_launch("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"),
            KernelKind::gemm);
  EXPECT_EQ(kind_of_launch("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits>"),
            KernelKind::attention);
}

}  // namespace
}  // namespace fuseline
