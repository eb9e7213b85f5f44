#include "sim/sure/band.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/error.h"

namespace fuseline {

namespace {

// 1 % beyond which a band is printed with both its ends.
constexpr double kLopsided = 0.01;
// Far beyond all rows nothing says how much wider; nor is a band wider than a factor of 20.
constexpr double kMostBeyond = 4, kWidest = 3;

bool fits(const std::string& asked, const std::string& of) { return of.empty() || of == asked; }

bool fits(const WorkClass& work, const WorkClass& of) {
  return work.what == of.what && fits(work.apart, of.apart) && fits(work.phase, of.phase) &&
         fits(work.maker, of.maker) && fits(work.kernels, of.kernels) && fits(work.size, of.size);
}

// A kind that is judged apart says more than all other words together.
int words(const WorkClass& of) {
  constexpr int kOthers = 4;
  return (of.apart.empty() ? 0 : kOthers + 1) + static_cast<int>(!of.phase.empty()) +
         static_cast<int>(!of.maker.empty()) + static_cast<int>(!of.kernels.empty()) +
         static_cast<int>(!of.size.empty());
}

}  // namespace

Seconds low_end(Seconds estimate, const Band& band) { return estimate * band.low; }
Seconds high_end(Seconds estimate, const Band& band) { return estimate * band.high; }
Bytes low_end(Bytes estimate, const Band& band) {
  return Bytes(static_cast<std::int64_t>(std::floor(estimate.as_double() * band.low)));
}
Bytes high_end(Bytes estimate, const Band& band) {
  return Bytes(static_cast<std::int64_t>(std::ceil(estimate.as_double() * band.high)));
}

std::string in_percent(const Band& band) {
  const double down = 1 - band.low, up = band.high - 1;
  if (std::abs(up - down) < kLopsided) return fmt::format("±{:.0f} %", 50 * (up + down));
  return fmt::format("-{:.0f} +{:.0f} %", 100 * down, 100 * up);
}

const std::vector<std::string>& band_subjects() {
  static const std::vector<std::string> all = {"time", "hbm", "kernel_time", "kernel_hbm", "gain"};
  return all;
}

const std::vector<std::string>& kinds_judged_apart() {
  static const std::vector<std::string> all = {"chain"};
  return all;
}

const BandClass& BandTable::best(const WorkClass& work) const {
  const BandClass* found = nullptr;
  for (const BandClass& c : classes_) {
    if (fits(work, c.of) && (found == nullptr || words(c.of) > words(found->of))) found = &c;
  }
  if (found == nullptr) throw InternalError("no class of bands for " + work.what);
  return *found;
}

double BandTable::widening(const WorkClass& work, const BandClass& c, Standing standing,
                           double predicted) const {
  // Widths of a subject's class and of a kind's that is judged apart were found without traits.
  const bool by_traits = !c.of.phase.empty() && c.of.apart.empty();
  double wide = by_traits ? spread_factor(spreads_, work) : 1;
  const Widening* found = nullptr;
  for (const Widening& w : widenings_) {
    if (w.what != work.what || !fits(work.phase, w.phase)) continue;
    if (found == nullptr || found->phase.empty()) found = &w;
  }
  if (found == nullptr) return wide;
  if (c.of.apart != work.apart) standing = Standing::uncalibrated;
  if (standing == Standing::checked) wide *= found->checked;
  if (standing == Standing::uncalibrated) wide *= found->uncalibrated;
  if (c.of.apart.empty() && c.of.kernels.empty() && !work.kernels.empty()) wide *= found->unseen;
  if (c.most > 0 && predicted > 0) {
    const double away =
        std::max({0.0, std::log(c.least / predicted), std::log(predicted / c.most)});
    wide *= std::min(kMostBeyond, 1 + found->beyond * away);
  }
  return wide;
}

Band BandTable::of(const WorkClass& work, Standing standing, double predicted) const {
  const BandClass& c = best(work);
  const double wide = widening(work, c, standing, predicted);
  return {std::exp(std::max(-kWidest, wide * c.low)), std::exp(std::min(kWidest, wide * c.high))};
}

Band BandTable::of_gain(const WorkClass& work, Standing standing, double predicted) const {
  const BandClass& c = best(work);
  const double wide = widening(work, c, standing, 0);  // a gain has no size
  const double size = std::abs(std::log(predicted));
  const double shift = (c.slope - 1) * size;
  const double low = std::min(0.0, shift + wide * c.low);
  const double high = std::max(0.0, shift + wide * c.high);
  return predicted >= 1 ? Band{std::exp(low), std::exp(high)}
                        : Band{std::exp(-high), std::exp(-low)};
}

const BandTable& shipped_bands() {
  static const BandTable table = BandTable::load((data_dir() / "bands" / "bands.toml").string());
  return table;
}

}  // namespace fuseline
