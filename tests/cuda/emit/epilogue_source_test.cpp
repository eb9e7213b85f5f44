// The text of epilogues: one primitive, one call; parameters in order. Needs no toolkit.
#include "cuda/emit/epilogue_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/names.h"
#include "model/config/model_files.h"
#include "model/policy.h"

namespace fuseline::cuda {
namespace {

using testing::AllOf;
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

// Q, K and V are parts of one result: what belongs to a part stands in its scope, the tables' loads
// begin ahead in the same scopes, the row scale is loaded once before the mainloop.
TEST(EpilogueSource, PartsOfTheQkvProjectionHaveScopesOfTheirOwn) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::train), "qkv");
  const std::size_t early = source.text.find("Early early("), run = source.text.find("void run(");
  ASSERT_LT(early, run);
  ASSERT_NE(run, std::string::npos);
  const std::string ahead = source.text.substr(early, run - early), body = source.text.substr(run);
  EXPECT_EQ(count(body, "if (meets(part"), 3U);
  EXPECT_EQ(count(body, "= table_of<bf16>(early."), 4U);
  EXPECT_EQ(count(body, "([&] { return load_table_vectors<false, 128>(p."), 4U) << "or late";
  EXPECT_EQ(count(ahead, "if (meets(part"), 2U);
  EXPECT_EQ(count(ahead, ".loaded = load_table_vectors<false, 128>(p."), 4U);
  EXPECT_THAT(source.text, HasSubstr("    Vectors cos, sin;\n"));
  EXPECT_EQ(count(source.text, "TableIn<bf16>"), 2U);
  EXPECT_EQ(count(source.text, "= load_rows("), 1U);
  EXPECT_EQ(count(source.text, "mul(y, state.r)"), 1U);
  EXPECT_EQ(count(source.text, "rope("), 2U);
}

// Rows of 20 columns do not all begin where vectors of 8 do.
TEST(EpilogueSource, TablesOfOddRowsAreLoadedTwoColumnsALane) {
  ModelConfig model = load_model("llama2-7b");
  model.d = 20;
  const Plan plan = make_plan("coda", model, tokens(Phase::forward, 256));
  EXPECT_THAT(epilogue_of(plan, "qkv").text, HasSubstr("= load_table<false, 20>("));
}

// Slabs share their code where it is long, and sums along rows go with them from slab to slab.
TEST(EpilogueSource, LongEpiloguesComeInALoop) {
  const std::string loop = "static constexpr bool rolls = true;";
  const std::string carries = "static constexpr bool carries = true;";
  const auto text = [](const std::string& model, Phase phase, const std::string& kernel) {
    return epilogue_of(coda(model, phase), kernel).text;
  };
  EXPECT_THAT(text("bert-large", Phase::forward, "up"), HasSubstr(loop));  // erf
  EXPECT_THAT(text("gpt2-large", Phase::forward, "up"), HasSubstr(loop));  // tanh
  EXPECT_THAT(text("llama2-7b", Phase::forward, "qkv"),
              AllOf(HasSubstr(loop), Not(HasSubstr(carries))));            // RoPE's tables
  EXPECT_THAT(text("qwen3-8b", Phase::forward, "qkv"), HasSubstr(loop));   // and norms of heads
  EXPECT_THAT(text("gpt2-large", Phase::train, "d_up"), HasSubstr(loop));  // sums down columns
  EXPECT_THAT(text("gpt2-large", Phase::forward, "qkv"), Not(HasSubstr(loop)));     // a bias alone
  EXPECT_THAT(text("llama2-7b", Phase::forward, "gate_up"), Not(HasSubstr(loop)));  // SwiGLU
  for (const char* model : {"gpt2-large", "llama2-7b"})  // tanh; the gradient of a pair
    EXPECT_THAT(text(model, Phase::train, "d_down"),
                AllOf(HasSubstr("RowState<"), HasSubstr(loop), HasSubstr(carries)));
  const std::string sums = text("llama2-7b", Phase::forward, "oproj");
  EXPECT_THAT(sums, HasSubstr("RowState<"));
  EXPECT_THAT(sums, Not(HasSubstr(loop)));  // squares alone are short
}

// In decode the rotated keys, a part of the rotated part, go to the cache.
TEST(EpilogueSource, PartsOfPartsAreNested) {
  Workload work = tokens(Phase::decode, 1);
  work.context = 64;
  const EpilogueSource source =
      epilogue_of(make_plan("coda", load_model("tinyllama"), work), "qkv");
  EXPECT_THAT(source.text, HasSubstr("columns(slab, 0, 2304)"));
  EXPECT_THAT(source.text, HasSubstr("columns(part0, 2048, 256)"));
  EXPECT_EQ(count(source.text, ".loaded = load_table_vectors<"), 2U);
}

// A part that begins within a slab shares it with another, whose tables would take its place: it
// loads on the spot.
TEST(EpilogueSource, TablesOfPartsWithinASlabAreNotLoadedEarly) {
  ModelConfig model = load_model("llama2-7b");
  model.d = 24;
  model.H = 3;
  model.Hkv = 3;
  const EpilogueSource source =
      epilogue_of(make_plan("coda", model, tokens(Phase::train, 256)), "qkv");
  const std::size_t run = source.text.find("void run(");
  ASSERT_NE(run, std::string::npos);
  EXPECT_EQ(count(source.text, "early"), 0U);
  EXPECT_EQ(count(source.text.substr(run), "table_of<bf16>(load_table_vectors<false, 24>("), 4U);
  EXPECT_TRUE(source.needs.late_tables);
  EXPECT_TRUE(epilogue_of(coda("qwen3-8b", Phase::forward), "qkv").needs.late_tables)
      << "norms of heads bring tables too";
  EXPECT_FALSE(epilogue_of(coda("llama2-7b", Phase::train), "qkv").needs.late_tables);
}

