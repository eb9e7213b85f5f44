#include "gui/model/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::size_t column(const KernelTable& table, const std::string& key) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].key == key) return i;
  }
  ADD_FAILURE() << "no column " << key;
  return 0;
}

TEST(KernelTable, HasALineForEachLaunchWithExactValuesBehindTheTexts) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const KernelTable table = kernel_table(results, results.runs[1].run.id);
  const auto& kernels = results.runs[1].result->kernels;
  ASSERT_EQ(table.lines.size(), kernels.size());
  const std::size_t read = column(table, "hbm_read_bytes"), time = column(table, "time_us");
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    ASSERT_EQ(table.lines[i].cells.size(), table.columns.size());
    EXPECT_EQ(table.lines[i].cells[read].sort_key, kernels[i].estimate.hbm_read.as_double());
    EXPECT_EQ(table.lines[i].cells[time].sort_key, to_us(kernels[i].estimate.time));
  }
  EXPECT_EQ(table.total.size(), table.columns.size());
}

TEST(KernelTable, DifferencesAreToTheBaselinesKernelsOfTheSameWork) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const KernelTable table = kernel_table(results, results.runs[1].run.id);
  const std::size_t delta = column(table, "delta_hbm");
  // gate_up does what eager does in gate_up, silu and mul.
  const RunResult& eager = *results.runs[0].result;
  Bytes base;
  for (const KernelRow& row : eager.kernels) {
    const std::string& name = row.estimate.name;
    if (name.starts_with("gate_up") || name.starts_with("act") || name.starts_with("swiglu") ||
        name.starts_with("silu") || name == "mul") {
      base += row.hbm();
    }
  }
  bool found = false;
  for (std::size_t i = 0; i < table.lines.size(); ++i) {
    const KernelRow& row = results.runs[1].result->kernels[i];
    if (row.estimate.name != "gate_up") continue;
    found = true;
    EXPECT_EQ(table.lines[i].cells[delta].sort_key, (row.hbm() - base).as_double());
  }
  EXPECT_TRUE(found);
}

TEST(KernelTable, EveryBaselineKernelIsChargedOnce) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const KernelTable table = kernel_table(results, results.runs[1].run.id);
  const std::size_t delta = column(table, "delta_hbm");
  double differences = 0;
  Bytes without;  // launches that have no counterpart, such as split-K reductions
  for (std::size_t i = 0; i < table.lines.size(); ++i) {
    if (table.lines[i].cells[delta].text.empty()) {
      without += results.runs[1].result->kernels[i].hbm();
    }
    differences += table.lines[i].cells[delta].sort_key;
  }
  const Bytes base = results.runs[0].result->totals.hbm();
  const Bytes run = results.runs[1].result->totals.hbm();
  EXPECT_EQ(differences, (run - without - base).as_double());
}

TEST(KernelTable, TheBaselineHasNoDifferences) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const KernelTable table = kernel_table(results, results.baseline);
  for (const KernelLine& line : table.lines) {
    EXPECT_EQ(line.cells[column(table, "delta_time")].text, "");
  }
}

TEST(KernelTable, AMeasuredRunHasItsCodesNames) {
  const Results results = test::results_of(default_document());
  const KernelTable table = kernel_table(results, results.runs[1].run.id);
  EXPECT_THAT(table.lines[1].cells[column(table, "code")].text, HasSubstr("nvjet"));
  EXPECT_EQ(table.lines[1].cells[column(table, "bound")].text, "");
}

TEST(ProgramTextOf, ShowsTheProgramAndWhyNeighboursAreApart) {
  const Results results = test::results_of(test::small_document({"per-operator"}));
  const RunView& view = results.runs[0];
  std::size_t k = 0;
  while (view.result->kernels[k].estimate.name != "gate_up") ++k;
  const ProgramText text = program_text(results, view.run.id, k);
  EXPECT_EQ(text.title, "gate_up (gemm, library GEMM)");
  ASSERT_EQ(text.phases.size(), 1U);
  EXPECT_THAT(text.phases[0], HasSubstr("w_gate_up"));
  ASSERT_THAT(text.notes, Not(IsEmpty()));
  bool why = false;
  for (const ProgramNote& n : text.notes) {
    why = why ||
          n.text.find("apart: the pairs of swiglu are in different tiles") != std::string::npos;
  }
  EXPECT_TRUE(why);
  EXPECT_EQ(program_text(results, view.run.id, 999).problem, "the kernel is gone");
  EXPECT_EQ(program_text(results, RunId{99}, 0).problem, "the run is gone");
}

}  // namespace
}  // namespace fuseline::gui
