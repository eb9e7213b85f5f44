#include "gui/model/roofline_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gui/model/memory_chart.h"
#include "gui/model/timeline_chart.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

bool is_decade(double v) { return std::abs(std::log10(v) - std::round(std::log10(v))) < 1e-9; }

TEST(RooflineChart, AxesAreRoundAndOfTheMachineWhateverTheData) {
  Document small = test::small_document({"eager"});
  Document large = test::small_document({"unfused", "coda"});
  large.setup.workload.seq = 1024;
  const RooflineChart a = roofline_chart(test::results_of(small), MemoryLevel::hbm);
  const RooflineChart b = roofline_chart(test::results_of(large), MemoryLevel::hbm);
  EXPECT_EQ(a.x, b.x);
  EXPECT_EQ(a.y, b.y);
  for (const double v : {a.x.low, a.x.high, a.y.low}) EXPECT_TRUE(is_decade(v)) << v;
  EXPECT_EQ(a.y.high, 2e15);  // 989 TFLOP/s, and room above that roof
  EXPECT_EQ(a.ceilings.size(), b.ceilings.size());
  const RooflineChart l2 = roofline_chart(test::results_of(small), MemoryLevel::l2);
  EXPECT_EQ(a.x, l2.x);
  EXPECT_EQ(a.y, l2.y);
}

TEST(RooflineChart, TheRoofsMeetAtTheRidge) {
  const RooflineChart c =
      roofline_chart(test::results_of(test::small_document({"eager"})), MemoryLevel::hbm);
  ASSERT_GE(c.ceilings.size(), 3U);
  EXPECT_THAT(c.ceilings[0].label, HasSubstr("HBM 4.80 TB/s"));
  EXPECT_NEAR(c.ceilings[0].to.x, 989.4e12 / 4.8e12, 1e-9);
  EXPECT_TRUE(c.ceilings[1].sustained);
  EXPECT_EQ(c.ceilings[2].from, c.ceilings[0].to);
}

TEST(RooflineChart, PointsAreIntensityAndRateAndNoPredictionLiesAboveTheRoof) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const RooflineChart c = roofline_chart(results, MemoryLevel::hbm);
  std::size_t blocks = 0;
  for (const RooflinePoint& p : c.points) {
    const RunResult& r = *results.find(p.run)->result;
    if (p.is_block) {
      ++blocks;
      EXPECT_DOUBLE_EQ(p.at.x, r.totals.flops.as_double() / r.totals.hbm().as_double());
      continue;
    }
    const KernelRow& row = r.kernels[p.kernel];
    EXPECT_DOUBLE_EQ(p.at.x, row.estimate.flops.as_double() / row.hbm().as_double());
    EXPECT_DOUBLE_EQ(p.at.y, row.estimate.flops.as_double() / row.estimate.time.value());
    EXPECT_LE(p.at.y, p.at.x * 4.8e12 * 1.000001) << p.label;
    EXPECT_NEAR(p.size, row.estimate.time / r.totals.time, 1e-12);
  }
  EXPECT_EQ(blocks, 2U);
}

TEST(RooflineChart, ArrowsGoFromTheBaselineWithTheRatioOfTimes) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const RooflineChart c = roofline_chart(results, MemoryLevel::hbm);
  bool block = false;
  int kernels = 0;
  for (const RooflineArrow& a : c.arrows) {
    EXPECT_EQ(a.run, results.runs[1].run.id);
    if (!a.is_block) {
      ++kernels;
      continue;
    }
    block = true;
    EXPECT_DOUBLE_EQ(a.ratio,
                     results.runs[0].result->totals.time / results.runs[1].result->totals.time);
    EXPECT_THAT(a.label, HasSubstr("faster"));
  }
  EXPECT_TRUE(block);
  EXPECT_EQ(kernels, 4);  // the GEMMs; attention finds all of its 3 MB in L2 and has no place
}

TEST(RooflineChart, KernelsWithoutFlopsAreListedNotDrawn) {
  const Results results = test::results_of(test::small_document({"eager"}));
  const RooflineChart c = roofline_chart(results, MemoryLevel::hbm);
  EXPECT_EQ(c.points.size() + c.outside.size(), results.runs[0].result->kernels.size() + 1);
  EXPECT_FALSE(c.outside.empty());  // the concatenations of RoPE
}

TEST(MemoryChart, ArrowsCarryTheKernelsBytesAndRates) {
  const Results results = test::results_of(test::small_document({"coda"}));
  const RunView& view = results.runs[0];
  const MemoryChart block = memory_chart(view, std::nullopt);
  ASSERT_EQ(block.arrows.size(), 4U);
  EXPECT_EQ(block.arrows[0].bytes, view.result->totals.hbm_read);
  EXPECT_EQ(block.arrows[1].bytes, view.result->totals.hbm_write);
  EXPECT_EQ(block.arrows[2].bytes, view.result->totals.l2);
  EXPECT_DOUBLE_EQ(block.arrows[0].rate.value(),
                   view.result->totals.hbm_read.as_double() / view.result->totals.time.value());
  const MemoryChart kernel = memory_chart(view, 0);
  EXPECT_EQ(kernel.arrows[0].bytes, view.result->kernels[0].estimate.hbm_read);
  for (const MemoryChart& c : {block, kernel}) {
    ASSERT_EQ(c.boxes.size(), 4U);
    int binding = 0;
    for (const MemoryBox& b : c.boxes) {
      EXPECT_GE(b.utilisation, 0);
      EXPECT_LE(b.utilisation, 1);
      binding += b.sets_time ? 1 : 0;
    }
    EXPECT_LE(binding, 1);
  }
  EXPECT_EQ(block.boxes[2].capacity, "60 MiB");
}

