#include "gui/model/details.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/data_dir.h"
#include "base/error.h"
#include "gui/model/block_graph.h"
#include "gui/model/choices.h"
#include "gui/model/export.h"
#include "gui/model/kernel_table.h"
#include "gui/model/memory_chart.h"
#include "gui/model/roofline_chart.h"
#include "gui/model/run_rows.h"
#include "gui/model/session_file.h"
#include "gui/model/text.h"
#include "gui/model/timeline_chart.h"
#include "gui/model/traffic_chart.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string value(const Details& d, const std::string& name) {
  for (const DetailLine& line : d.lines) {
    if (line.name == name) return line.value;
  }
  return "(no line " + name + ")";
}

TEST(Details, AreExactForEveryKindOfThing) {
  const Results results = test::results_of(test::small_document({"per-operator", "coda"}));
  const KernelEstimate& k = results.runs[1].result->kernels[0].estimate;
  const Details kernel = details_of(results, kernel_thing(results.runs[1].run.id, 0));
  EXPECT_EQ(value(kernel, "read from HBM"), exact_bytes(k.hbm_read));
  EXPECT_EQ(value(kernel, "time set by"), name_of(k.bound));
  EXPECT_THAT(kernel.constants, Not(IsEmpty()));
  const Details tensor = details_of(results, tensor_thing("xn2"));
  EXPECT_EQ(tensor.title, "activation xn2");
  EXPECT_EQ(value(tensor, "size"), "1,048,576 bytes");
  EXPECT_THAT(value(tensor, "found in, per-operator"), HasSubstr("L2"));
  const Details op = details_of(results, op_thing("gate_up"));
  EXPECT_EQ(value(op, "kernels of coda"), "gate_up");
  const Details edge = details_of(results, edge_thing({"norm2", "gate_up"}));
  EXPECT_THAT(value(edge, "xn2, per-operator"), HasSubstr("norm2 needs a full row"));
  const Details level = details_of(results, level_thing(MemoryLevel::hbm));
  ASSERT_EQ(level.constants.size(), 3U);
  EXPECT_THAT(level.constants[0].source, Not(IsEmpty()));
  const Details run = details_of(results, run_thing(results.runs[0].run.id));
  EXPECT_GE(run.constants.size(), 21U);
}

TEST(Details, OfNothingAndOfWhatIsGoneAreEmpty) {
  const Results results = test::results_of(test::small_document({"eager"}));
  for (const Thing& thing : {Thing{}, op_thing("none"), tensor_thing("none"),
                             edge_thing({"a", "b"}), kernel_thing(RunId{9}, 0),
                             kernel_thing(results.runs[0].run.id, 999), run_thing(RunId{9})}) {
    EXPECT_EQ(details_of(results, thing).title, "");
  }
}

TEST(RunRows, CompareEachRunWithTheBaseline) {
  const Document d = default_document();
  const std::vector<RunRow> rows = run_rows(d, test::results_of(d));
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_TRUE(rows[0].is_baseline);
  EXPECT_EQ(rows[0].time_delta.relative_text, "");
  EXPECT_TRUE(rows[1].measured);
  EXPECT_THAT(rows[1].note, HasSubstr("as replays"));
  EXPECT_EQ(rows[1].time, "1530.3 µs");
  EXPECT_EQ(rows[1].time_delta.size, DeltaSize::neutral);
  EXPECT_EQ(rows[4].time_delta.size, DeltaSize::large);
  EXPECT_EQ(rows[4].time_delta.colour.role, ColourRole::better);
  EXPECT_EQ(rows[4].launches, "7");
}

TEST(RunRows, AProblemStandsWhereTheNumbersWouldBe) {
  Document d = test::small_document({"eager"});
  d.runs.add({.policy = "eager", .measurements = default_document().measurements});
  const std::vector<RunRow> rows = run_rows(d, test::results_of(d));
  EXPECT_TRUE(rows[1].has_problem);
  EXPECT_TRUE(rows[1].missing);
  EXPECT_EQ(rows[1].time, "");
  EXPECT_EQ(run_rows(d, {})[0].note, "not computed yet");
}

TEST(Choices, ListWhatIsShipped) {
  EXPECT_GE(model_choices().size(), 11U);
  EXPECT_GE(gpu_choices().size(), 12U);
  for (const Choice& c : model_choices()) EXPECT_THAT(c.tooltip, HasSubstr("layers"));
  std::size_t disabled = 0;
  for (const Choice& c : policy_choices(Phase::train)) disabled += c.enabled ? 0 : 1;
  EXPECT_GT(disabled, 0U);
  for (const Choice& c : policy_choices(Phase::forward)) EXPECT_TRUE(c.enabled);
  EXPECT_EQ(policy_choices(Phase::forward).back().value, kCustomPolicy);
}

