#include "gui/widgets/edit_bar.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kBarStripe = 5, kBarSpace = 8, kBarBeside = 4, kBarAround = 6;  // px

}  // namespace

EditBar::EditBar(QWidget* parent)
    : QFrame(parent),
      text_(new QLabel(this)),
      stripe_(new QLabel(this)),
      choices_(new QWidget(this)),
      choices_layout_(new QVBoxLayout(choices_)),
      scroll_(new QScrollArea(this)) {
  setObjectName("edit-bar");
  setFrameShape(QFrame::StyledPanel);
  setBackgroundRole(QPalette::AlternateBase);
  setAutoFillBackground(true);
  text_->setObjectName("edit-text");
  text_->setWordWrap(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  stripe_->setFixedWidth(kBarStripe);
  auto* close = new QToolButton(this);
  close->setText("×");
  close->setAutoRaise(true);
  close->setToolTip(tr("Close (Esc)"));
  connect(close, &QToolButton::clicked, this, &QWidget::hide);
  choices_layout_->setContentsMargins(0, 0, 0, 0);
  choices_layout_->setSpacing(4);
  auto* content = new QWidget;
  auto* middle = new QVBoxLayout(content);
  middle->setContentsMargins(0, kBarAround, 0, kBarAround);
  middle->setSpacing(kBarAround);
  middle->addWidget(text_);
  middle->addWidget(choices_);
  middle->addStretch(1);
  scroll_->setWidget(content);
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
  scroll_->viewport()->setAutoFillBackground(false);
  content->setAutoFillBackground(false);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, kBarBeside, 0);
  row->setSpacing(kBarSpace);
  row->addWidget(stripe_);
  row->addWidget(scroll_, 1);
  row->addWidget(close, 0, Qt::AlignTop);
  hide();
}

QString EditBar::text() const { return text_->text(); }

int EditBar::height_for(int width) const {
  const QToolButton* close = findChild<QToolButton*>();
  const int inner = width - kBarStripe - 2 * kBarSpace - kBarBeside - close->sizeHint().width() - 2;
  int height = text_->heightForWidth(inner) + 2 * kBarAround + 2;
  if (!choices_->isHidden()) height += kBarAround + choices_->sizeHint().height();
  return std::max(height, close->sizeHint().height() + 2);
}

void EditBar::show_notice(const EditNotice& notice) {
  QString text = to_qt(notice.text);
  if (!notice.legal) text = tr("Not possible: %1").arg(text);
  if (!notice.suggestions.empty()) text += tr("\nNearest that is legal:");
  set(text, notice.legal ? notice.colour : Colour{ColourRole::worse, 3}, notice.suggestions);
}

void EditBar::show_hint(const QString& text) { set(text, {ColourRole::limit, 0}, {}); }

void EditBar::set(const QString& text, Colour stripe, const std::vector<Suggestion>& suggestions) {
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
    button->setToolTip(button->text());
    connect(button, &QPushButton::clicked, this, [this, suggestion] {
      const Suggestion taken = suggestion;
      hide();
      emit chosen(taken);
    });
    choices_layout_->addWidget(button);
  }
  choices_->setVisible(!suggestions.empty());
  scroll_->verticalScrollBar()->setValue(0);
  restyle();
  emit came();  // before it is seen, so that it has its place
  show();
  raise();
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
