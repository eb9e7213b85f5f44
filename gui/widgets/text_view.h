// What the editors of a block and of a plan share: the text, a row that says its state and has
// Reset and Save, and that the words of a gesture are one step to undo.
#pragma once

#include <QTimer>

#include "gui/widgets/code_edit.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QHBoxLayout;
class QLabel;
class QToolButton;
class QVBoxLayout;

namespace fuseline::gui {

class TextView : public View {
  Q_OBJECT
 public:
  void refresh() override { show_document(); }
  void show_highlight(const Highlight&) override {
    edit_->take_back();
    if (stale_) show_document();  // told to when it is raised, too
  }
  void put_away() override { edit_->put_away(); }
  [[nodiscard]] CodeEdit& edit() const { return *edit_; }

 protected:
  struct Words {
    QString of_text, save, reset;  // for screen readers; tooltips
    WordsOfLine words = &words_of_line;
  };
  // Widgets are called `name`-text, `name`-save and so on.
  TextView(Session& of, QWidget* parent, const QString& name, const Words& words);

  virtual void show_document() = 0;  // the session's text, or what became of it
  // What was typed is a step of its own after a pause.
  void begin_pause() { pause_.start(); }
  [[nodiscard]] Session& session() const { return session_; }
  [[nodiscard]] QHBoxLayout& row() const { return *row_; }        // state, Reset, Save
  [[nodiscard]] QVBoxLayout& column() const { return *column_; }  // the row, the text
  [[nodiscard]] QLabel& state() const { return *state_; }
  [[nodiscard]] QToolButton& save_button() const { return *save_; }
  [[nodiscard]] QToolButton& reset_button() const { return *reset_; }
  void is_shown() { stale_ = false; }
  // A row each line.
  static Table lines_table(const std::string& name, const QString& text, const Subject& about);

 private:
  Session& session_;
  QLabel* state_;
  QToolButton *save_, *reset_;
  CodeEdit* edit_;
  QHBoxLayout* row_;
  QVBoxLayout* column_;
  QTimer pause_;
  bool stale_ = false;  // nobody saw the view when the document changed
};

}  // namespace fuseline::gui
