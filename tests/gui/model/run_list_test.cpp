#include <gtest/gtest.h>

#include "base/error.h"
#include "gui/model/run.h"

namespace fuseline::gui {
namespace {

TEST(RunList, TheFirstRunIsTheBaseline) {
  RunList runs;
  const RunId eager = runs.add({.policy = "eager"});
  runs.add({.policy = "coda"});
  EXPECT_EQ(runs.baseline(), eager);
}

TEST(RunList, NamesAreUnique) {
  RunList runs;
  runs.add({.policy = "eager"});
  const RunId second = runs.add({.policy = "eager"});
  const RunId third = runs.add({.policy = "eager", .measurements = "somewhere"});
  EXPECT_EQ(runs.at(second).name, "eager 2");
  EXPECT_EQ(runs.at(third).name, "eager, measured");
}

TEST(RunList, RemovingTheBaselineMakesTheNextRunTheBaseline) {
  RunList runs;
  const RunId a = runs.add({.policy = "eager"});
  const RunId b = runs.add({.policy = "coda"});
  const RunId c = runs.add({.policy = "xla"});
  runs.set_baseline(b);
  runs.remove(b);
  EXPECT_EQ(runs.baseline(), c);
  runs.remove(c);
  EXPECT_EQ(runs.baseline(), a);
}

TEST(RunList, KeepsItsLastRun) {
  RunList runs;
  const RunId only = runs.add({.policy = "eager"});
  EXPECT_THROW(runs.remove(only), InputError);
  EXPECT_EQ(runs.all().size(), 1U);
}

TEST(RunList, RefusesNamesThatAreEmptyLongOrTaken) {
  RunList runs;
  const RunId a = runs.add({.policy = "eager"});
  runs.add({.policy = "coda"});
  EXPECT_THROW(runs.rename(a, "  "), InputError);
  EXPECT_THROW(runs.rename(a, std::string(RunList::kLongestName + 1, 'x')), InputError);
  EXPECT_THROW(runs.rename(a, "coda"), InputError);
  EXPECT_EQ(runs.at(a).name, "eager");
  runs.rename(a, "eager");
  runs.rename(a, "before");
  EXPECT_NE(runs.find("before"), nullptr);
}

TEST(RunList, ARemovedIdIsNotGivenAgain) {
  RunList runs;
  runs.add({.policy = "eager"});
  const RunId gone = runs.add({.policy = "coda"});
  runs.remove(gone);
  EXPECT_NE(runs.add({.policy = "coda"}), gone);
}

TEST(RunList, MovesARunToAPlace) {
  RunList runs;
  const RunId a = runs.add({.policy = "eager"});
  runs.add({.policy = "coda"});
  runs.move(a, 1);
  EXPECT_EQ(runs.all().back().id, a);
}

}  // namespace
}  // namespace fuseline::gui
