#include "gui/widgets/code_edit.h"

#include <QEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QScrollBar>
#include <QSyntaxHighlighter>
#include <QTextBlock>
#include <algorithm>
#include <utility>

namespace fuseline::gui {

namespace {

constexpr int kNumberMargin = 6;

// Letters of a line up to a column that counts bytes.
int letters_until(const QString& line, int column) {
  return QString::fromUtf8(line.toUtf8().left(std::max(0, column - 1))).size();
}

}  // namespace

QColor colour_of(const Theme& theme, WordRole role) {
  const QColor text = theme.colour(ColourRole::text);
  switch (role) {
    case WordRole::comment:
      return theme.colour(ColourRole::muted);
    case WordRole::label:
      return mixed(theme.colour(ColourRole::kind_norm), text, 0.45);
    case WordRole::function:
      return mixed(theme.colour(ColourRole::kind_gemm), text, 0.35);
    case WordRole::number:
      return mixed(theme.colour(ColourRole::kind_attention), text, 0.45);
    case WordRole::keyword:
      break;
  }
  return text;
}

class CodeEdit::Numbers : public QWidget {
 public:
  explicit Numbers(CodeEdit* edit) : QWidget(edit), edit_(*edit) {}

 protected:
  void paintEvent(QPaintEvent* event) override { edit_.paint_numbers(event); }

 private:
  CodeEdit& edit_;
};

class CodeEdit::Colours : public QSyntaxHighlighter {
 public:
  explicit Colours(CodeEdit* edit) : QSyntaxHighlighter(edit->document()), edit_(*edit) {}

 protected:
  void highlightBlock(const QString& line) override {
    const Theme theme(edit_.palette());
    const QByteArray bytes = line.toUtf8();
    for (const WordSpan& word :
         edit_.words_({bytes.constData(), static_cast<std::size_t>(bytes.size())})) {
      const int begin = letters_until(line, static_cast<int>(word.begin) + 1);
      const int end = letters_until(line, static_cast<int>(word.begin + word.length) + 1);
      QTextCharFormat format;
      format.setForeground(colour_of(theme, word.role));
      if (word.role == WordRole::keyword) format.setFontWeight(QFont::DemiBold);
      setFormat(begin, end - begin, format);
    }
  }

 private:
  CodeEdit& edit_;
};

CodeEdit::CodeEdit(QWidget* parent, WordsOfLine words)
    : QPlainTextEdit(parent),
      words_(words),
      numbers_(new Numbers(this)),
      colours_(new Colours(this)) {
  setFont(code_font(font()));
  setLineWrapMode(QPlainTextEdit::NoWrap);
  setUndoRedoEnabled(false);
  setTabChangesFocus(true);  // blocks are indented with spaces
  setFrameShape(QFrame::NoFrame);
  connect(this, &QPlainTextEdit::blockCountChanged, this,
          [this] { setViewportMargins(numbers_width(), 0, 0, 0); });
  connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect& area, int moved) {
    if (moved != 0)
      numbers_->scroll(0, moved);
    else
      numbers_->update(0, area.y(), numbers_->width(), area.height());
  });
  connect(this, &QPlainTextEdit::textChanged, this, [this] {
    if (!quiet_ && !away_) emit typed(toPlainText());
  });
  connect(this, &QPlainTextEdit::cursorPositionChanged, this, [this] {
    if (away_) return;
    const int line = textCursor().blockNumber();
    if (std::exchange(line_, line) == line) return;
    if (!quiet_) emit line_ended();
    emit line_changed(line + 1);
  });
  setViewportMargins(numbers_width(), 0, 0, 0);
}

void CodeEdit::show_text(const QString& text) {
  if (away_) {
    away_->changed = away_->changed || away_->text != text;
    away_->text = text;
    return;
  }
  const QString now = toPlainText();
  if (now == text) return;
  // Only what differs is replaced, so that the view does not jump.
  int same = 0;
  const int least = std::min(now.size(), text.size());
  while (same < least && now[same] == text[same]) ++same;
  int tail = 0;
  while (tail < least - same && now[now.size() - 1 - tail] == text[text.size() - 1 - tail]) ++tail;
  quiet_ = true;
  QTextCursor cursor(document());
  cursor.setPosition(same);
  cursor.setPosition(now.size() - tail, QTextCursor::KeepAnchor);
  cursor.insertText(text.mid(same, text.size() - same - tail));
  const bool whole = same == 0 || now.isEmpty();
  if (whole) cursor.setPosition(0);
  setTextCursor(cursor);
  quiet_ = false;
  show_mark();
}

void CodeEdit::mark(const std::optional<BlockProblem>& problem) {
  problem_ = problem;
  show_mark();
}

void CodeEdit::light(const std::set<int>& lines) {
  if (lines == lit_) return;
  lit_ = lines;
  show_mark();
}

// A line of a text that does not wrap is one step of the scroll bar.
void CodeEdit::scroll_to(int line) {
  const QTextBlock block = document()->findBlockByNumber(std::max(0, line - 1));
  const int shown = viewport()->height() / std::max(1, fontMetrics().lineSpacing());
  const int first = verticalScrollBar()->value();
  if (!block.isValid() || (line > first && line <= first + shown)) return;
  verticalScrollBar()->setValue(std::max(0, line - 1 - shown / 3));
}

