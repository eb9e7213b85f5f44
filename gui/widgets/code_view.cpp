#include "gui/widgets/code_view.h"

#include <QApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/model/code_links.h"
#include "gui/model/shown_kernel.h"
#include "gui/widgets/code_edit.h"
#include "gui/widgets/code_html.h"
#include "gui/widgets/html_picture.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/short_combo.h"

namespace fuseline::gui {

namespace {

CodeEdit* reader(QWidget* parent, const char* name, const QString& accessible) {
  auto* edit = new CodeEdit(parent, &words_of_code_line);
  edit->setObjectName(name);
  edit->setAccessibleName(accessible);
  edit->setReadOnly(true);
  edit->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  return edit;
}

QComboBox* chooser(QWidget* parent, const char* name, const QString& accessible,
                   const QString& tip) {
  auto* box = new ShortCombo(parent);
  box->setObjectName(name);
  box->setAccessibleName(accessible);
  box->setToolTip(tip);
  return box;
}

// The program that shows this window compiles in a process of its own, where it says that it can.
CompileCode own_compiler() {
  const QString program = qApp->property(kCompilerProperty).toString();
  return program.isEmpty() ? compiles_here() : compiles_with(from_qt(program));
}

}  // namespace

CodeView::CodeView(Workbench& workbench, QWidget* parent)
    : View(workbench, parent),
      kernels_(chooser(this, "code-kernel", tr("Kernel"), tr("The kernel whose code is shown"))),
      target_(chooser(this, "code-target", tr("Instruction set"),
                      tr("sm_90a: Hopper; sm_80: Ampere and newer ones"))),
      level_(chooser(this, "code-level", tr("Language"),
                     tr("CUDA; PTX, which NVRTC makes of it; SASS, the GPU's own instructions, "
                        "where a disassembler is at hand"))),
      program_(reader(this, "code-program", tr("Program of the kernel"))),
      text_(reader(this, "code-text", tr("Code of the kernel"))),
      note_(new QLabel(this)),
      work_(this,
            [compile = own_compiler()](const CodeQuestion& q, const std::stop_token& stop,
                                       const Progress& /*progress*/) {
              return kernel_code(q, stop, compile);
            },
            {.done = [this](KernelCode code) { take(std::move(code)); },
             .failed =
                 [this](const std::string& why) {
                   KernelCode none;
                   none.problem = why;
                   take(std::move(none));
                 },
             .changed = [this] { emit busy_changed(); }}) {
  target_->addItem("sm_90a", true);
  target_->addItem("sm_80", false);
  for (const CodeLevel level : {CodeLevel::cuda, CodeLevel::ptx, CodeLevel::sass})
    level_->addItem(name_of(level), static_cast<int>(level));
  note_->setObjectName("code-note");
  note_->setWordWrap(true);
  note_->setContentsMargins(8, 2, 8, 4);
  note_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 4, 8, 2);
  row->addWidget(kernels_, 1);
  row->addWidget(target_);
  row->addWidget(level_);
  auto* both = new QSplitter(Qt::Vertical, this);
  both->setChildrenCollapsible(false);
  both->addWidget(program_);
  both->addWidget(text_);
  both->setStretchFactor(0, 2);
  both->setStretchFactor(1, 5);
  both->setSizes({120, 300});
  program_->setMinimumHeight(40);
  text_->setMinimumHeight(40);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(row);
  column->addWidget(both, 1);
  column->addWidget(note_);
  setFocusProxy(program_);

  connect(kernels_, QOverload<int>::of(&QComboBox::activated), this, [this](int index) {
    emit selected(kernel_thing(bench().shown_run(),
                               static_cast<std::size_t>(kernels_->itemData(index).toInt())));
  });
  connect(target_, QOverload<int>::of(&QComboBox::activated), this, [this] {
    target_chosen_ = true;
    ask();
  });
  connect(level_, QOverload<int>::of(&QComboBox::activated), this, [this] { ask(); });
  connect(program_, &CodeEdit::line_changed, this, &CodeView::light_code);
  connect(text_, &CodeEdit::line_changed, this, &CodeView::light_program);
}

QString CodeView::hint() const {
  return tr(
      "The selected kernel's program and the CUDA text, PTX or machine code that is made of it. A "
      "line of one lights its lines of the other.");
}

void CodeView::refresh() {
  selected_ = bench().selection().selected;
  ask();
}

void CodeView::show_highlight(const Highlight&) {
  program_->take_back();
  if (text_->take_back()) light_code(lit_program_);
  if (!(bench().selection().selected == selected_)) refresh();
}

void CodeView::show_level(CodeLevel level) {
  level_->setCurrentIndex(level_->findData(static_cast<int>(level)));
  ask();
}

