#include "gui/widgets/help_dialogs.h"

#include <QAction>
#include <QDialogButtonBox>
#include <QLineEdit>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "gui/model/glossary.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

QDialog* text_dialog(const QString& title, const QString& name, const QString& html, QSize size,
                     QWidget* parent, QTextBrowser** browser = nullptr) {
  auto* dialog = new QDialog(parent);
  dialog->setObjectName(name);
  dialog->setWindowTitle(title);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  auto* text = new QTextBrowser(dialog);
  text->setFrameShape(QFrame::NoFrame);
  text->setHtml(html);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::close);
  auto* column = new QVBoxLayout(dialog);
  column->addWidget(text, 1);
  column->addWidget(buttons);
  dialog->resize(size);
  if (browser != nullptr) *browser = text;
  return dialog;
}

QString rows(const std::vector<Shortcut>& shortcuts) {
  QString html;
  for (const Shortcut& s : shortcuts) {
    html += QString(
                "<tr><td style='padding:2px 18px 2px 0; white-space:nowrap'><b>%1</b></td>"
                "<td style='padding:2px 0'>%2</td></tr>")
                .arg(s.keys.toHtmlEscaped(), s.text.toHtmlEscaped());
  }
  return html;
}

QString glossary_html(const QString& filter) {
  QString html;
  for (const Term& term : glossary()) {
    const QString name = to_qt(term.name), text = to_qt(term.text);
    if (!filter.isEmpty() && !name.contains(filter, Qt::CaseInsensitive) &&
        !text.contains(filter, Qt::CaseInsensitive)) {
      continue;
    }
    html += QString("<p><b>%1</b><br/>%2</p>").arg(name.toHtmlEscaped(), text.toHtmlEscaped());
  }
  return html.isEmpty() ? QObject::tr("<p>No such term.</p>") : html;
}

}  // namespace

std::vector<Shortcut> shortcuts_of(const std::vector<QAction*>& actions) {
  std::vector<Shortcut> all;
  for (const QAction* action : actions) {
    if (action->shortcut().isEmpty()) continue;
    QString text = action->text();
    text.remove('&');
    all.push_back({action->shortcut().toString(QKeySequence::NativeText), text});
  }
  return all;
}

std::vector<Shortcut> gestures() {
  return {
      {QObject::tr("click an edge"), QObject::tr("keep its tensor on chip, or split there")},
      {QObject::tr("Shift+drag"), QObject::tr("lasso: fuse all operators inside")},
      {QObject::tr("drag an operator"),
       QObject::tr("to another kernel, or out of its own; green can be done")},
      {QObject::tr("Ctrl+↑ ↓, M"),
       QObject::tr("choose an operator, move it: arrows aim, Enter drops, Esc puts it back")},
      {QObject::tr("arrow keys, Enter"), QObject::tr("choose an edge of the graph, toggle it")},
      {QObject::tr("wheel, + −"), QObject::tr("zoom graph and charts")},
      {QObject::tr("drag beside the operators"), QObject::tr("move the graph")},
      {QObject::tr("0"), QObject::tr("show the whole graph")},
      {QObject::tr("double click a run"), QObject::tr("make it the baseline")},
      {QObject::tr("point at anything"),
       QObject::tr("highlight it in all views, exact numbers below")},
  };
}

QDialog* shortcut_sheet(const std::vector<QAction*>& actions, QWidget* parent) {
  const QString html = QObject::tr(
                           "<h3>Keys</h3><table>%1</table><h3>In the views</h3>"
                           "<table>%2</table>")
                           .arg(rows(shortcuts_of(actions)), rows(gestures()));
  return text_dialog(QObject::tr("Shortcuts"), "shortcut-sheet", html, {520, 620}, parent);
}

QDialog* glossary_dialog(QWidget* parent) {
  QTextBrowser* browser = nullptr;
  QDialog* dialog = text_dialog(QObject::tr("Glossary"), "glossary", glossary_html({}), {560, 640},
                                parent, &browser);
  auto* filter = new QLineEdit(dialog);
  filter->setPlaceholderText(QObject::tr("Filter"));
  filter->setClearButtonEnabled(true);
  QObject::connect(filter, &QLineEdit::textChanged, browser,
                   [browser](const QString& text) { browser->setHtml(glossary_html(text)); });
  static_cast<QVBoxLayout*>(dialog->layout())->insertWidget(0, filter);
  filter->setFocus();
  return dialog;
}

}  // namespace fuseline::gui
