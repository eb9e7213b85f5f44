// The text of the block, to read and to edit: predictions follow it.
#pragma once

#include "gui/model/block_editor.h"
#include "gui/widgets/text_view.h"

class QToolButton;

namespace fuseline::gui {

class ShortCombo;

class BlockView : public TextView {
  Q_OBJECT
 public:
  BlockView(Session& of, QWidget* parent);

  [[nodiscard]] QString id() const override { return "block"; }
  [[nodiscard]] QString title() const override { return tr("Block"); }
  [[nodiscard]] QString hint() const override;
  void restyle() override;
  void paint_to(QPainter& painter, QSize size) override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] const BlockEditorText& shown() const { return shown_; }
  // Asks for a name where the text has none of its own yet, or `again`.
  bool save(bool again);
  void save_as(const std::filesystem::path& path);

 private:
  void show_document() override;
  void show_state();
  void fill_choices();
  void choose(int index);
  [[nodiscard]] QString html() const;

  ShortCombo* choice_;
  QToolButton* problem_;
  BlockEditorText shown_;
};

}  // namespace fuseline::gui