// A register does not keep what shared memory has, where a store comes between two uses.
TEST(EpilogueSource, TilesAreReadAgainBehindStores) {
  const EpilogueSource source = epilogue_of(coda("gpt2-large", Phase::train), "d_down");
  EXPECT_THAT(source.text, HasSubstr("TileIn<bf16, 0, 2> up;"));
  EXPECT_THAT(source.text, HasSubstr("tile_loads = 1"));
  EXPECT_EQ(count(source.text, "= load_tile(p.up, slab)"), 3U);
}

TEST(EpilogueSource, AGradientTwiceAsWideLoadsTwoBoxes) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::train), "d_down");
  EXPECT_THAT(source.text, HasSubstr("TileIn<bf16, 0, 4> gu;"));
  EXPECT_THAT(source.text, HasSubstr("tile_loads = 2"));
  EXPECT_THAT(source.text, HasSubstr("swiglu_backward(gu"));
  EXPECT_EQ(source.needs.row_partial_cols, 64);
}

// Jamba's steps are D / 16 columns of a product, and their squares are summed there. Where they are
// few, the last slab of their block of 128 columns, which stores the sums, lies behind them.
TEST(EpilogueSource, SumsOfNarrowPartsAreStoredBehindThem) {
  ModelConfig model = load_model("jamba");
  model.H = 4;
  model.Hkv = 2;
  const auto condition = [&](std::int64_t width) {
    model.D = width;
    const Plan plan = make_plan("coda", model, tokens(Phase::train, 256));
    const std::string text = epilogue_of(plan, "x").text;
    const std::size_t at = text.find("if (meets(");
    return text.substr(at, text.find(" {", at) - at);
  };
  EXPECT_EQ(condition(640), "if (meets(part0, 128))");
  EXPECT_EQ(condition(2560), "if (meets(part0, 256))");
  EXPECT_EQ(condition(1920), "if (meets(part0))");  // 120 columns reach the last slab
  EXPECT_EQ(condition(4096), "if (meets(part0))");
}

TEST(EpilogueSource, SumsOverRowsWantTilesOfOneBlock) {
  const EpilogueSource source = epilogue_of(coda("llama2-7b", Phase::train), "d_gate_up");
  EXPECT_TRUE(source.needs.reduces_columns);
  EXPECT_THAT(source.text, HasSubstr("reduce_cols<Sum>(slab, p.dw_norm2_partials"));
  EXPECT_TRUE(source.needs.sums_of_any_rows);
  EXPECT_THAT(source.text, HasSubstr("scratch_bytes = 2048,"));
  EXPECT_THAT(source.text, HasSubstr("column_sums = 1;"));
}

// Heads of 128 columns: their squares are gathered from all slabs ahead of what uses the sums.
TEST(EpilogueSource, WideHeadsAreGatheredAhead) {
  const Plan plan = make_plan("coda", load_model("qwen3-8b"), tokens(Phase::forward, 2048));
  const EpilogueSource epilogue = epilogue_of(plan, "qkv");
  EXPECT_EQ(epilogue.gathered_cols, 128);
  EXPECT_THAT(epilogue.text, HasSubstr("    GroupState<SumSquares, 128> s;\n"));
  const std::size_t ahead = epilogue.text.find("void gather(");
  const std::size_t run = epilogue.text.find("void run(");
  ASSERT_NE(ahead, std::string::npos);
  ASSERT_LT(ahead, run);
  const std::string gather = epilogue.text.substr(ahead, run - ahead);
  EXPECT_THAT(gather, HasSubstr(R"(    const auto y1 = mul(y, state.r);
    const auto part1 = columns(slab, 0, 4096);
    if (meets(part1)) {
      gather_group(part1, state.s, y1);
    }
    const auto part2 = columns(slab, 4096, 1024);
    if (meets(part2)) {
      gather_group(part2, state.s1, y1);
    }
)"));
  EXPECT_THAT(gather, Not(HasSubstr("load_table")));
  EXPECT_THAT(epilogue.text.substr(run), HasSubstr("const auto s = gathered(part1, state.s);"));
}

TEST(EpilogueSource, OneRowForEachSequence) {
  Workload work = tokens(Phase::forward, 1024);
  work.batch = 2;
  const Plan plan = make_plan("coda", load_model("sd3-medium"), work);
  const EpilogueSource epilogue = epilogue_of(plan, "text_oproj");
  EXPECT_THAT(epilogue.text, HasSubstr("    SequenceIn<bf16, true> text_a;\n"));
  EXPECT_THAT(epilogue.text, HasSubstr("load_sequence<2>(p.text_a, slab)"));
  const auto gate = std::ranges::find(epilogue.fields, FieldKind::sequence_in, &Field::kind);
  ASSERT_NE(gate, epilogue.fields.end());
  EXPECT_EQ(gate->tokens, 154);
}

// New rows of a cache, one run for each sequence: a run of whole boxes goes to the copy engine.
TEST(EpilogueSource, RowsThatLieApartAreStoredWhereTheyBelong) {
  for (const std::int64_t tokens_each : {4, 64}) {
    Workload work = tokens(Phase::decode, tokens_each);
    work.batch = 3;
    work.context = 200;
    const Plan plan = make_plan("coda", load_model("llama2-7b"), work);
    const EpilogueSource epilogue = epilogue_of(plan, "qkv");
    const char* whole = tokens_each == 64 ? "true" : "false";
    for (const char* cache : {"cache_k", "cache_v"})
      EXPECT_THAT(epilogue.text, HasSubstr(fmt::format("TileOutRuns<bf16, {}> {};", whole, cache)));
  }
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
