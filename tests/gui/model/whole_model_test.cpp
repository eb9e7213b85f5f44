#include "gui/model/whole_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gui/model/serving.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

WholeModelRequest small_request(const std::vector<std::string>& policies = {"coda"}) {
  const Document d = test::small_document(policies);
  WholeModelRequest request{d.setup, d.runs.all(), MoneyPerHour(2.0)};
  return request;
}

json predicted(const std::vector<std::string>& sizes) {
  std::vector<std::string> args{"predict", "--model",  "tinyllama", "--gpu",    "h200", "--policy",
                                "coda",    "--layers", "all",       "--format", "json"};
  args.insert(args.end(), sizes.begin(), sizes.end());
  const CliRun run = cli(args);
  EXPECT_EQ(run.status, 0) << run.err;
  return json::parse(run.out).at("predictions").at(0);
}

TEST(WholeModel, PrefillAndDecodeAreTheCommandLines) {
  const WholeModel chart = whole_model_chart(small_request());
  ASSERT_EQ(chart.rows.size(), 1U);
  ASSERT_EQ(chart.rows[0].steps.size(), 2U);
  const json prefill = predicted({"--phase", "forward", "--seq", "256"});
  const json decode = predicted({"--phase", "decode", "--seq", "1", "--context", "256"});
  std::size_t i = 0;
  for (const json& p : {prefill, decode}) {
    const ModelStep& step = chart.rows[0].steps[i];
    const MemoryBar& memory = chart.rows[0].memory[i++];
    ASSERT_EQ(step.problem, "");
    EXPECT_NEAR(to_us(step.time), p.at("total").at("time_us").get<double>(), 1e-6);
    EXPECT_NEAR(step.tokens_per_second, p.at("total").at("tokens_per_s").get<double>(), 1e-6);
    EXPECT_EQ(memory.total.value(), p.at("memory").at("need_bytes").get<std::int64_t>());
    EXPECT_EQ(memory.fits, p.at("memory").at("fits").get<bool>());
  }
}

TEST(WholeModel, PartsOfAStepAddUpToIt) {
  for (const ModelRow& row : whole_model_chart(small_request({"eager", "coda"})).rows) {
    for (const ModelStep& step : row.steps) {
      Seconds sum;
      for (const StepPart& part : step.parts) sum += part.time;
      EXPECT_NEAR(sum / step.time, 1, 1e-12);
      ASSERT_EQ(step.parts.size(), 3U);
      EXPECT_EQ(step.parts.front().label, "embedding");
      EXPECT_EQ(step.parts.back().label, "final norm, LM head");
      EXPECT_TRUE(step.cost);
    }
  }
}

TEST(WholeModel, SaysWhetherItFitsAndHowFarTheCacheMayGrow) {
  WholeModelRequest request = small_request();
  request.setup.gpu = "rtx3090";
  request.setup.workload.batch = 16;
  const MemoryBar fits = whole_model_chart(request).rows[0].memory[1];
  EXPECT_TRUE(fits.fits);
  EXPECT_THAT(fits.verdict, HasSubstr("fits: "));
  ASSERT_TRUE(fits.longest);
  // One token more than the longest context does not fit.
  request.setup = with_phase(request.setup, Phase::decode);
  for (const int more : {0, 1}) {
    WholeModelRequest at = request;
    at.setup.workload.context = *fits.longest + more;
    const WholeModel chart = whole_model_chart(at);
    ASSERT_EQ(chart.rows[0].steps[1].problem, "");
    EXPECT_EQ(chart.rows[0].memory[1].fits, more == 0) << at.setup.workload.context;
  }
  request.setup.workload.context = 256;
  request.setup.model = "llama2-70b";
  const MemoryBar large = whole_model_chart(request).rows[0].memory[0];
  EXPECT_FALSE(large.fits);
  EXPECT_GT(large.total, large.capacity);
}

TEST(WholeModel, ASetupThatIsWrongSaysSoInItsStep) {
  WholeModelRequest request = small_request();
  request.runs[0].policy = "no-such-policy";
  const WholeModel chart = whole_model_chart(request);
  EXPECT_THAT(chart.rows[0].steps[0].problem, HasSubstr("no-such-policy"));
  EXPECT_EQ(unlike_in(to_table(chart)), "");
}

TEST(WholeModel, TablesSayWhatTheyAreAbout) {
  const Table table = to_table(whole_model_chart(small_request({"eager", "coda"})));
  EXPECT_EQ(unlike_in(table), "");
  EXPECT_EQ(table.rows.size(), 12U);
  EXPECT_EQ(table.about.front().phase, "forward");
  EXPECT_EQ(table.about.back().phase, "decode");
}

ServingRequest small_map() {
  const Document d = test::small_document({"coda"});
  return {d.setup, d.runs.all()[0], {1, 64}, {512, 8192}, MoneyPerHour(2.0)};
}

TEST(ServingMap, EachCellIsTheDecodeStepOfItsBatchAndContext) {
  const ServingMap map = serving_map(small_map());
  const json p =
      predicted({"--phase", "decode", "--seq", "1", "--batch", "64", "--context", "512"});
  EXPECT_NEAR(to_us(map.at(1, 0).step), p.at("total").at("time_us").get<double>(), 1e-6);
  EXPECT_GT(map.at(1, 0).tokens_per_second, map.at(0, 0).tokens_per_second);
  EXPECT_GT(map.at(0, 1).step, map.at(0, 0).step);  // a longer cache is read
  EXPECT_GT(map.at(1, 1).memory, map.at(1, 0).memory);
  EXPECT_NEAR(map.at(0, 0).cost->value(), 2.0 / 3600 / map.at(0, 0).tokens_per_second * 1e6, 1e-9);
  EXPECT_EQ(unlike_in(to_table(map, "coda")), "");
}

TEST(ServingMap, SaysWhereNothingFits) {
  ServingRequest request = small_map();
  request.setup.gpu = "rtx3090";
  request.batches = {1, 256};
  request.contexts = {512, 131072};
  const ServingMap map = serving_map(request);
  EXPECT_TRUE(map.at(0, 0).fits);
  EXPECT_FALSE(map.at(1, 1).fits);
  EXPECT_EQ(cell_text(map.at(1, 1), ServingQuantity::memory).ends_with(" GB"), true);
}

TEST(ServingMap, RefusesTrainingAndStops) {
  ServingRequest request = small_map();
  request.setup.workload.phase = Phase::train;
  EXPECT_THROW(static_cast<void>(serving_map(request)), InputError);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(static_cast<void>(serving_map(small_map(), stop.get_token())), Cancelled);
}

}  // namespace
}  // namespace fuseline::gui
