#include "gui/widgets/charts/ticker.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "gui/model/geometry.h"

namespace fuseline::gui {

QString tick_text(double value) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  double shown = value;
  if (std::abs(value) >= 9999.5) {
    while (std::abs(shown) >= 999.5 && prefix + 1 < kPrefixes.size()) {
      shown /= 1000;
      ++prefix;
    }
  }
  QString text = QString::number(shown, 'g', 4);
  if (prefix > 0) text += QChar(0xa0) + QString::fromLatin1(kPrefixes[prefix]);
  return text;
}

void ChartTicker::set_room(int pixels, int per_tick) {
  most_ = std::clamp(pixels / std::max(1, per_tick), 2, 12);
  setTickCount(most_);
}

double ChartTicker::getTickStep(const QCPRange& range) {
  return nice_above(range.size() / std::max(2, most_));
}

void ChartTicker::generate_log(const QCPRange& range, QVector<double>& ticks,
                               QVector<double>* sub_ticks) const {
  const int first = static_cast<int>(std::floor(std::log10(range.lower) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(range.upper) - 1e-9));
  const int decades = last - first;
  const int stride = std::max(1, (decades + most_) / (most_ + 1));
  for (int e = first; e <= last; ++e) {
    const double decade = std::pow(10.0, e);
    for (int m = 1; m <= 9; ++m) {
      const double at = m * decade;
      if (at < range.lower * (1 - 1e-9) || at > range.upper * (1 + 1e-9)) continue;
      const bool is_tick =
          m == 1 ? (e - first) % stride == 0 : 3 * decades <= most_ + 2 && (m == 2 || m == 5);
      if (is_tick) {
        ticks.append(at);
      } else if (sub_ticks != nullptr) {
        sub_ticks->append(at);
      }
    }
  }
}

void ChartTicker::generate(const QCPRange& range, const QLocale& locale, QChar format,
                           int precision, QVector<double>& ticks, QVector<double>* sub_ticks,
                           QVector<QString>* labels) {
  ticks.clear();
  if (sub_ticks != nullptr) sub_ticks->clear();
  if (!axis_.ticks.empty()) {
    const std::size_t stride = (axis_.ticks.size() + static_cast<std::size_t>(most_) - 1) /
                               static_cast<std::size_t>(most_);
    if (labels != nullptr) labels->clear();
    // The first and the last one say the range: both are named, and those too near to the last one
    // are not.
    const std::size_t last = axis_.ticks.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
      ticks.append(axis_.ticks[i].at);
      if (labels == nullptr) continue;
      const bool named = i == last || (i % stride == 0 && last - i >= stride);
      labels->append(named ? QString::fromStdString(axis_.ticks[i].text) : QString());
    }
    return;
  }
  if (axis_.log && range.lower > 0 && range.upper / range.lower > 4) {
    generate_log(range, ticks, sub_ticks);
  } else {
    const QCPRange scaled(range.lower / axis_.unit, range.upper / axis_.unit);
    QCPAxisTicker::generate(scaled, locale, format, precision, ticks, sub_ticks, nullptr);
    for (double& t : ticks) t *= axis_.unit;
    if (sub_ticks != nullptr) {
      for (double& t : *sub_ticks) t *= axis_.unit;
    }
  }
  if (labels == nullptr) return;
  labels->clear();
  for (const double t : ticks) labels->append(tick_text(t / axis_.unit));
}

}  // namespace fuseline::gui
