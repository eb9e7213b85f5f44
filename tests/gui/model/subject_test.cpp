// What numbers are about, and that unlike ones are never compared.
#include "gui/model/subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/model/export.h"
#include "gui/model/kernel_table.h"
#include "gui/model/roofline_chart.h"
#include "gui/model/run_rows.h"
#include "gui/model/timeline_chart.h"
#include "gui/model/traffic_chart.h"
#include "model/formats/stored_weight.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

Subject some_subject() {
  return {.model = "m",
          .gpu = "h200",
          .machine = "H200",
          .phase = "decode",
          .batch = 1,
          .seq = 1,
          .context = 2048,
          .formats = "bf16",
          .policy = "eager",
          .source = "hierarchy"};
}

TEST(Subject, SaysMachinePhaseSizesFormatsAndPolicyOfARun) {
  Document d = test::small_document({"eager"});
  d.setup = with_phase(d.setup, Phase::decode);
  d.setup.workload.batch = 3;
  d.setup.workload.formats.weights = parse_stored_weight("int4:64", "weights", "bf16");
  const Subject s = subject_of(test::results_of(d).runs[0]);
  EXPECT_EQ(missing_in(s), "");
  EXPECT_EQ(s.model, "tinyllama");
  EXPECT_EQ(s.gpu, "h200");
  EXPECT_EQ(s.phase, "decode");
  EXPECT_EQ(s.batch, 3);
  EXPECT_EQ(s.seq, 1);
  EXPECT_EQ(s.context, 2048);
  EXPECT_EQ(s.formats, "weights int4:64, bf16");
  EXPECT_EQ(s.policy, "eager");
  EXPECT_EQ(s.source, "hierarchy");
}

TEST(Subject, EveryPartThatIsNotSaidIsNamed) {
  EXPECT_EQ(missing_in(some_subject()), "");
  Subject s = some_subject();
  s.gpu.clear();
  EXPECT_EQ(missing_in(s), "the GPU");
  s = some_subject();
  s.seq = 0;
  EXPECT_EQ(missing_in(s), "the sizes");
  s = some_subject();
  s.source.clear();
  EXPECT_THAT(missing_in(s), HasSubstr("predicted or measured"));
}

TEST(Subject, AnotherModelPhaseOrSizeIsAnotherWork) {
  const Subject base = some_subject();
  EXPECT_EQ(likeness(base, base), Likeness::alike);
  for (const auto& change : std::vector<std::function<void(Subject&)>>{
           [](Subject& s) { s.model = "n"; }, [](Subject& s) { s.phase = "forward"; },
           [](Subject& s) { s.batch = 2; }, [](Subject& s) { s.seq = 2; },
           [](Subject& s) { s.context = 4096; }, [](Subject& s) { s.routing = "uniform"; }}) {
    Subject other = base;
    change(other);
    EXPECT_EQ(likeness(base, other), Likeness::other_work);
    EXPECT_THAT(likeness_note(base, other), HasSubstr("not compared"));
  }
  Subject other = base;
  other.machine = "H200, what if SM clock × 2";
  EXPECT_EQ(likeness(base, other), Likeness::other_machine);
  other = base;
  other.formats = "fp8, bf16";
  EXPECT_EQ(likeness(base, other), Likeness::other_formats);
  other = base;
  other.source = kMeasuredSource;
  EXPECT_EQ(likeness(base, other), Likeness::alike);  // of one policy: what a measurement is for
  other.policy = "coda";
  EXPECT_EQ(likeness(base, other), Likeness::mixed);
  EXPECT_THAT(likeness_note(base, other), HasSubstr("prediction's error"));
}

TEST(Subject, ATableThatComparesUnlikeThingsIsRefused) {
  Table table{"t", {"run", "time_us", "time_relative"}, {}};
  const Subject base = some_subject();
  add_row(table, {std::string("a"), 1.0, Cell()}, base);
  add_row(table, {std::string("b"), 2.0, 1.0}, base, &base);
  EXPECT_EQ(unlike_in(table), "");
  Subject other = base;
  other.context = 4096;
  Table unlike = table;
  add_row(unlike, {std::string("c"), 3.0, 2.0}, other, &base);
  EXPECT_THAT(unlike_in(unlike), HasSubstr("t, row 2: time_relative: not compared"));
  Table nothing = table;
  add_row(nothing, {std::string("c"), 3.0, 2.0}, base);
  EXPECT_THAT(unlike_in(nothing), HasSubstr("compares with nothing"));
  Table about_nothing = table;
  add_row(about_nothing, {std::string("c"), 3.0, Cell()}, {});
  EXPECT_THAT(unlike_in(about_nothing), HasSubstr("the model is not said"));
  Table without = table;
  without.about.clear();
  EXPECT_THAT(unlike_in(without), HasSubstr("0 of 2 rows"));
}

TEST(Subject, FilesSayWhatRowsAreAbout) {
  Table table{"t", {"run", "gpu"}, {}};
  add_row(table, {std::string("a"), std::string("h200")}, some_subject());
  EXPECT_EQ(to_csv(table),
            "run,gpu,model,machine,phase,batch,seq,context,formats,policy,source\n"
            "a,h200,m,H200,decode,1,1,2048,bf16,eager,hierarchy\n");
  EXPECT_THAT(to_json(table), HasSubstr("\"phase\": \"decode\""));
}

// `eager` is pinned to other sizes than `coda`.
Results unlike_runs() {
  Document d = test::small_document({"eager", "coda"});
  d.runs.set_setup(d.runs.all()[0].id, d.setup);
  d.setup.workload.seq = 128;
  return test::results_of(d);
}

TEST(Comparisons, RunsOfOtherSizesHaveNoDifferenceAnywhere) {
  Document d = test::small_document({"eager", "coda"});
  d.runs.set_setup(d.runs.all()[0].id, d.setup);
  d.setup.workload.seq = 128;
  const Results results = test::results_of(d);
  const std::vector<RunRow> rows = run_rows(d, results);
  EXPECT_EQ(rows[1].time_delta.relative_text, "");
  EXPECT_EQ(rows[1].hbm_delta.relative_text, "");
  EXPECT_THAT(rows[1].note, HasSubstr("not compared with the baseline"));
  EXPECT_THAT(rows[1].note, HasSubstr("256 tokens"));
  EXPECT_EQ(traffic_chart(results, StackBy::kernel).bars[1].delta.relative_text, "");
  const RunId coda = results.runs[1].run.id;
  for (const KernelLine& line : kernel_table(results, coda).lines) {
    for (const KernelCell& cell : {line.cells[5], line.cells[8]}) EXPECT_EQ(cell.text, "");
  }
  EXPECT_EQ(kernel_table(results, coda).total[5].text, "");
}

TEST(Comparisons, EveryTableOfRunsPassesTheCheck) {
  for (const Results& results : {test::results_of(test::small_document()), unlike_runs()}) {
    EXPECT_EQ(unlike_in(runs_table(results)), "");
    EXPECT_EQ(unlike_in(to_table(traffic_chart(results, StackBy::tensor))), "");
    EXPECT_EQ(unlike_in(to_table(timeline_chart(results, Align::start))), "");
    for (const RunView& view : results.runs)
      EXPECT_EQ(unlike_in(to_table(kernel_table(results, view.run.id))), "");
  }
}

}  // namespace
}  // namespace fuseline::gui
