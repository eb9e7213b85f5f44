#include "gui/widgets/program_view.h"

#include <QScrollBar>
#include <QTextBrowser>
#include <QUrl>
#include <QVBoxLayout>

#include "gui/model/shown_kernel.h"
#include "gui/widgets/html_picture.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

QString hex(const QColor& c) { return c.name(); }

}  // namespace

ProgramView::ProgramView(Workbench& workbench, QWidget* parent)
    : View(workbench, parent), text_(new QTextBrowser(this)) {
  text_->setObjectName("program-text");
  text_->setFrameShape(QFrame::NoFrame);
  text_->setOpenLinks(false);
  text_->setLineWrapMode(QTextEdit::WidgetWidth);
  text_->setAccessibleName(tr("Program of the selected kernel"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(text_);
  setFocusProxy(text_);
  const auto note_of = [this](const QUrl& url) -> Thing {
    const auto index = static_cast<std::size_t>(url.toString().midRef(1).toUInt());
    return url.isEmpty() || index >= program_.notes.size() ? Thing{} : program_.notes[index].thing;
  };
  connect(text_, QOverload<const QUrl&>::of(&QTextBrowser::highlighted), this,
          [this, note_of](const QUrl& url) { emit hovered(note_of(url)); });
  connect(text_, &QTextBrowser::anchorClicked, this,
          [this, note_of](const QUrl& url) { emit selected(note_of(url)); });
}

QString ProgramView::hint() const {
  return tr("What the selected kernel executes, and for each neighbour why it is or is not fused.");
}

QString ProgramView::html() const {
  const Theme t = theme();
  const QFont code = code_font(font());
  QString out =
      QString("<p style='font-weight:600'>%1</p>").arg(to_qt(program_.title).toHtmlEscaped());
  if (!program_.problem.empty()) {
    out += QString("<p style='color:%1'>%2</p>")
               .arg(hex(t.colour(ColourRole::muted)), to_qt(program_.problem).toHtmlEscaped());
  }
  const QString pre = QString(
                          "<pre style='font-family:\"%1\"; font-size:%2pt; background:%3; "
                          "margin:6px; white-space:pre-wrap'>%4</pre>")
                          .arg(code.family())
                          .arg(code.pointSizeF())
                          .arg(hex(t.surface()));
  for (std::size_t i = 0; i < program_.phases.size(); ++i) {
    if (program_.phases.size() > 1) out += QString("<p>phase %1</p>").arg(i + 1);
    out += pre.arg(to_qt(program_.phases[i]).toHtmlEscaped());
  }
  if (!program_.code.empty()) {
    out += QString("<p style='color:%1'>code that was measured: %2</p>")
               .arg(hex(t.colour(ColourRole::muted)), to_qt(program_.code).toHtmlEscaped());
  }
  if (program_.notes.empty()) return out;
  out += QString("<p style='font-weight:600'>%1</p>").arg(tr("Neighbours"));
  for (std::size_t i = 0; i < program_.notes.size(); ++i) {
    const ProgramNote& note = program_.notes[i];
    const QColor mark = t.colour(note.fused ? ColourRole::on_chip : ColourRole::bound_hbm);
    out += QString(
               "<p style='margin:2px 0 4px 0'><span style='color:%1'>%2</span> "
               "<a href='#%3' style='color:%4; text-decoration:none'>%5</a></p>")
               .arg(hex(mark), note.fused ? "●" : "○", QString::number(i),
                    hex(t.colour(ColourRole::text)), to_qt(note.text).toHtmlEscaped());
  }
  return out;
}

void ProgramView::refresh() {
  const RunId run = bench().shown_run();
  if (bench().results().find(run) == nullptr) return;
  const std::size_t kernel = kernel_to_show(bench());
  asked_ = bench().selection().selected;
  program_ = program_text(bench().results(), run, kernel);
  const Thing now = kernel_thing(run, kernel);
  const int place = now == shown_ ? text_->verticalScrollBar()->value() : 0;
  shown_ = now;
  text_->setHtml(html());
  text_->verticalScrollBar()->setValue(place);
}

void ProgramView::show_highlight(const Highlight&) {
  if (!(bench().selection().selected == asked_)) refresh();
}

void ProgramView::restyle() { text_->setHtml(html()); }

void ProgramView::paint_to(QPainter& painter, QSize size) {
  paint_html(painter, size, html(), theme(), font());
}

std::vector<Table> ProgramView::tables() const {
  Table table{"program", {"from", "to", "fused", "note"}, {}};
  for (const ProgramNote& note : program_.notes) {
    add_row(table,
            {note.edge.from, note.edge.to, std::string(note.fused ? "yes" : "no"), note.text},
            program_.about);
  }
  return {table};
}

}  // namespace fuseline::gui
