// Plans with a chain of two products were measured and lost to coda where a gain was promised:
// their bands must say that nobody can be sure.
#include "sim/judge/measured_plans.h"

#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {
namespace {

std::string chains() { return (data_dir() / "measurements" / "h200-chains").string(); }

TEST(MeasuredPlans, NoChainThatLostIsCalledFasterAndBandsHoldWhatWasMeasured) {
  const auto plans = load_measured_plans(chains() + "/plans.csv");
  ASSERT_EQ(plans.size(), 6U);
  const Gpu gpu = load_gpu("h200");
  int promised = 0;
  for (const MeasuredPlan& p : plans) {
    const std::string where = p.model + " " + std::to_string(p.workload.batch);
    const PlanEstimate e = simulate(*p.plan, gpu, Fidelity::hierarchy);
    const PlanEstimate rival =
        simulate(make_plan(p.rival, load_model(p.model), p.workload, plan_target(gpu)), gpu,
                 Fidelity::hierarchy);
    const double gain = rival.time / e.time;
    const Sureness sure(gpu, p.workload);
    promised += gain > 1.02 ? 1 : 0;
    ASSERT_GT(p.time, p.rival_time) << where;  // it lost
    EXPECT_NE(verdict_of(gain, *sure.gain(rival, e)), "faster") << where;
    EXPECT_LT(gain * sure.gain(rival, e)->low, p.rival_time / p.time) << where;
    EXPECT_GT(e.time * sure.time(e)->high, p.time) << where;
  }
  EXPECT_GE(promised, 4);  // else the bands are tested by nothing
}

// Rows of chains make classes of their own and none of other work.
TEST(MeasuredPlans, TheirRowsMakeClassesOfTheirKindAlone) {
  const std::vector<Residual> rows = plan_rows(chains());
  ASSERT_EQ(rows.size(), 18U);
  const BandTable table = fit_bands(rows);
  EXPECT_EQ(table.classes().size(), 3U);
  for (const BandClass& c : table.classes()) EXPECT_EQ(c.of.apart, "chain") << c.of.what;
  for (const Residual& r : rows) {
    std::vector<Residual> others;
    std::ranges::copy_if(rows, std::back_inserter(others),
                         [&](const Residual& o) { return o.model != r.model; });
    const Band band = band_of(fit_bands(others), r);  // without the row's model
    EXPECT_LE(band.low, r.measured / r.predicted) << r.where << " " << r.work.what;
    EXPECT_GE(band.high, r.measured / r.predicted) << r.where << " " << r.work.what;
  }
}

}  // namespace
}  // namespace fuseline
