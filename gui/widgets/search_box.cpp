#include "gui/widgets/search_box.h"

#include <QCompleter>
#include <QStringListModel>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

SearchBox::SearchBox(Session& session, QWidget* parent)
    : QLineEdit(parent),
      session_(session),
      texts_(new QStringListModel(this)),
      completer_(new QCompleter(texts_, this)) {
  setObjectName("search");
  setPlaceholderText(tr("Find an operator, tensor, kernel…"));
  setToolTip(tr("Find an operator, tensor, kernel or run (Ctrl+F)"));
  setClearButtonEnabled(true);
  setMaximumWidth(320);
  completer_->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
  setCompleter(completer_);
  connect(this, &QLineEdit::textEdited, this, &SearchBox::look_up);
  connect(completer_, QOverload<const QString&>::of(&QCompleter::activated), this,
          &SearchBox::take);
  connect(completer_, QOverload<const QString&>::of(&QCompleter::highlighted), this,
          [this](const QString& text) {
            for (const SearchHit& hit : hits_) {
              if (to_qt(hit.text) == text) session_.hover(hit.thing);
            }
          });
  connect(this, &QLineEdit::returnPressed, this, [this] {
    if (!hits_.empty()) take(to_qt(hits_.front().text));
  });
}

void SearchBox::look_up(const QString& text) {
  hits_ = text.trimmed().isEmpty() ? std::vector<SearchHit>()
                                   : search(session_.bench().results(), from_qt(text.trimmed()));
  QStringList texts;
  for (const SearchHit& hit : hits_) texts << to_qt(hit.text);
  texts_->setStringList(texts);
}

void SearchBox::take(const QString& text) {
  for (const SearchHit& hit : hits_) {
    if (to_qt(hit.text) != text) continue;
    const Thing thing = hit.thing;  // selecting may search again
    session_.hover({});
    session_.select(thing);
    return;
  }
}

}  // namespace fuseline::gui