TEST(MemoryChart, CountersDoNotTellOfSharedMemory) {
  const Results results = test::results_of(default_document());
  const MemoryChart c = memory_chart(results.runs[1], std::nullopt);
  EXPECT_TRUE(c.arrows[3].unknown);
  EXPECT_FALSE(c.arrows[0].unknown);
  EXPECT_EQ(c.boxes[1].utilisation_text, "not counted");
}

TEST(TimelineChart, BarsFollowEachOtherAndFillTheTime) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const TimelineChart c = timeline_chart(results, Align::start);
  for (const TimelineRow& row : c.rows) {
    Seconds now;
    for (const TimelineBar& bar : row.bars) {
      EXPECT_NEAR(bar.begin.value(), now.value(), 1e-12);
      EXPECT_GT(bar.gap.value(), 0);
      EXPECT_LE(bar.gap, bar.length);
      now += bar.length;
    }
    EXPECT_NEAR(now.value(), row.total.value(), 1e-12);
    EXPECT_LE(row.total, c.axis_high);
  }
}

TEST(TimelineChart, AlignedByWorkSharedKernelsBeginTogetherAndNoneOverlap) {
  const Results results = test::results_of(test::small_document({"eager", "coda", "xla"}));
  const TimelineChart c = timeline_chart(results, Align::work);
  for (const char* kernel : {"qkv", "attention", "oproj", "gate_up", "down"}) {
    std::vector<double> begins;
    for (const TimelineRow& row : c.rows) {
      for (const TimelineBar& bar : row.bars) {
        if (bar.label == kernel) begins.push_back(bar.begin.value());
      }
    }
    ASSERT_EQ(begins.size(), 3U) << kernel;
    EXPECT_DOUBLE_EQ(begins[0], begins[1]) << kernel;
    EXPECT_DOUBLE_EQ(begins[0], begins[2]) << kernel;
  }
  for (const TimelineRow& row : c.rows) {
    for (std::size_t i = 1; i < row.bars.size(); ++i) {
      EXPECT_GE(row.bars[i].begin.value(),
                (row.bars[i - 1].begin + row.bars[i - 1].length).value() - 1e-12);
    }
  }
}

TEST(TimelineChart, AMeasuredRunHasItsKernelsWithoutBounds) {
  const Results results = test::results_of(default_document());
  const TimelineChart c = timeline_chart(results, Align::start);
  EXPECT_EQ(c.rows[1].bars.size(), 21U);
  for (const TimelineBar& bar : c.rows[1].bars) EXPECT_FALSE(bar.bound.has_value());
  Seconds sum;
  for (const TimelineBar& bar : c.rows[1].bars) sum += bar.length;
  EXPECT_DOUBLE_EQ((sum + c.rows[1].unattributed).value(), c.rows[1].total.value());
}

TEST(ResidencyChart, AnActivationIsThereBetweenItsProducerAndItsLastReader) {
  const Results results = test::results_of(test::small_document({"per-operator"}));
  const RunView& view = results.runs[0];
  const ResidencyChart c = residency_chart(view, "xn2");
  EXPECT_EQ(c.note, "");
  ASSERT_EQ(c.steps.size(), view.result->kernels.size());
  for (std::size_t i = 0; i < c.steps.size(); ++i) {
    const std::string& name = view.result->kernels[i].estimate.name;
    const bool alive = name == "norm2" || name.starts_with("gate_up");
    EXPECT_EQ(c.steps[i].alive, alive) << name;
    // 1 MB in 60 MiB; the 46 MB of weights that gate_up reads may push out a part of it.
    if (name == "norm2") {
      EXPECT_EQ(c.steps[i].resident, c.bytes);
    }
    EXPECT_EQ(c.steps[i].resident > Bytes(0), alive) << name;
  }
}

TEST(ResidencyChart, SaysWhyThereIsNothing) {
  const Results results = test::results_of(test::small_document({"coda"}));
  EXPECT_THAT(residency_chart(results.runs[0], "scores").note, HasSubstr("never leaves the chip"));
  EXPECT_THAT(residency_chart(results.runs[0], "nothing").note, HasSubstr("no tensor"));
  Document d = test::small_document({"eager"});
  d.setup.fidelity = Fidelity::roofline;
  EXPECT_THAT(residency_chart(test::results_of(d).runs[0], "xn2").note, HasSubstr("hierarchy"));
}

TEST(RooflineChart, HasRoomAboveTheRoof) {
  const Results results = test::results_of(test::small_document());
  for (const MemoryLevel level : {MemoryLevel::hbm, MemoryLevel::l2}) {
    const RooflineChart c = roofline_chart(results, level);
    for (const Ceiling& ceiling : c.ceilings) EXPECT_LE(ceiling.to.y * 1.4, c.y.high);
  }
}

}  // namespace
}  // namespace fuseline::gui
