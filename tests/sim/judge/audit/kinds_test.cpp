// Figures beyond one factor: everywhere, of the source's own cases, of memory with and without
// fusion, of what binds a block, of operators and of bandwidths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/activation_formats/stored_activation.h"
#include "sim/judge/audit/audit.h"
#include "sim/judge/audit/predictions.h"
#include "sim/judge/audit/report.h"
#include "tests/sim/judge/audit/claim_support.h"

namespace fuseline::audit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Audited audited(const std::string& text) {
  return audit_claims({claim_from(text)}, {}).claims.front();
}

std::string kind_refusal(const std::string& text) {
  try {
    claim_from(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string text_of(const std::string& kind, const std::string& more) {
  return "id = \"c\"\nstatement = \"s\"\nkind = \"" + kind + "\"\n" + more;
}

// A latency of TinyLlama's decode on an H200.
std::string reduction(const std::string& figure) {
  return text_of("latency-reduction", "") + source_text() + "[figure]\n" + figure +
         "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = \"decode\"\n"
         "context = [256, 512]\nbaseline = \"unfused\"\n";
}

TEST(Everywhere, ACaseOfTheSourcesOwnRefutesIt) {
  const std::string rows =
      "everywhere = true\n[[figure.rows]]\nwhat = \"its best\"\nreduction = { value = 42, unit = "
      "\"%\" }\n[[figure.rows]]\nwhat = \"its worst\"\nreduction = { value = 0.5, unit = \"%\" }\n";
  const std::string figure = "reduction = { value = 1, unit = \"%\" }\nat_least = true\n";
  const Audited a = audited(reduction(figure + rows));
  EXPECT_EQ(a.verdict.judgement, Judgement::refuted);
  EXPECT_THAT(a.verdict.reason, HasSubstr("its worst"));
  // Of a figure for some cases a row says nothing.
  std::string some = rows;
  some.erase(0, some.find('\n') + 1);
  EXPECT_NE(audited(reduction(figure + some)).verdict.judgement, Judgement::refuted);
}

TEST(Everywhere, OneSettingThatTheLimitsForbidIsEnough) {
  const std::string figure = "reduction = { value = 99, unit = \"%\" }\nat_least = true\n";
  EXPECT_EQ(audited(reduction(figure + "everywhere = true\n")).verdict.judgement,
            Judgement::contradicts);
}

TEST(AtLeast, MoreSupportsItToo) {
  const Audited a =
      audited(reduction("reduction = { value = 0.1, unit = \"%\" }\nat_least = true\n"));
  EXPECT_EQ(a.verdict.judgement, Judgement::plausible) << a.verdict.reason;
  EXPECT_EQ(figure_text(a.claim), "at least 0 %");
  EXPECT_THAT(kind_refusal(reduction(
                  "reduction = { least = 1, most = 2, unit = \"%\" }\nat_least = true\n")),
              HasSubstr("at_least"));
  EXPECT_THAT(kind_refusal(reduction("reduction = { value = 1, unit = \"%\" }\nup_to = true\n"
                                     "everywhere = true\n")),
              HasSubstr("up_to"));
}

std::string memory(const std::string& more) {
  return text_of("fits-in-memory", "") + source_text() +
         "[setting]\nmodel = \"llama2-70b\"\ngpu = \"rtx4090\"\nphase = \"decode\"\n"
         "[try]\ncontext = 512\nweight_bits = [2, 4, 16]\n" +
         more;
}

TEST(FitsByFusion, IsRefutedWhereFusionDecidesNothing) {
  // With two bits it fits under any policy, with more under none.
  const Audited a = audited(memory("baseline = \"eager\"\n"));
  EXPECT_EQ(a.verdict.judgement, Judgement::refuted);
  EXPECT_THAT(a.verdict.reason, HasSubstr("in 1 the model fits with and without it, in 2 it"));
  // Without a baseline the question is whether it fits.
  EXPECT_EQ(audited(memory("")).verdict.judgement, Judgement::only_if);
}

TEST(FitsByFusion, HoldsWhereTheActivationsDecide) {
  // Textbook execution of TinyLlama writes all scores of a layer: more than 24 GB at 16,384 tokens.
  const Audited a =
      audited(text_of("fits-in-memory", "") + source_text() +
              "[setting]\nmodel = \"tinyllama\"\ngpu = \"rtx4090\"\nphase = \"forward\"\n"
              "[try]\nseq = 16384\nbaseline = \"unfused\"\npolicy = \"flash-attention\"\n");
  EXPECT_EQ(a.verdict.judgement, Judgement::plausible) << a.verdict.reason;
}

// By hand: 13.5 GB of weights and 17.2 GB of keys and values in 16 bits, of 25.8; 8.6 GB in 8.
TEST(FitsInMemory, MayDependOnTheNumberFormatOfTheCache) {
  const Audited a =
      audited(text_of("fits-in-memory", "") + source_text() +
              "[setting]\nmodel = \"llama2-7b\"\ngpu = \"rtx4090\"\nphase = \"decode\"\n"
              "[try]\nbatch = 16\ncontext = 2048\nkv = [\"own\", \"fp8\", \"int8\"]\n");
  EXPECT_EQ(a.verdict.judgement, Judgement::only_if) << a.verdict.reason;
  EXPECT_THAT(a.verdict.conditions, ElementsAre("kv fp8 or int8"));
}

// Products of codes by codes take half the time. Prefill does not wait for weights, so codes of
// these alone change nothing: 0.0151 USD, and 0.0098 with a library's products. Our own kernels for
// codes are slower than products of numbers.
TEST(Cost, MayDependOnTheNumberFormatOfActivations) {
  const Audited a = audited(
      text_of("cost-per-million-tokens", "") + source_text() +
      "[figure]\ncost_per_million_tokens = { value = 0.012, unit = \"USD\" }\n"
      "[setting]\nmodel = \"llama2-7b\"\ngpu = \"h200\"\nphase = \"forward\"\n"
      "[try]\nseq = 2048\nprice_per_hour = 3\npolicy = \"torch-compile\"\nweights = [\"fp8\"]\n"
      "activations = [\"own\", \"fp8\"]\n");
  EXPECT_EQ(a.verdict.judgement, Judgement::only_if) << a.verdict.reason;
  EXPECT_THAT(a.verdict.conditions, ElementsAre("activations fp8"));
}

// No time is below what the fastest products of the workload need.
TEST(Predictions, KnowTheRateOfCodes) {
  Predictions predictions;
  predictions.want_gpu("h200");
  Workload work;
  const FlopsPerSecond numbers = predictions.tensor_ceiling("h200", work);
  work.formats.activations = parse_stored_activation("fp8", "", "");
  EXPECT_NEAR(predictions.tensor_ceiling("h200", work) / numbers, 2, 0.001);
}

TEST(ComputeBound, DecodeOfOneSequenceNeverIs) {
  const std::string text = text_of("memory-to-compute-bound", "") + source_text() +
                           "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = \"decode\"\n"
                           "[try]\ncontext = 512\nbaseline = \"unfused\"\n";
  const Audited a = audited(text);
  EXPECT_EQ(a.verdict.judgement, Judgement::contradicts);
  EXPECT_THAT(a.verdict.reason, HasSubstr("least bytes through HBM take longer than all FLOPs"));
  EXPECT_LT(boldest_limit(a), 0.05);  // about one FLOP a byte, of 200
}

TEST(ComputeBound, AForwardPassThatWritesItsScoresIsTurned) {
  const Audited a = audited(text_of("memory-to-compute-bound", "") + source_text() +
                            "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = "
                            "\"forward\"\nbaseline = \"unfused\"\n[try]\nseq = 4096\n");
  EXPECT_EQ(a.verdict.judgement, Judgement::plausible) << a.verdict.reason;
}

std::string coverage(const std::string& part, const std::string& policy) {
  return text_of("share-in-gemm-kernels", "part = \"" + part + "\"\n") + source_text() +
         "[figure]\nshare = { value = 90, unit = \"%\" }\nat_least = true\n"
         "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = \"forward\"\nseq = 128\n"
         "policy = \"" +
         policy + "\"\n";
}

TEST(Coverage, CodaHoldsTheRestOfTheBlockAndNotAttention) {
  const Audited rest = audited(coverage("others", "coda"));
  EXPECT_EQ(rest.verdict.judgement, Judgement::plausible) << rest.verdict.reason;
  const Audited attention = audited(coverage("attention", "coda"));
  EXPECT_EQ(attention.verdict.judgement, Judgement::refuted);
  EXPECT_EQ(predicted_range(attention).most, 0);
  // Where each operator is a kernel of its own, none runs beside a GEMM.
  EXPECT_EQ(predicted_range(audited(coverage("others", "unfused"))).most, 0);
}

TEST(Coverage, NeedsItsPart) {
  std::string text = coverage("others", "coda");
  EXPECT_THAT(
      kind_refusal(text.erase(text.find("part"), text.find("[source]") - text.find("part"))),
      HasSubstr("part"));
  EXPECT_THAT(kind_refusal(memory("").insert(0, "part = \"others\"\n")), HasSubstr("part"));
}

TEST(BandwidthRatio, ComparesTheLevelsOfTheGpu) {
  const auto ratio = [](const std::string& levels) {
    return audited(text_of("bandwidth-ratio", "") + source_text() +
                   "[figure]\nfactor = { value = 100, unit = \"x\" }\nat_least = true\n"
                   "[setting]\ngpu = \"h100-sxm\"\nlevel = " +
                   levels + "\n");
  };
  // 132 SMs x 128 B x 1.98 GHz are 33.5 TB/s, of 3.35; 66.9 TFLOP/s x 6 B are 401.
  const Audited smem = ratio("\"smem\"");
  EXPECT_EQ(smem.verdict.judgement, Judgement::contradicts);
  EXPECT_NEAR(predicted_range(smem).most, 9.99, 0.01);
  EXPECT_THAT(smem.verdict.reason, HasSubstr("33454 GB/s are 10.0 times the 3350 GB/s of HBM"));
  const Audited both = ratio("[\"smem\", \"registers\"]");
  EXPECT_EQ(both.verdict.judgement, Judgement::only_if);
  EXPECT_THAT(both.verdict.conditions, ElementsAre("level registers"));
  EXPECT_NEAR(predicted_range(both).most, 119.8, 0.1);
  EXPECT_THAT(both.verdict.rests_on, IsEmpty());
}

TEST(RestsOn, NamesWhatTheSourceLeavesOpenAndWasTriedOneWayOnly) {
  const std::string text = text_of("latency-reduction", "") + source_text() +
                           "[figure]\nreduction = { value = 5, unit = \"%\" }\n"
                           "[setting]\nmodel = \"tinyllama\"\n[try]\ngpu = \"h200\"\n"
                           "phase = \"decode\"\ncontext = [256, 512]\nbaseline = \"eager\"\n";
  const Audited a = audited(text);
  EXPECT_THAT(a.verdict.rests_on, Contains("phase decode (a generated token)"));
  EXPECT_THAT(a.verdict.rests_on, Contains("number format bf16"));
  EXPECT_THAT(a.verdict.rests_on, Contains("GPU h200"));
  EXPECT_THAT(rests_on_text(a.verdict), Not(HasSubstr("tinyllama")));  // the source states it
  EXPECT_THAT(rests_on_text(a.verdict), Not(HasSubstr("tokens")));     // two were tried
}

TEST(RestsOn, IsEmptyWhereTheSourceSaysItAll) {
  const std::string text =
      text_of("latency-reduction", "") + source_text() +
      "[figure]\nreduction = { value = 5, unit = \"%\" }\n"
      "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = \"decode\"\nbatch = 1\n"
      "context = 256\ndtype = \"bf16\"\nbaseline = \"eager\"\npolicy = \"coda\"\n";
  EXPECT_THAT(audited(text).verdict.rests_on, IsEmpty());
}

// A prompt's token is cheap, a generated one is not: the reason says how each fares.
TEST(RestsOn, SaysHowEachPhaseFares) {
  const Audited a =
      audited(text_of("cost-per-million-tokens", "") + source_text() +
              "[figure]\ncost_per_million_tokens = { value = 0.05, unit = \"USD\" }\n"
              "[setting]\nmodel = \"tinyllama\"\ngpu = \"h200\"\n[try]\n"
              "phase = [\"forward\", \"decode\"]\nbatch = [1, 64]\nseq = 512\ncontext = 512\n"
              "price_per_hour = [1, 8]\n");
  EXPECT_EQ(a.verdict.judgement, Judgement::only_if);
  EXPECT_THAT(verdict_text(a.verdict) + a.verdict.reason, HasSubstr("forward"));
  EXPECT_THAT(a.verdict.rests_on, Contains("number format bf16"));
}

}  // namespace
}  // namespace fuseline::audit
