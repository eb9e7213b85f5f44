#include "gui/widgets/what_if_panel.h"

#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kSteps = 48;  // from the middle to an end; sixteen for each doubling

int position_of(double factor) {
  return static_cast<int>(std::lround(std::log(factor) / std::log(kMostFactor) * kSteps));
}
double factor_at(int position) {
  return position == 0 ? 1.0 : std::pow(kMostFactor, static_cast<double>(position) / kSteps);
}

}  // namespace

WhatIfPanel::WhatIfPanel(Session& session, QWidget* parent) : QWidget(parent), session_(session) {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(10, 8, 10, 8);
  grid->setVerticalSpacing(2);
  grid->setColumnStretch(0, 1);
  int row = 0;
  for (const WhatIfField& field : kWhatIfFields) {
    Line line{field.key, new QLabel(this), new QLineEdit(this), new QSlider(Qt::Horizontal, this),
              new QToolButton(this)};
    const QString name = to_qt(std::string(field.key));
    line.value->setObjectName("what-if-value-" + name);
    line.value->setAccessibleName(tr("Value of %1").arg(name).replace('_', ' '));
    line.value->setAlignment(Qt::AlignRight);
    line.value->setFixedWidth(QFontMetrics(font()).horizontalAdvance("00000.00 GB/s00"));
    line.slider->setObjectName("what-if-" + name);
    line.slider->setRange(-kSteps, kSteps);
    line.slider->setPageStep(16);
    line.slider->setTickInterval(16);
    line.slider->setTickPosition(QSlider::TicksBelow);
    line.reset->setText("×1");
    line.reset->setAutoRaise(true);
    line.reset->setToolTip(tr("Back to the GPU's own value"));
    line.label->setBuddy(line.slider);
    grid->addWidget(line.label, row, 0);
    grid->addWidget(line.value, row, 1);
    grid->addWidget(line.slider, row + 1, 0, 1, 1);
    grid->addWidget(line.reset, row + 1, 1, Qt::AlignRight);
    row += 2;
    const std::string key = field.key;
    connect(line.slider, &QSlider::valueChanged, this,
            [this, key](int position) { set_factor(key, factor_at(position), key); });
    connect(line.slider, &QSlider::sliderReleased, this,
            [this] { session_.bench().end_gesture(); });
    connect(line.reset, &QToolButton::clicked, this, [this, key] { set_factor(key, 1, {}); });
    connect(line.value, &QLineEdit::editingFinished, this, [this, key, edit = line.value] {
      if (!edit->isModified()) return;
      edit->setModified(false);
      double factor = 1;
      const bool read = session_.act([&](Workbench& bench) {
        factor = factor_of_value(bench.document().setup, key, from_qt(edit->text()));
      });
      if (read) set_factor(key, factor, {});
    });
    lines_.push_back(line);
  }
  grid->setRowStretch(row, 1);
  refresh();
}

void WhatIfPanel::set_factor(const std::string& key, double factor, const std::string& gesture) {
  Setup setup = session_.bench().document().setup;
  for (const WhatIfField& field : kWhatIfFields) {
    if (key == field.key) setup.what_if.*field.factor = factor;
  }
  session_.act([&](Workbench& bench) { bench.set_setup(setup, "what if: " + key, gesture); });
}

void WhatIfPanel::refresh() {
  std::vector<WhatIfSlider> sliders;
  try {
    sliders = what_if_sliders(session_.bench().document().setup);
  } catch (const InputError&) {
    setEnabled(false);
    return;
  }
  setEnabled(true);
  for (std::size_t i = 0; i < std::min(sliders.size(), lines_.size()); ++i) {
    const WhatIfSlider& now = sliders[i];
    const Line& line = lines_[i];
    const QSignalBlocker quiet(line.slider);
    line.label->setText(to_qt(now.label));
    if (!line.value->hasFocus() || !line.value->isModified()) line.value->setText(to_qt(now.value));
    line.slider->setValue(position_of(now.factor));
    line.reset->setText(QString("×%1").arg(now.factor, 0, 'g', 3));
    line.reset->setEnabled(now.factor != 1);
    const QString tip =
        tr("%1 as described: %2\n%3").arg(to_qt(now.label), to_qt(now.base), to_qt(now.source));
    line.slider->setToolTip(tip);
    line.label->setToolTip(tip);
    line.value->setToolTip(tip + tr("\nType another value with its unit"));
  }
}

}  // namespace fuseline::gui
