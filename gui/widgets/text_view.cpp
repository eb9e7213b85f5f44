#include "gui/widgets/text_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kPauseBehindWordsMs = 1200;

}  // namespace

TextView::TextView(Session& of, QWidget* parent, const QString& name, const Words& words)
    : View(of.bench(), parent),
      session_(of),
      state_(new QLabel(this)),
      save_(new QToolButton(this)),
      reset_(new QToolButton(this)),
      edit_(new CodeEdit(this, words.words)),
      row_(new QHBoxLayout),
      column_(new QVBoxLayout(this)) {
  state_->setObjectName(name + "-state");
  save_->setObjectName(name + "-save");
  save_->setText(tr("Save as…"));
  save_->setToolTip(words.save);
  reset_->setObjectName(name + "-reset");
  reset_->setText(tr("Reset"));
  reset_->setToolTip(words.reset);
  for (QToolButton* button : {save_, reset_}) button->setAutoRaise(true);
  edit_->setObjectName(name + "-text");
  edit_->setAccessibleName(words.of_text);
  row_->setContentsMargins(8, 4, 4, 0);
  row_->addWidget(state_, 1);
  row_->addWidget(reset_);
  row_->addWidget(save_);
  column_->setContentsMargins(0, 0, 0, 0);
  column_->setSpacing(2);
  column_->addLayout(row_);
  column_->addWidget(edit_, 1);
  setFocusProxy(edit_);

  pause_.setSingleShot(true);
  pause_.setInterval(kPauseBehindWordsMs);
  connect(&pause_, &QTimer::timeout, this, [this] { bench().end_gesture(); });
  connect(edit_, &CodeEdit::line_ended, this, [this] { bench().end_gesture(); });
  connect(&session_, &Session::document_changed, this, [this] {
    stale_ = visibleRegion().isEmpty();  // behind another tab
    if (!stale_) show_document();
  });
}

Table TextView::lines_table(const std::string& name, const QString& text, const Subject& about) {
  Table table{name, {"line", "text"}, {}};
  std::int64_t number = 0;
  for (const QString& line : text.split('\n')) add_row(table, {++number, from_qt(line)}, about);
  return table;
}

}  // namespace fuseline::gui
