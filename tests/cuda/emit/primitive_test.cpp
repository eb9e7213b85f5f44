// A primitive from outside is part of both kinds of generated kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/emit/epilogue_source.h"
#include "cuda/emit/stream_source.h"
#include "tests/extension/clip.h"

namespace fuseline::cuda {
namespace {

using ::testing::HasSubstr;

class OutsidePrimitive : public testing::Test {
 protected:
  Operand tensor(const char* name, std::int64_t rows, std::int64_t cols) {
    return graph.whole(graph.add_tensor({.name = name, .rows = rows, .cols = cols}));
  }
  Program gemm(std::vector<Primitive> body) {
    return {.name = "k",
            .mainloop = GemmMainloop{.a = x, .b = w, .M = 256, .N = 512, .K = 128},
            .body = std::move(body)};
  }
  Graph graph;
  Operand x = tensor("x", 256, 128);
  Operand w = tensor("w", 512, 128);
  Operand y = tensor("y", 256, 512);
  Operand limits = tensor("limits", 256, 1);
};

TEST_F(OutsidePrimitive, IsACallInAnEpilogue) {
  const EpilogueSource source =
      epilogue_source(graph, gemm({extension::Clip{1, 0, limits}, StoreTile{1, y}}), "E");
  EXPECT_THAT(source.text, HasSubstr("const auto v1 = clip(p.limits, slab, y);"));
  EXPECT_THAT(source.text, HasSubstr("store_tile(p.y, slab, v1);"));
}

TEST_F(OutsidePrimitive, IsACallInAStream) {
  const Program program{.name = "k",
                        .mainloop = StreamMainloop{256, 512},
                        .body = {LoadTile{1, y}, extension::Clip{2, 1, limits}, StoreTile{2, y}}};
  const StreamKernelSource kernel = stream_kernel_source(graph, program, "A test.");
  EXPECT_EQ(kernel.function, "tiles_clip");
  EXPECT_THAT(kernel.source.text, HasSubstr("clip(p.row0, place, in0);"));
}

TEST_F(OutsidePrimitive, WhatNoEpilogueHasIsNamed) {
  const Program program = gemm({HeadSum{1, 0, 4, 64}, StoreTile{1, y}});
  try {
    (void)epilogue_source(graph, program, "E");
    FAIL() << "nothing was thrown";
  } catch (const MissingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("k: head_sum in the epilogue of a product"));
  }
}

}  // namespace
}  // namespace fuseline::cuda
