// Traces in the window: what the command line says of them, kept as a measurement.
#include "gui/model/trace_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "gui/model/choices.h"
#include "sim/measured/measurement.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kTrace = FUSELINE_SOURCE_DIR "/docs/torch-trace.json";

// The block that the shipped trace is of.
Setup traced_setup() {
  Setup setup = test::small_setup();
  setup.workload = {.phase = Phase::decode, .batch = 1, .seq = 1, .context = 2048};
  return setup;
}

using Traced = std::shared_ptr<const TracedBlock>;

// Imported once: it predicts the block under every policy.
const Traced& shipped_trace() {
  static const Traced traced = import_trace({kTrace, traced_setup()});
  return traced;
}

TEST(TraceImport, IsWhatTheCommandLineSays) {
  const Traced& traced = shipped_trace();
  const CliRun run = cli({"import", "trace", kTrace, "--model", "tinyllama", "--gpu", "h200",
                          "--phase", "decode", "--context", "2048", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json said = json::parse(run.out);
  EXPECT_EQ(traced->trace.policy, said.at("policy").get<std::string>());
  EXPECT_EQ(traced->trace.repetitions, said.at("repetitions").get<std::size_t>());
  EXPECT_NEAR(to_us(traced->trace.matched()), said.at("matched_us").get<double>(), 1e-6);
  const TraceChart chart = trace_chart(*traced, traced_setup());
  EXPECT_THAT(chart.title, HasSubstr("torch-compile matches best"));
  EXPECT_EQ(chart.rows.size(), traced->plan.estimate.kernels.size());
  EXPECT_THAT(chart.judged, HasSubstr("predicted "));
  for (const TraceRow& row : chart.rows) EXPECT_EQ(row.measured.has_value(), row.launches > 0);
}

TEST(TraceImport, ANamedPolicyIsTheOneThatIsMatched) {
  const auto traced = import_trace({kTrace, traced_setup(), "eager"});
  EXPECT_EQ(traced->plan.policy, "eager");
  EXPECT_FALSE(traced->chosen);
  // A plan of more kernels than were launched: some are not in the trace.
  const TraceChart chart = trace_chart(*traced, traced_setup());
  EXPECT_TRUE(std::ranges::any_of(chart.rows, [](const TraceRow& r) { return !r.measured; }));
}

// What a person says is what the sums, the rest and the kept measurement follow.
TEST(TraceImport, ALaunchIsMatchedByHand) {
  const Traced& traced = shipped_trace();
  const TraceChart before = trace_chart(*traced, traced_setup());
  const auto first = std::ranges::find_if(
      before.launches, [](const TraceLaunch& l) { return l.kernel.has_value(); });
  ASSERT_NE(first, before.launches.end());
  const auto launch = static_cast<std::size_t>(first - before.launches.begin());
  const std::size_t from = *first->kernel, to = (from + 1) % before.rows.size();
  const TraceChart moved = trace_chart(*match_by_hand(*traced, {launch}, to), traced_setup());
  EXPECT_EQ(moved.launches[launch].kernel, to);
  EXPECT_EQ(moved.launches[launch].by, "hand");
  EXPECT_EQ(moved.rows[to].launches, before.rows[to].launches + 1);
  EXPECT_EQ(moved.rows[from].launches, before.rows[from].launches - 1);
  // Medians of sums lie between the sums of the least and of the most.
  ASSERT_TRUE(moved.rows[to].measured.has_value());
  EXPECT_GT(moved.rows[to].measured->median, first->time);
  EXPECT_THAT(moved.notes, ::testing::Contains(HasSubstr("1 launch was matched by hand")));

  const TraceChart gone = trace_chart(*match_by_hand(*traced, {launch}, {}), traced_setup());
  EXPECT_EQ(gone.rows[from].launches, before.rows[from].launches - 1);
  const auto named = [&](const TraceChart& chart) {
    std::size_t count = 0;
    for (const TraceRest& r : chart.rest)
      if (r.name == first->name) count += r.launches;
    return count;
  };
  EXPECT_EQ(named(gone), named(before) + 1);
  // Back again, all is as it was.
  const auto back = match_by_hand(*match_by_hand(*traced, {launch}, {}), {launch}, from);
  const TraceChart again = trace_chart(*back, traced_setup());
  EXPECT_EQ(again.rows[from].measured->median, before.rows[from].measured->median);
  EXPECT_EQ(again.rest.size(), before.rest.size());
  EXPECT_EQ(to_us(back->trace.matched()), to_us(traced->trace.matched()));
}

TEST(TraceImport, TablesCompareLikeWithLike) {
  for (const Table& table : to_tables(trace_chart(*shipped_trace(), traced_setup())))
    EXPECT_EQ(unlike_in(table), "") << table.name;
}

// Nothing is said of an error where there is nothing to compare.
void expect_no_error_in(const TraceChart& chart) {
  EXPECT_THAT(chart.title, ::testing::Not(HasSubstr("matches best")));
  EXPECT_THAT(chart.judged, ::testing::Not(HasSubstr("%")));
  const Table kernels = to_tables(chart).front();
  const auto error = std::ranges::find(kernels.columns, "error") - kernels.columns.begin();
  for (const auto& row : kernels.rows)
    EXPECT_TRUE(std::holds_alternative<std::monostate>(row[static_cast<std::size_t>(error)]));
}

TEST(TraceImport, ATraceThatIsFasterThanAnyImplementationIsOfAnotherBlock) {
  gui::Setup other = test::small_setup();
  other.model = "llama2-7b";
  other.workload = {.phase = Phase::forward, .batch = 1, .seq = 2048, .context = 0};
  const auto traced = import_trace({kTrace, other});
  ASSERT_LT(traced->measured_time(), traced->plan.estimate.limits.time);
  const TraceChart chart = trace_chart(*traced, other);
  EXPECT_THAT(chart.doubt, HasSubstr("cannot be of this block"));
  expect_no_error_in(chart);
  EXPECT_THAT(traced->measurements().meta.notes, ::testing::Contains(chart.doubt));
  const CliRun run = cli({"import", "trace", kTrace, "--model", "llama2-7b", "--gpu", "h200",
                          "--phase", "forward", "--seq", "2048"});
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("matches best")));
  EXPECT_THAT(run.err, HasSubstr("cannot be of this block"));
}

