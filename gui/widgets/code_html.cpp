#include "gui/widgets/code_html.h"

#include <QStringList>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

QString html_of_line(const QString& line, const CodeText& code, const Theme& theme) {
  const QByteArray bytes = line.toUtf8();
  const auto part = [&](std::size_t begin, std::size_t end) {
    return QString::fromUtf8(bytes.mid(static_cast<int>(begin), static_cast<int>(end - begin)))
        .toHtmlEscaped();
  };
  QString text;
  std::size_t reached = 0;
  for (const WordSpan& word :
       code.words({bytes.constData(), static_cast<std::size_t>(bytes.size())})) {
    text += part(reached, word.begin);
    reached = word.begin + word.length;
    text += QString("<span style='color:%1%2'>%3</span>")
                .arg(colour_of(theme, word.role).name(),
                     word.role == WordRole::keyword ? "; font-weight:600" : "",
                     part(word.begin, reached));
  }
  return text + part(reached, static_cast<std::size_t>(bytes.size()));
}

}  // namespace

QString code_html(const CodeText& code, const Theme& theme, const QFont& font) {
  const QFont letters = code_font(font);
  const QString muted = theme.colour(ColourRole::muted).name();
  const QColor wrong = theme.colour(ColourRole::worse);
  const QStringList lines = code.text.split('\n');
  const int width = QString::number(lines.size()).size();
  QString out = QString(
                    "<p style='font-weight:600'>%1</p><pre style='font-family:\"%2\"; "
                    "font-size:%3pt; white-space:pre-wrap'>")
                    .arg(code.title.toHtmlEscaped(), letters.family())
                    .arg(letters.pointSizeF());
  for (int i = code.first; i < lines.size() && i - code.first < code.most; ++i) {
    if (i + 1 == lines.size() && lines[i].isEmpty()) break;
    const bool here = code.problem && code.problem->line == i + 1;
    out += QString("<span style='color:%1'>%2  </span>")
               .arg(here ? wrong.name() : muted, QString::number(i + 1).rightJustified(width));
    const QString text = html_of_line(lines[i], code, theme);
    const bool lit = code.lit.contains(i + 1);
    const QColor tint = here ? mixed(theme.background(), wrong, 0.18)
                             : mixed(theme.background(), theme.colour(ColourRole::highlight), 0.22);
    out += here || lit ? QString("<span style='background:%1'>%2</span>").arg(tint.name(), text)
                       : text;
    out += "\n";
  }
  out += "</pre>";
  if (code.problem)
    out += QString("<p style='color:%1'>%2</p>")
               .arg(wrong.name(), to_qt(code.problem->text).toHtmlEscaped());
  return out;
}

}  // namespace fuseline::gui
