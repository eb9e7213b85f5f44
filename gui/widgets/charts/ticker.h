// Ticks of charts: decades with SI prefixes on log axes, round numbers on linear ones.
#pragma once

#include <qcustomplot.h>

#include "gui/widgets/charts/scene.h"

namespace fuseline::gui {

// "0.01", "250", "10 k", "1 T"
QString tick_text(double value);

class ChartTicker : public QCPAxisTicker {
 public:
  explicit ChartTicker(const AxisSpec& axis) : axis_(axis) {}
  // Explicit ticks closer than that in pixels lose their text; `pixels`: length of the axis.
  void set_room(int pixels, int per_tick);

  void generate(const QCPRange& range, const QLocale& locale, QChar format, int precision,
                QVector<double>& ticks, QVector<double>* sub_ticks,
                QVector<QString>* labels) override;

 protected:
  double getTickStep(const QCPRange& range) override;  // 1, 2 or 5 times a power of ten

 private:
  void generate_log(const QCPRange& range, QVector<double>& ticks,
                    QVector<double>* sub_ticks) const;

  AxisSpec axis_;
  int most_ = 6;
};

}  // namespace fuseline::gui
