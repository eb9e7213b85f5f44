// The text of the block, to read and to edit: predictions follow it.
#pragma once

#include <QTimer>

#include "gui/model/block_editor.h"
#include "gui/widgets/session.h"
#include "gui/widgets/view.h"

class QLabel;
class QToolButton;

namespace fuseline::gui {

class CodeEdit;
class ShortCombo;

class BlockView : public View {
  Q_OBJECT
 public:
  BlockView(Session& session, QWidget* parent);

  [[nodiscard]] QString id() const override { return "block"; }
  [[nodiscard]] QString title() const override { return tr("Block"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] CodeEdit& edit() const { return *edit_; }
  [[nodiscard]] const BlockEditorText& shown() const { return shown_; }
  // Asks for a name where the text has none of its own yet, or `again`.
  bool save(bool again);
  void save_as(const std::filesystem::path& path);

 private:
  void show_document();
  void show_state();
  void fill_choices();
  void choose(int index);
  [[nodiscard]] QString html() const;

  Session& session_;
  ShortCombo* choice_;
  QLabel* state_;
  QToolButton *save_, *reset_;
  CodeEdit* edit_;
  QToolButton* problem_;
  bool stale_ = false;  // nobody saw the view when the document changed
  QTimer pause_;        // behind which the next word is a step of its own to undo
  BlockEditorText shown_;
};

}  // namespace fuseline::gui
