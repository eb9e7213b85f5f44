#include "gui/widgets/block_view.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QSignalBlocker>
#include <QToolButton>
#include <QVBoxLayout>
#include <filesystem>

#include "base/data_files.h"
#include "base/error.h"
#include "gui/model/choices.h"
#include "gui/widgets/code_edit.h"
#include "gui/widgets/code_html.h"
#include "gui/widgets/html_picture.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/short_combo.h"

namespace fuseline::gui {

namespace {

const char* const kTyping = "block-text";
const char* const kBlockFile = "\n";  // no name of a block
const char* const kBlockFilter = QT_TRANSLATE_NOOP("block", "Blocks (*.block);;All files (*)");

}  // namespace

BlockView::BlockView(Session& of, QWidget* parent)
    : TextView(of, parent, "block",
               {.of_text = tr("Text of the block"),
                .save = tr("Write the text into a .block file, which is then predicted"),
                .reset = tr("Back to what the block's file says")}),
      choice_(new ShortCombo(this)),
      problem_(new QToolButton(this)) {
  choice_->setObjectName("block-choice");
  choice_->setAccessibleName(tr("Block"));
  choice_->setToolTip(
      tr("The block that is predicted: the model's own, another shipped one, or a file"));
  problem_->setObjectName("block-problem");
  problem_->setToolTip(tr("Go to the place"));
  problem_->setAutoRaise(true);
  problem_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  problem_->hide();
  row().insertWidget(0, choice_, 1);
  row().setStretchFactor(&state(), 0);
  column().addWidget(problem_);

  connect(&edit(), &CodeEdit::typed, this, [this](const QString& text) {
    begin_pause();
    session().act([&](Workbench& b) { b.set_block_text(from_qt(text), kTyping); });
  });
  connect(problem_, &QToolButton::clicked, &edit(), &CodeEdit::go_to_mark);
  connect(&reset_button(), &QToolButton::clicked, this,
          [this] { session().act([](Workbench& b) { b.reset_block_text(); }); });
  connect(&save_button(), &QToolButton::clicked, this, [this] { save(true); });
  connect(choice_, QOverload<int>::of(&QComboBox::activated), this, &BlockView::choose);
  show_document();
}

QString BlockView::hint() const {
  return tr(
      "What a layer computes, as text. Predictions follow a right text; the first mistake of "
      "a wrong one is marked.");
}

void BlockView::show_document() {
  is_shown();
  shown_ = block_editor_text(bench().document());
  edit().show_text(to_qt(shown_.text));
  edit().mark(shown_.problem);
  fill_choices();
  show_state();
}

void BlockView::show_state() {
  const bool edited = shown_.edited();
  state().setText(edited ? tr("edited") : QString());
  reset_button().setEnabled(edited);
  problem_->setVisible(shown_.problem.has_value());
  if (!shown_.problem) return;
  const BlockProblem& p = *shown_.problem;
  const QString place = p.line > 0 ? tr("Line %1, column %2: ").arg(p.line).arg(p.column) : "";
  const QString text = place + to_qt(p.text);
  const int room = std::max(200, width() - 24);
  problem_->setText(problem_->fontMetrics().elidedText(text, Qt::ElideRight, room));
  problem_->setToolTip(text + "\n" +
                       tr("Predictions are of the last text without a mistake. Click: go there"));
  QPalette colours = palette();
  colours.setColor(QPalette::ButtonText, theme().colour(ColourRole::worse));
  problem_->setPalette(colours);
}

void BlockView::fill_choices() {
  const Setup& setup = bench().document().setup;
  const QSignalBlocker quiet(choice_);
  choice_->clear();
  for (const Choice& choice : block_choices(setup)) {
    choice_->addItem(to_qt(choice.text), to_qt(choice.value));
    choice_->setItemData(choice_->count() - 1, to_qt(choice.tooltip), Qt::ToolTipRole);
    if (choice.value == setup.change.block) choice_->setCurrentIndex(choice_->count() - 1);
  }
  choice_->insertSeparator(choice_->count());
  choice_->addItem(tr("From a file…"), kBlockFile);
}

void BlockView::choose(int index) {
  QString block = choice_->itemData(index).toString();
  if (block == kBlockFile) {
    block = QFileDialog::getOpenFileName(this, tr("Open a block"), {}, tr(kBlockFilter));
    if (block.isEmpty()) return fill_choices();
  }
  session().act([&](Workbench& b) { b.choose_block(from_qt(block)); });
}

bool BlockView::save(bool again) {
  const std::string& block = bench().document().setup.change.block;
  const bool has_file = looks_like_path(block);
  if (has_file && !again) {
    save_as(block);
    return true;
  }
  const QString start = has_file ? to_qt(block) : to_qt(shown_.name) + ".block";
  QString file = QFileDialog::getSaveFileName(this, tr("Save the block"), start, tr(kBlockFilter));
  if (file.isEmpty()) return false;
  if (QFileInfo(file).suffix().isEmpty()) file += ".block";
  save_as(from_qt(file));
  return true;
}

void BlockView::save_as(const std::filesystem::path& path) {
  session().act([&](Workbench& b) { b.save_block(path.string()); });
}

void BlockView::restyle() {
  edit().restyle();
  show_state();
}

QString BlockView::html() const {
  return code_html({to_qt(shown_.name) + (shown_.edited() ? tr(", edited") : QString()),
                    to_qt(shown_.text), shown_.problem, &words_of_line},
                   theme(), font());
}

void BlockView::paint_to(QPainter& painter, QSize size) {
  paint_html(painter, size, html(), theme(), font());
}

std::vector<Table> BlockView::tables() const {
  Subject about{.policy = kAllCases, .source = "text"};
  try {
    about = subject_of(resolve(bench().document().setup), kAllCases, about.source);
  } catch (const InputError&) {  // the text is wrong, and shown for that
  }
  return {lines_table("block", to_qt(shown_.text), about)};
}

}  // namespace fuseline::gui
