#include "gui/widgets/details_panel.h"

#include <QEvent>
#include <QScrollBar>

#include "gui/model/details.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

DetailsPanel::DetailsPanel(Session& session, QWidget* parent)
    : QTextBrowser(parent), session_(session) {
  setObjectName("details");
  setFrameShape(QFrame::NoFrame);
  setOpenLinks(false);
  setAccessibleName(tr("Details"));
}

void DetailsPanel::refresh() {
  const Theme theme(palette());
  const QString muted = theme.colour(ColourRole::muted).name();
  const Thing& shown = session_.bench().selection().shown();
  const Details details = details_of(session_.bench().results(), shown);
  if (details.title.empty()) {
    shown_.clear();
    setHtml(QString("<p style='color:%1'>%2</p>")
                .arg(muted, tr("Click an edge that bears a plus: its tensor stays on chip, in a "
                               "run of its own. Point at anything for its exact numbers and where "
                               "they come from. Press ? for the shortcuts.")));
    return;
  }
  QString html = QString("<p style='font-weight:600; margin:2px 0 4px 0'>%1</p><table>")
                     .arg(to_qt(details.title).toHtmlEscaped());
  if (const EdgePreview* preview =
          shown.kind == ThingKind::edge ? session_.preview(shown.edge) : nullptr) {
    const Colour role = preview->legal ? preview->saving.colour : Colour{ColourRole::worse, 3};
    html += QString(
                "<tr><td style='color:%1; padding-right:10px'>%2</td>"
                "<td style='color:%3'>%4</td></tr>")
                .arg(muted, tr("a click"), theme.colour(role).name(),
                     to_qt(preview->text).toHtmlEscaped());
  }
  for (const DetailLine& line : details.lines) {
    html += QString("<tr><td style='color:%1; padding-right:10px'>%2</td><td>%3</td></tr>")
                .arg(muted, to_qt(line.name).toHtmlEscaped(), to_qt(line.value).toHtmlEscaped());
  }
  html += "</table>";
  for (const HardwareConstant& constant : details.constants) {
    html += QString("<p style='margin:4px 0 0 0; color:%1'>%2</p>")
                .arg(muted, to_qt(details_text(constant)).toHtmlEscaped());
  }
  if (html == shown_) return;  // it is asked for at every move of the mouse, and laying out is slow
  shown_ = html;
  // The text is taken out before the new one comes in. Without this the scroll bar would go and
  // come back, and Qt would lay the text out for each width.
  setVerticalScrollBarPolicy(verticalScrollBar()->maximum() > 0 ? Qt::ScrollBarAlwaysOn
                                                                : Qt::ScrollBarAlwaysOff);
  setHtml(html);
  setVerticalScrollBarPolicy(Qt::ScrollBarAsNeeded);
}

void DetailsPanel::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refresh();
}

}  // namespace fuseline::gui