void CodeView::fill_kernels(const RunView& view, std::size_t launch) {
  kernels_->clear();
  if (!view.ok()) return;
  for (std::size_t i = 0; i < view.result->kernels.size(); ++i)
    kernels_->addItem(to_qt(view.result->kernels[i].estimate.name), static_cast<int>(i));
  kernels_->setCurrentIndex(static_cast<int>(launch));
}

void CodeView::ask() {
  const RunView* view = bench().results().find(bench().shown_run());
  if (view == nullptr) return;
  const std::size_t launch = kernel_to_show(bench());
  fill_kernels(*view, launch);
  CodeQuestion question =
      code_question(*view, launch, static_cast<CodeLevel>(level_->currentData().toInt()));
  if (target_chosen_)
    question.hopper = target_->currentData().toBool();
  else
    target_->setCurrentIndex(target_->findData(question.hopper));
  if (asked_ && *asked_ == question) return;
  asked_ = question;
  if (question.level != CodeLevel::cuda) note_->setText(tr("Compiling…"));
  work_.start(std::move(question));
}

void CodeView::take(KernelCode code) {
  code_ = std::move(code);
  QStringList program, text;
  for (const std::string& line : code_.program) program << to_qt(line);
  for (const CodeLine& line : code_.lines) text << to_qt(line.text);
  program_->light({});
  text_->light({});
  program_->show_text(program.join('\n'));
  text_->show_text(text.join('\n'));
  const bool wrong = !code_.problem.empty();
  note_->setText(to_qt(wrong ? code_.problem : code_.note));
  note_->setVisible(!note_->text().isEmpty());
  lit_program_ = 1;
  light_code(program_->textCursor().blockNumber() + 1);
}

// The line of the program is the one that is chosen; what it became is lit.
void CodeView::light_code(int program_line) {
  std::set<int> lines;
  for (std::size_t i = 0; i < code_.lines.size(); ++i)
    if (std::ranges::find(code_.lines[i].program, program_line) != code_.lines[i].program.end())
      lines.insert(static_cast<int>(i) + 1);
  lit_program_ = program_line;
  program_->light({program_line});
  text_->light(lines);
  // Behind the comment that repeats the program, where there is more.
  const auto shown = std::ranges::find_if(lines, [this](int line) {
    const std::string& text = code_.lines[static_cast<std::size_t>(line) - 1].text;
    return !text.starts_with("//");
  });
  if (shown != lines.end()) text_->scroll_to(*shown);
}

void CodeView::light_program(int code_line) {
  const auto at = static_cast<std::size_t>(std::max(1, code_line)) - 1;
  if (at >= code_.lines.size()) return;
  const std::vector<int>& from = code_.lines[at].program;
  program_->light({from.begin(), from.end()});
  text_->light({code_line});
  if (!from.empty()) program_->scroll_to(from.front());
}

void CodeView::cancel() {
  work_.cancel();
  asked_.reset();
}

void CodeView::put_away() {
  program_->put_away();
  text_->put_away();
}

void CodeView::restyle() {
  program_->restyle();
  text_->restyle();
}

// The program, and of the code as many lines as there is room for, from the first that is lit.
void CodeView::paint_to(QPainter& painter, QSize size) {
  QStringList program, text;
  std::set<int> lit;
  int first = 0;
  for (const std::string& line : code_.program) program << to_qt(line);
  for (std::size_t i = 0; i < code_.lines.size(); ++i) {
    const CodeLine& line = code_.lines[i];
    text << to_qt(line.text);
    if (std::ranges::find(line.program, lit_program_) == line.program.end()) continue;
    lit.insert(static_cast<int>(i) + 1);
    if (first == 0 && !line.text.starts_with("//")) first = static_cast<int>(i) + 1;
  }
  const int room = size.height() / QFontMetrics(code_font(font())).lineSpacing() - 7 -
                   static_cast<int>(code_.program.size());
  first = std::clamp(first - 3, 0, std::max(0, static_cast<int>(text.size()) - room));
  QString html = code_html({to_qt(code_.title),
                            program.join('\n'),
                            std::nullopt,
                            &words_of_code_line,
                            0,
                            1'000'000'000,
                            {lit_program_}},
                           theme(), font());
  if (code_.problem.empty()) {
    html += code_html({name_of(code_.level), text.join('\n'), std::nullopt, &words_of_code_line,
                       first, std::max(8, room), lit},
                      theme(), font());
  }
  const std::string& note = code_.problem.empty() ? code_.note : code_.problem;
  html += QString("<p style='color:%1'>%2</p>")
              .arg(theme().colour(ColourRole::muted).name(), to_qt(note).toHtmlEscaped());
  paint_html(painter, size, html, theme(), font());
}

std::vector<Table> CodeView::tables() const { return {to_table(code_)}; }

}  // namespace fuseline::gui
