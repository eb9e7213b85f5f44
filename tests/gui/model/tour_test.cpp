#include "gui/model/tour.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fuseline::gui {
namespace {

TEST(Tour, TakesNinetySeconds) {
  double all = 0;
  for (std::size_t i = 0; i < tour_steps().size(); ++i) {
    all += seconds_of(i);
    // Slower than 25 letters a second nobody has to read.
    EXPECT_GE(seconds_of(i), static_cast<double>(tour_steps()[i].text.size()) / 25)
        << tour_steps()[i].title;
  }
  EXPECT_NEAR(all, kTourSeconds, 1e-9);
}

TEST(Tour, WhatItDoesItTakesBack) {
  const auto& steps = tour_steps();
  const auto count = [&](TourAct act) { return std::ranges::count(steps, act, &TourStep::act); };
  EXPECT_EQ(count(TourAct::fuse_edge), 1);
  EXPECT_EQ(steps.back().act, TourAct::undo);
}

}  // namespace
}  // namespace fuseline::gui
