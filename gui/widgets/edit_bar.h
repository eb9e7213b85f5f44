// A strip over an edge of the graph: what an edit saved, or why it is illegal, with the nearest
// legal edits as buttons. Also hints in place, such as what to install. It lies over the graph, so
// that nothing moves under the mouse when it comes and goes.
#pragma once

#include <QFrame>
#include <vector>

#include "gui/widgets/session.h"
#include "gui/widgets/theme.h"

class QHBoxLayout;
class QLabel;
class QScrollArea;
class QVBoxLayout;

namespace fuseline::gui {

class EditBar : public QFrame {
  Q_OBJECT
 public:
  explicit EditBar(QWidget* parent);
  void show_notice(const EditNotice& notice);
  void show_hint(const QString& text);
  [[nodiscard]] QString text() const;
  // With all of its text and buttons, in that width.
  [[nodiscard]] int height_for(int width) const;
  [[nodiscard]] Colour stripe() const { return role_; }

 signals:
  void came();  // with another text
  void chosen(const fuseline::gui::Suggestion& suggestion);

 protected:
  void changeEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;  // Esc closes

 private:
  void set(const QString& text, Colour stripe, const std::vector<Suggestion>& suggestions);
  void restyle();

  QLabel* text_;
  QLabel* stripe_;
  QWidget* choices_;
  QVBoxLayout* choices_layout_;
  QScrollArea* scroll_;
  Colour role_{ColourRole::neutral, 0};
};

}  // namespace fuseline::gui
