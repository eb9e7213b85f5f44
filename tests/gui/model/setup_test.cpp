#include "gui/model/setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

TEST(Setup, ResolvesNamesAsTheCommandLineDoes) {
  const PredictionCase c = resolve(test::small_setup());
  EXPECT_EQ(c.model.name, "tinyllama");
  EXPECT_EQ(c.gpu.name, "h200");
  EXPECT_EQ(c.workload.seq, 256);
}

TEST(Setup, RefusesWhatTheCommandLineRefuses) {
  gui::Setup setup = test::small_setup();
  setup.model = "tinylama";
  try {
    static_cast<void>(resolve(setup));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'tinyllama'"));
  }
  setup = test::small_setup();
  setup.workload.seq = 0;
  EXPECT_THROW(static_cast<void>(resolve(setup)), InputError);
  setup = test::small_setup();
  setup.what_if.hbm_bandwidth = 100;
  EXPECT_THROW(static_cast<void>(resolve(setup)), InputError);
}

TEST(Setup, EnteringDecodeBringsItsOwnSizesAndLeavingItTheOthers) {
  gui::Setup setup = test::small_setup();
  setup = with_phase(setup, Phase::decode);
  EXPECT_EQ(setup.workload.seq, 1);
  EXPECT_EQ(setup.workload.context, 2048);
  setup.workload.context = 4096;
  EXPECT_EQ(with_phase(setup, Phase::decode).workload.context, 4096);
  setup = with_phase(setup, Phase::train);
  EXPECT_EQ(setup.workload.seq, 2048);
  EXPECT_EQ(setup.workload.context, 0);
}

TEST(Setup, EveryPartIsInTheKey) {
  const gui::Setup base = test::small_setup();
  std::vector<gui::Setup> others(12, base);
  others[0].model = "llama2-7b";
  others[1].gpu = "h100";
  others[2].workload.phase = Phase::train;
  others[3].workload.batch = 2;
  others[4].workload.seq = 512;
  others[5].workload.context = 9;
  others[6].workload.dtype = Dtype::fp16;
  others[7].fidelity = Fidelity::roofline;
  others[8].what_if.hbm_bandwidth = 2;
  others[9].what_if.l2_capacity = 2;
  others[10].what_if.sm_count = 2;
  others[11].what_if.sm_clock = 0.5;
  for (const gui::Setup& other : others) EXPECT_FALSE(other == base);
}

TEST(WhatIfPanel, ShowsValuesWithTheirSources) {
  gui::Setup setup = test::small_setup();
  setup.what_if.hbm_bandwidth = 2;
  const std::vector<WhatIfSlider> sliders = what_if_sliders(setup);
  ASSERT_EQ(sliders.size(), 5U);
  EXPECT_EQ(sliders[0].key, "hbm_bandwidth");
  EXPECT_EQ(sliders[0].value, "9.60 TB/s");
  EXPECT_EQ(sliders[0].base, "4.80 TB/s");
  EXPECT_THAT(sliders[0].source, HasSubstr("Datasheet"));
  EXPECT_EQ(sliders[3].value, "132 SMs");
}

TEST(WhatIfPanel, TakesValuesInPlaceOfFactors) {
  const gui::Setup setup = test::small_setup();
  EXPECT_DOUBLE_EQ(factor_of_value(setup, "hbm_bandwidth", "9.6 TB/s"), 2.0);
  EXPECT_DOUBLE_EQ(factor_of_value(setup, "hbm_bandwidth", " 2400 GB/s "), 0.5);
  EXPECT_DOUBLE_EQ(factor_of_value(setup, "l2_capacity", "120"), 2.0);
  EXPECT_DOUBLE_EQ(factor_of_value(setup, "sm_count", "66 SMs"), 0.5);
  for (const char* wrong : {"", "fast", "-3", "5 MB", "100 TB/s", "nan", "inf"}) {
    EXPECT_THROW(static_cast<void>(factor_of_value(setup, "hbm_bandwidth", wrong)), InputError)
        << wrong;
  }
}

}  // namespace
}  // namespace fuseline::gui
