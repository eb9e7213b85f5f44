// Sliders that multiply numbers of the GPU: "what if HBM were twice as fast".
#pragma once

#include <QWidget>
#include <vector>

#include "gui/widgets/session.h"

class QLabel;
class QLineEdit;
class QSlider;
class QToolButton;

namespace fuseline::gui {

class WhatIfPanel : public QWidget {
  Q_OBJECT
 public:
  WhatIfPanel(Session& session, QWidget* parent);
  void refresh();  // from the document

 private:
  struct Line {
    std::string key;
    QLabel* label;
    QLineEdit* value;
    QSlider* slider;
    QToolButton* reset;
  };
  void set_factor(const std::string& key, double factor, const std::string& gesture);

  Session& session_;
  std::vector<Line> lines_;
};

}  // namespace fuseline::gui
