// A strip below the graph's tools: what an edit saved, or why it is illegal, with the nearest legal
// edits as buttons. Also hints in place, such as what to install.
#pragma once

#include <QFrame>
#include <vector>

#include "gui/widgets/session.h"
#include "gui/widgets/theme.h"

class QHBoxLayout;
class QLabel;
class QVBoxLayout;

namespace fuseline::gui {

class EditBar : public QFrame {
  Q_OBJECT
 public:
  explicit EditBar(QWidget* parent);
  void show_notice(const EditNotice& notice);
  void show_hint(const QString& text);
  [[nodiscard]] QString text() const;

 signals:
  void chosen(const fuseline::gui::Suggestion& suggestion);

 protected:
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;  // Esc closes

 private:
  void set(const QString& text, ColourRole stripe, const std::vector<Suggestion>& suggestions);
  void restyle();

  QLabel* text_;
  QLabel* stripe_;
  QWidget* choices_;
  QVBoxLayout* choices_layout_;
  ColourRole role_ = ColourRole::neutral;
};

}  // namespace fuseline::gui