TEST(TraceImport, ATraceOfTheBlockIsNotDoubtedAndOneTwiceAsSlowIs) {
  const Traced& traced = shipped_trace();
  EXPECT_EQ(traced->doubt(), "");
  TracedBlock slow = *traced;
  const double times = traced->plan.estimate.time / traced->measured_time();
  slow.trace.busy.median = traced->measured_time() * (times * 1.99);
  EXPECT_EQ(slow.doubt(), "");
  slow.trace.busy.median = traced->measured_time() * (times * 2.01);
  const TraceChart chart = trace_chart(slow, traced_setup());
  EXPECT_THAT(chart.doubt, HasSubstr("hardly of this block"));
  EXPECT_THAT(chart.doubt, HasSubstr("2.0 times slower"));
  expect_no_error_in(chart);
}

TEST(TraceImport, NamesAnotherGpu) {
  gui::Setup other = traced_setup();
  other.gpu = "h100-sxm";
  const TraceChart chart = trace_chart(*import_trace({kTrace, other}), other);
  ASSERT_FALSE(chart.notes.empty());
  EXPECT_THAT(chart.notes.back(), HasSubstr("recorded on NVIDIA H200"));
}

TEST(TraceImport, KeptItIsAMeasurementOfTheSession) {
  const TemporaryFolder folder("fuseline-test");
  const Traced& traced = shipped_trace();
  const auto kept = keep_trace(*traced, folder.path() / "measured");
  EXPECT_EQ(kept.filename(), "tinyllama-decode-torch-compile-traced");
  EXPECT_NE(keep_trace(*traced, folder.path() / "measured"), kept);
  const std::vector<gui::Run> runs =
      measured_runs(load_measurements(kept.string()), traced_setup());
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].policy, "torch-compile");
  Document d = test::small_document({"torch-compile"});
  d.setup = traced_setup();
  const RunId id = d.runs.add(runs[0]);
  const Results results = test::results_of(d);
  const RunView* view = results.find(id);
  ASSERT_TRUE(view->ok()) << view->result->problem->text;
  EXPECT_EQ(view->result->totals.time, traced->trace.busy.median);
}

TEST(TraceImport, IsToldByItsBeginning) {
  const TemporaryFolder folder("fuseline-test");
  EXPECT_EQ(kind_of_file(kTrace), FileKind::trace);
  EXPECT_EQ(kind_of_file(FUSELINE_SOURCE_DIR "/docs/nsight-compute.csv"), FileKind::trace);
  std::ofstream(folder.path() / "config.json") << "{\"hidden_size\": 3}";
  EXPECT_THROW(kind_of_file(folder.path() / "config.json"), InputError);  // of a model, and wrong
}

TEST(TraceImport, RefusesWhatIsNone) {
  EXPECT_THROW(import_trace({FUSELINE_SOURCE_DIR "/docs/gui.md", traced_setup()}), InputError);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(import_trace({kTrace, traced_setup()}, stop.get_token()), Cancelled);
}

}  // namespace
}  // namespace fuseline::gui
