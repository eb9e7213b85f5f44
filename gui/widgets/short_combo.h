// A combo box that ends a text that is too long with "…" where Qt would cut it.
#pragma once

#include <QComboBox>

namespace fuseline::gui {

class ShortCombo : public QComboBox {
  Q_OBJECT
 public:
  explicit ShortCombo(QWidget* parent);

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace fuseline::gui
