// A combo box that ends a text that is too long with "…" where Qt would cut it.
#pragma once

#include <QComboBox>
#include <functional>

namespace fuseline::gui {

class ShortCombo : public QComboBox {
  Q_OBJECT
 public:
  explicit ShortCombo(QWidget* parent);

  // What its list offers is found when it is about to be shown.
  void fill_before_showing(std::function<void()> fill) { fill_ = std::move(fill); }
  void showPopup() override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::function<void()> fill_;
};

}  // namespace fuseline::gui
