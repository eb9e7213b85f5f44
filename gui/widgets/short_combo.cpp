#include "gui/widgets/short_combo.h"

#include <QStyleOptionComboBox>
#include <QStylePainter>

namespace fuseline::gui {

ShortCombo::ShortCombo(QWidget* parent) : QComboBox(parent) {
  setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  setMinimumContentsLength(8);
}

void ShortCombo::showPopup() {
  if (fill_) fill_();
  QComboBox::showPopup();
}

void ShortCombo::paintEvent(QPaintEvent*) {
  QStylePainter painter(this);
  QStyleOptionComboBox option;
  initStyleOption(&option);
  const QRect room =
      style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
  option.currentText =
      fontMetrics().elidedText(option.currentText, Qt::ElideRight, room.width() - 4);
  painter.drawComplexControl(QStyle::CC_ComboBox, option);
  painter.drawControl(QStyle::CE_ComboBoxLabel, option);
}

}  // namespace fuseline::gui