void CodeEdit::go_to_mark() {
  if (!problem_ || problem_->line < 1) return;
  const QTextBlock block = document()->findBlockByNumber(problem_->line - 1);
  QTextCursor cursor(block);
  cursor.setPosition(block.position() + letters_until(block.text(), problem_->column));
  setTextCursor(cursor);
  centerCursor();
  setFocus();
}

// The line has a tint, and the word that is to blame a wave.
void CodeEdit::show_mark() {
  if (away_) return;
  QList<QTextEdit::ExtraSelection> marks;
  numbers_->update();
  const QColor tint =
      mixed(palette().color(QPalette::Base), Theme(palette()).colour(ColourRole::highlight), 0.22);
  for (const int lit : lit_) {
    QTextEdit::ExtraSelection line;
    line.cursor = QTextCursor(document()->findBlockByNumber(std::max(0, lit - 1)));
    line.format.setBackground(tint);
    line.format.setProperty(QTextFormat::FullWidthSelection, true);
    marks << line;
  }
  const QTextBlock block =
      document()->findBlockByNumber(problem_ ? std::max(0, problem_->line - 1) : 0);
  if (problem_ && problem_->line > 0 && block.isValid()) {
    const QColor wrong = Theme(palette()).colour(ColourRole::worse);
    QTextEdit::ExtraSelection line;
    line.cursor = QTextCursor(block);
    line.format.setBackground(mixed(palette().color(QPalette::Base), wrong, 0.18));
    line.format.setProperty(QTextFormat::FullWidthSelection, true);
    marks << line;
    const QString text = block.text();
    const int begin = std::min(letters_until(text, problem_->column), text.size());
    int end = begin;
    while (end < text.size() && (text[end].isLetterOrNumber() || text[end] == '_')) ++end;
    QTextEdit::ExtraSelection word;
    word.cursor = QTextCursor(block);
    word.cursor.setPosition(block.position() + begin);
    word.cursor.setPosition(block.position() + std::min(std::max(end, begin + 1), text.size()),
                            QTextCursor::KeepAnchor);
    word.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
    word.format.setUnderlineColor(wrong);
    marks << word;
  }
  setExtraSelections(marks);
}

// Qt says that the text changed when its colours do. Nobody typed, and Qt is telling all widgets of
// the new palette: nothing may be made or deleted by that.
void CodeEdit::restyle() {
  const bool was_quiet = std::exchange(quiet_, true);
  setFont(code_font(parentWidget() != nullptr ? parentWidget()->font() : font()));
  colours_->rehighlight();
  show_mark();
  quiet_ = was_quiet;
}

void CodeEdit::put_away() {
  if (away_) return;
  const QTextCursor cursor = textCursor();
  away_ = {toPlainText(), cursor.anchor(), cursor.position(), horizontalScrollBar()->value(),
           verticalScrollBar()->value()};
  quiet_ = true;
  setExtraSelections({});
  clear();
  quiet_ = false;
  // A click on another tab leaves the keys here, where nobody sees what they do.
  if (hasFocus()) clearFocus();
}

bool CodeEdit::take_back() {
  if (!away_) return false;
  quiet_ = true;
  setPlainText(away_->text);
  if (!away_->changed) {
    QTextCursor cursor(document());
    cursor.setPosition(away_->anchor);
    cursor.setPosition(away_->position, QTextCursor::KeepAnchor);
    setTextCursor(cursor);
    horizontalScrollBar()->setValue(away_->across);
    verticalScrollBar()->setValue(away_->down);
  }
  quiet_ = false;
  line_ = textCursor().blockNumber();
  const bool changed = away_->changed;
  away_.reset();
  show_mark();
  return changed;
}

// Ctrl+Z is the window's: Qt would keep it from there.
bool CodeEdit::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
      event->ignore();
      return false;
    }
  }
  return QPlainTextEdit::event(event);
}

void CodeEdit::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  const QRect inner = contentsRect();
  numbers_->setGeometry(inner.left(), inner.top(), numbers_width(), inner.height());
}

int CodeEdit::numbers_width() const {
  const QString widest(QString::number(std::max(99, blockCount())).size(), '9');
  return fontMetrics().horizontalAdvance(widest) + 2 * kNumberMargin;
}

void CodeEdit::paint_numbers(QPaintEvent* event) {
  const Theme theme(palette());
  QPainter painter(numbers_);
  painter.fillRect(event->rect(), theme.surface());
  painter.setFont(font());
  const int height = fontMetrics().height();
  for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
    const QRectF area = blockBoundingGeometry(block).translated(contentOffset());
    if (area.top() > event->rect().bottom()) break;
    const bool wrong = problem_ && problem_->line == block.blockNumber() + 1;
    painter.setPen(theme.colour(wrong ? ColourRole::worse : ColourRole::muted));
    painter.drawText(0, static_cast<int>(area.top()), numbers_->width() - kNumberMargin, height,
                     Qt::AlignRight, QString::number(block.blockNumber() + 1));
  }
}

}  // namespace fuseline::gui
