#include "gui/widgets/edit_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

EditBar::EditBar(QWidget* parent)
    : QFrame(parent),
      text_(new QLabel(this)),
      stripe_(new QLabel(this)),
      choices_(new QWidget(this)),
      choices_layout_(new QVBoxLayout(choices_)) {
  setObjectName("edit-bar");
  text_->setObjectName("edit-text");
  text_->setWordWrap(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  stripe_->setFixedWidth(5);
  auto* close = new QToolButton(this);
  close->setText("×");
  close->setAutoRaise(true);
  close->setToolTip(tr("Close (Esc)"));
  connect(close, &QToolButton::clicked, this, &QWidget::hide);
  choices_layout_->setContentsMargins(0, 0, 0, 0);
  choices_layout_->setSpacing(4);
  auto* middle = new QVBoxLayout;
  middle->setContentsMargins(0, 6, 0, 6);
  middle->addWidget(text_);
  middle->addWidget(choices_);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 4, 0);
  row->setSpacing(8);
  row->addWidget(stripe_);
  row->addLayout(middle, 1);
  row->addWidget(close, 0, Qt::AlignTop);
  hide();
}

QString EditBar::text() const { return text_->text(); }

void EditBar::show_notice(const EditNotice& notice) {
  QString text = to_qt(notice.text);
  if (!notice.legal) text = tr("Not possible: %1").arg(text);
  if (!notice.suggestions.empty()) text += tr("\nNearest that is legal:");
  set(text, notice.legal ? ColourRole::better : ColourRole::worse, notice.suggestions);
}

void EditBar::show_hint(const QString& text) { set(text, ColourRole::limit, {}); }

void EditBar::set(const QString& text, ColourRole stripe,
                  const std::vector<Suggestion>& suggestions) {
  text_->setText(text);
  role_ = stripe;
  while (QLayoutItem* item = choices_layout_->takeAt(0)) {
    item->widget()->hide();
    item->widget()->deleteLater();
    delete item;
  }
  for (const Suggestion& suggestion : suggestions) {
    auto* button = new QPushButton(to_qt(suggestion.text), choices_);
    button->setObjectName("suggestion");
    button->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
    connect(button, &QPushButton::clicked, this, [this, suggestion] {
      const Suggestion taken = suggestion;
      hide();
      emit chosen(taken);
    });
    choices_layout_->addWidget(button);
  }
  choices_->setVisible(!suggestions.empty());
  restyle();
  show();
}

void EditBar::restyle() {
  const Theme theme(palette());
  QPalette p = stripe_->palette();
  p.setColor(QPalette::Window, theme.colour(role_));
  stripe_->setAutoFillBackground(true);
  stripe_->setPalette(p);
}

void EditBar::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) restyle();
}

void EditBar::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) {
    hide();
    return;
  }
  QFrame::keyPressEvent(event);
}

}  // namespace fuseline::gui
