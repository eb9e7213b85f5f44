// The text of epilogues: one primitive, one call; parameters in order. Needs no toolkit.
#include "cuda/emit/epilogue_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/emit/names.h"
#include "model/config/model_files.h"
#include "model/policy.h"

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

Workload tokens(Phase phase, std::int64_t count) {
  Workload work;
  work.phase = phase;
  work.seq = count;
  return work;
}

EpilogueSource epilogue_of(const Plan& plan, const std::string& kernel) {
  for (const Kernel& k : plan.kernels)
    if (k.name == kernel) return epilogue_source(plan.graph, k.phases.at(0), "Epilogue");
  throw InternalError("no kernel " + kernel);
}

Plan coda(const std::string& model, Phase phase) {
  return make_plan("coda", load_model(model), tokens(phase, 256));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(EpilogueSource, ResidualAndPartialsOfTheOutputProjection) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::forward), "oproj");
  ASSERT_EQ(source.fields.size(), 3U);
  EXPECT_EQ(source.fields[0].kind, FieldKind::tile_in);
  EXPECT_EQ(source.fields[1].kind, FieldKind::tile_out);
  EXPECT_EQ(source.fields[2].kind, FieldKind::partials);
  EXPECT_THAT(source.text, HasSubstr("TileIn<bf16, 0, 2> x;"));
  EXPECT_THAT(source.text, HasSubstr("add(y, "));
  EXPECT_THAT(source.text, HasSubstr("RowState<SumSquares>"));
  EXPECT_THAT(source.text, HasSubstr("tile_loads = 1, col_loads = 0, scratch_bytes = 0,"));
  EXPECT_EQ(source.needs.row_partial_cols, 128);
  EXPECT_FALSE(source.needs.reduces_columns);
}

// Q, K and V are parts of one result: what belongs to a part stands in its scope, the tables are
// loaded where they are used, the row scale once before the mainloop.
TEST(EpilogueSource, PartsOfTheQkvProjectionHaveScopesOfTheirOwn) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::train), "qkv");
  EXPECT_EQ(count(source.text, "if (meets(part"), 3U);
  EXPECT_EQ(count(source.text, "= load_table("), 4U);
  EXPECT_EQ(count(source.text, "TableIn<bf16>"), 2U);
  EXPECT_EQ(count(source.text, "= load_rows("), 1U);
  EXPECT_EQ(count(source.text, "mul(y, state.r)"), 1U);
  EXPECT_EQ(count(source.text, "rope("), 2U);
}

// In decode the rotated keys, a part of the rotated part, go to the cache.
TEST(EpilogueSource, PartsOfPartsAreNested) {
  Workload work = tokens(Phase::decode, 1);
  work.context = 64;
  const EpilogueSource source =
      epilogue_of(make_plan("coda", load_model("tinyllama"), work), "qkv");
  EXPECT_THAT(source.text, HasSubstr("columns(slab, 0, 2304)"));
  EXPECT_THAT(source.text, HasSubstr("columns(part0, 2048, 256)"));
  EXPECT_EQ(count(source.text, "= load_table("), 2U);
}

TEST(EpilogueSource, AGradientTwiceAsWideLoadsTwoBoxes) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::train), "d_down");
  EXPECT_THAT(source.text, HasSubstr("TileIn<bf16, 0, 4> gu;"));
  EXPECT_THAT(source.text, HasSubstr("tile_loads = 2"));
  EXPECT_THAT(source.text, HasSubstr("swiglu_backward(gu"));
  EXPECT_EQ(source.needs.row_partial_cols, 64);
}

TEST(EpilogueSource, SumsOverRowsWantTilesOfOneBlock) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::train), "d_gate_up");
  EXPECT_TRUE(source.needs.reduces_columns);
  EXPECT_THAT(source.text, HasSubstr("reduce_cols<Sum>(slab, p.dw_norm2_partials"));
  EXPECT_THAT(source.text, HasSubstr("scratch_bytes = 2048,"));
}

TEST(EpilogueSource, KernelsWithoutAGemmHaveNone) {
  const Plan plan = coda("llama2-7b", Phase::forward);
  EXPECT_THROW((void)epilogue_of(plan, "attention"), InternalError);
}

TEST(StructLayout, FollowsTheRulesOfC) {
  struct Mirror {
    struct alignas(64) Mapped {
      char map[128];
      void* data;
      int ld, cols;
    } out;
    void* data;
    int ld;
    Mapped in;
  };
  const StructLayout layout =
      lay_out({layout_of(FieldKind::tile_out), layout_of(FieldKind::rows_in),
               layout_of(FieldKind::tile_in)});
  EXPECT_EQ(layout.offsets[1], static_cast<std::int64_t>(offsetof(Mirror, data)));
  EXPECT_EQ(layout.offsets[2], static_cast<std::int64_t>(offsetof(Mirror, in)));
  EXPECT_EQ(layout.whole.size, static_cast<std::int64_t>(sizeof(Mirror)));
  EXPECT_EQ(lay_out({}).whole.size, 1);
}

TEST(Names, AreValidAndDifferent) {
  Names names;
  EXPECT_EQ(names.unique("h"), "h");
  EXPECT_EQ(names.unique("h"), "h_1");
  EXPECT_EQ(names.unique("and"), "and_1");
  EXPECT_EQ(names.unique("2x"), "v2x");
  EXPECT_EQ(names.unique("dw.norm-2"), "dw_norm_2");
  EXPECT_EQ(names.unique(""), "v");
}

}  // namespace
}  // namespace fuseline::cuda
