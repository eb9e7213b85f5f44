// A text of one of our languages as HTML, for pictures: numbered lines, coloured words, and the
// mistake where there is one.
#pragma once

#include <QFont>
#include <QString>
#include <optional>
#include <set>

#include "gui/widgets/code_edit.h"

namespace fuseline::gui {

struct CodeText {
  QString title;
  QString text;
  std::optional<BlockProblem> problem;
  WordsOfLine words;
  int first = 0;             // line that is drawn first, counted from 0
  int most = 1'000'000'000;  // lines that are drawn
  std::set<int> lit{};       // lines with a tint, counted from 1
};
QString code_html(const CodeText& code, const Theme& theme, const QFont& font);

}  // namespace fuseline::gui
