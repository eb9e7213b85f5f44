// An editor for our languages: numbers beside the lines, coloured words, and a mark where the text
// is wrong. It has no undo of its own: undoing is the session's, for text and controls alike.
#pragma once

#include <QPlainTextEdit>
#include <QString>
#include <QTextBlock>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "gui/model/block_editor.h"
#include "gui/widgets/theme.h"

namespace fuseline::gui {

// What the words of a line are, of one of our languages.
using WordsOfLine = std::vector<WordSpan> (*)(std::string_view line);

// The colour of a word, on the background of texts.
QColor colour_of(const Theme& theme, WordRole role);

class CodeEdit : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit CodeEdit(QWidget* parent, WordsOfLine words = &words_of_line);

  // The text as a program changes it: typed() is not told. The cursor goes behind what differs.
  void show_text(const QString& text);
  // Line and byte column as BlockProblem has them; no line: no mark.
  void mark(const std::optional<BlockProblem>& problem);
  void go_to_mark();
  // Lines, 1-based, with a tint: what belongs to something that is chosen elsewhere.
  void light(const std::set<int>& lines);
  void scroll_to(int line);  // 1-based; the cursor stays
  [[nodiscard]] int first_line() const {
    return firstVisibleBlock().blockNumber();
  }  // seen, from 0
  void restyle();

  // Nobody sees it any more: keeps the text, the cursor and the place, and gives up the lines that
  // Qt made of the text, which take many times its memory.
  void put_away();
  // Makes the lines again. True if another text was given meanwhile: then the cursor is at its
  // begin.
  bool take_back();
  [[nodiscard]] QString text() const { return away_ ? away_->text : toPlainText(); }

 signals:
  void typed(const QString& text);
  void line_changed(int line);  // that the cursor is in, 1-based
  void line_ended();            // Return was pressed, or the cursor went to another line

 protected:
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Away {
    QString text;
    int anchor, position;  // of the cursor
    int across, down;      // of the scroll bars
    bool changed = false;
  };
  class Numbers;
  class Colours;
  [[nodiscard]] int numbers_width() const;
  void paint_numbers(QPaintEvent* event);
  void show_mark();

  WordsOfLine words_;
  Numbers* numbers_;
  Colours* colours_;
  std::optional<BlockProblem> problem_;
  std::set<int> lit_;
  std::optional<Away> away_;
  int line_ = 0;
  bool quiet_ = false;
};

}  // namespace fuseline::gui