TEST(Choices, SayWhichGpusAreFittedCheckedOrNeither) {
  std::map<std::string, std::string> tooltips;
  for (const Choice& c : gpu_choices()) tooltips[c.value] = c.tooltip;
  EXPECT_THAT(tooltips.at("h200"), HasSubstr("\nfitted: "));
  EXPECT_THAT(tooltips.at("h100-sxm"), HasSubstr("\nchecked: "));
  EXPECT_THAT(tooltips.at("h100-sxm"), HasSubstr("18 blocks of per-operator"));
  EXPECT_THAT(tooltips.at("rtx4090"), HasSubstr("\nuncalibrated: "));
}

TEST(Choices, OfferEachMeasuredExecutionOnce) {
  const Document d = default_document();
  const Measurements all = load_measurements(d.measurements);
  std::vector<std::string> executions;
  for (const gui::Run& run : measured_runs(all, d.setup)) executions.push_back(run.policy);
  EXPECT_THAT(executions, ::testing::UnorderedElementsAre("eager", "torch-compile", "composed",
                                                          "torch-compile-autotuned"));
  EXPECT_THAT(measured_runs(all, test::small_setup()), IsEmpty());
}

TEST(Choices, TellFilesByTheirContents) {
  const std::filesystem::path data = data_dir();
  EXPECT_EQ(kind_of_file(data / "llama2-7b-h200.toml"), FileKind::session);
  EXPECT_EQ(kind_of_file(data / "models" / "llama2-7b.toml"), FileKind::model);
  EXPECT_EQ(kind_of_file(data / "gpus" / "h200.toml"), FileKind::gpu);
  EXPECT_EQ(kind_of_file(data / "measurements" / "h200-pytorch"), FileKind::measurements);
  EXPECT_EQ(kind_of_file(data / "measurements" / "h200-pytorch" / "block.csv"),
            FileKind::measurements);
  const std::filesystem::path other =
      std::filesystem::path(testing::TempDir()) / "kind_of_file.toml";
  std::ofstream(other) << "something = \"else\"\n";
  EXPECT_THROW(static_cast<void>(kind_of_file(other)), InputError);
  EXPECT_THROW(static_cast<void>(kind_of_file("/not/there")), InputError);
}

TEST(MeasuredRuns, FindTheirPlannedKernels) {
  for (const char* scenario : {"llama2-7b-train-h200", "llama2-7b-h200"}) {
    Document d = load_document((data_dir() / (std::string(scenario) + ".toml")).string()).document;
    RunList measured;
    for (const gui::Run& run : d.runs.all()) {
      if (run.is_measurement()) measured.add(run);
    }
    ASSERT_FALSE(measured.all().empty()) << scenario;
    d.runs = measured;
    const bool trains = d.setup.workload.phase == Phase::train;
    for (const RunView& view : test::results_of(d).runs) {
      ASSERT_TRUE(view.ok()) << view.result->problem->text;
      std::size_t matched = 0;
      for (const KernelRow& row : view.result->kernels) matched += row.plan_kernel ? 1 : 0;
      // Gradients are launched in kinds and orders of their own: most, not all, correspond.
      const std::size_t least =
          trains ? view.result->kernels.size() * 3 / 4 : view.result->kernels.size();
      EXPECT_GE(matched, least) << scenario << " " << view.run.name;
    }
  }
}

TEST(MeasuredRuns, AnExecutionThatIsNoPolicyHasItsTimeAndNoGraph) {
  Document d = default_document();
  const RunId id =
      d.runs.add({.policy = "torch-compile-autotuned", .measurements = d.measurements});
  const Results results = test::results_of(d);
  const RunView& view = *results.find(id);
  ASSERT_TRUE(view.ok()) << view.result->problem->text;
  EXPECT_GT(view.result->totals.time.value(), 0);
  EXPECT_FALSE(view.result->totals.has_bytes);
  EXPECT_THAT(block_graph(view).problem, HasSubstr("is no policy"));
  EXPECT_THAT(kernel_table(results, id).problem, HasSubstr("no kernel trace"));
  EXPECT_THAT(traffic_chart(results, StackBy::kernel).bars.back().note, HasSubstr("only the time"));
  EXPECT_THAT(timeline_chart(results, Align::work).rows.back().note, HasSubstr("only the block"));
  EXPECT_THAT(memory_chart(view, std::nullopt).problem, HasSubstr("only the time"));
  for (const RooflinePoint& p : roofline_chart(results, MemoryLevel::hbm).points) {
    EXPECT_NE(p.run, id);
  }
  EXPECT_THAT(export_data({.results = &results}), Not(IsEmpty()));
}

}  // namespace
}  // namespace fuseline::gui
