#include "gui/widgets/plan_view.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QListWidget>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/model/run_plan.h"
#include "gui/widgets/code_edit.h"
#include "gui/widgets/code_html.h"
#include "gui/widgets/html_picture.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kMostProblemLines = 4;  // of the list that are seen at once
const char* const kPlanTyping = "plan-text";

}  // namespace

PlanView::PlanView(Session& of, QWidget* parent)
    : TextView(of, parent, "plan",
               {.of_text = tr("Text of the plan"),
                .save = tr("Write the plan into a .fuse file, which fuseline program reads"),
                .reset = tr("Back to what the plan's file says"),
                .words = &words_of_plan_line}),
      numbers_(new QLabel(this)),
      problems_(new QListWidget(this)),
      work_(this,
            [](const Request& r, const std::stop_token& /*stop*/, const Progress& /*progress*/) {
              return Checked{r.run, r.text, check_plan_text(r.setup, r.text, r.name)};
            },
            {.done = [this](Checked checked) { take(std::move(checked)); },
             .failed =
                 [this](const std::string& why) {
                   checked_ = {};
                   checked_.problems.push_back({.line = 0, .column = 0, .text = why, .file = {}});
                   show_problems();
                 },
             .changed = [this] { emit busy_changed(); }}) {
  numbers_->setObjectName("plan-numbers");
  numbers_->setAccessibleName(tr("Prediction of the plan"));
  numbers_->setWordWrap(true);
  numbers_->setContentsMargins(8, 0, 8, 0);
  problems_->setObjectName("plan-problems");
  problems_->setAccessibleName(tr("Mistakes of the plan"));
  problems_->setFrameShape(QFrame::NoFrame);
  problems_->setTextElideMode(Qt::ElideRight);
  problems_->hide();
  column().insertWidget(1, numbers_);
  column().addWidget(problems_);

  connect(&edit(), &CodeEdit::typed, this, &PlanView::type);
  connect(&edit(), &CodeEdit::line_changed, this, [this] { show_state(); });
  connect(problems_, &QListWidget::itemActivated, &edit(), &CodeEdit::go_to_mark);
  connect(problems_, &QListWidget::itemClicked, &edit(), &CodeEdit::go_to_mark);
  connect(problems_, &QListWidget::currentRowChanged, this, [this](int at) {
    const auto i = static_cast<std::size_t>(std::max(0, at));
    if (i < checked_.problems.size()) edit().mark(checked_.problems[i]);
  });
  connect(&reset_button(), &QToolButton::clicked, this, [this] {
    const RunId run = shown_.run;
    if (has_run()) session().act([&](Workbench& b) { b.reset_plan(run); });
  });
  connect(&save_button(), &QToolButton::clicked, this, [this] { ask_file_to_save(); });
}

QString PlanView::hint() const {
  return tr(
      "The shown run's plan. Typing makes a run of its own, which is predicted while the text is "
      "right; mistakes are listed with their lines.");
}

// Undo may have taken the run while nobody saw the view.
bool PlanView::has_run() {
  if (bench().document().runs.find(shown_.run) != nullptr) return true;
  show_document();
  return false;
}

void PlanView::type(const QString& text) {
  if (!has_run()) return;
  begin_pause();
  const RunId run = shown_.run;
  session().act([&](Workbench& b) { b.set_plan_draft(run, from_qt(text), kPlanTyping); });
}

void PlanView::show_document() {
  is_shown();
  shown_ = plan_editor_text(bench().document(), bench().results(), bench().shown_run());
  edit().setReadOnly(!shown_.why_not.empty());
  edit().show_text(to_qt(shown_.why_not.empty() ? shown_.text : std::string()));
  check();
  show_state();
}

void PlanView::check() {
  const Run* run = bench().document().runs.find(shown_.run);
  if (run == nullptr || !shown_.why_not.empty()) {
    cancel();
    checked_ = {};
    show_problems();
    return;
  }
  Request request{shown_.run, setup_of(bench().document(), *run), shown_.text, name_of_plan(*run)};
  if (asked_ && *asked_ == request) return;
  asked_ = request;
  work_.start(std::move(request));
}

void PlanView::take(Checked checked) {
  if (checked.run != shown_.run || checked.text != shown_.text) return;  // of an older text
  checked_ = std::move(checked.plan);
  show_problems();
  const Run* run = bench().document().runs.find(shown_.run);
  if (checked_.problems.empty() && run != nullptr && run->plan_draft == checked.text) {
    session().act([&](Workbench& b) {
      b.take_plan_draft(checked.run, checked.text, checked_.policy, kPlanTyping);
    });
  }
  show_state();
}

void PlanView::show_problems() {
  const QSignalBlocker quiet(problems_);
  problems_->clear();
  for (const BlockProblem& p : checked_.problems) {
    const QString place = p.line > 0 ? tr("Line %1, column %2: ").arg(p.line).arg(p.column) : "";
    auto* item = new QListWidgetItem(place + to_qt(p.text), problems_);
    item->setToolTip(to_qt(p.text));
    item->setForeground(theme().colour(ColourRole::worse));
  }
  const int lines = std::min(kMostProblemLines, problems_->count());
  problems_->setVisible(lines > 0);
  problems_->setFixedHeight(lines * (problems_->fontMetrics().height() + 6) + 4);
  if (lines > 0) problems_->setCurrentRow(0);
  edit().mark(checked_.problems.empty() ? std::nullopt : std::optional(checked_.problems.front()));
}

void PlanView::show_state() {
  const bool own = shown_.own;
  state().setText(!shown_.why_not.empty() ? to_qt(shown_.why_not)
                  : !own ? tr("%1: typing makes a run of its own").arg(to_qt(shown_.name))
                  : shown_.edited() ? tr("%1, edited").arg(to_qt(shown_.name))
                                    : to_qt(shown_.name));
  state().setToolTip(state().text());
  const Run* run = bench().document().runs.find(shown_.run);
  reset_button().setEnabled(shown_.edited() && run != nullptr && !run->plan.empty());
  save_button().setEnabled(!shown_.text.empty());
  if (shown_.run.value < 0) {
    numbers_->clear();
    return;
  }
  const PlanNumbers numbers = plan_numbers(bench().results(), shown_.run, checked_.kernels,
                                           edit().textCursor().blockNumber() + 1);
  QString text = to_qt(numbers.total);
  if (!checked_.problems.empty()) text = tr("of the last right text: %1").arg(text);
  if (!numbers.kernel.empty()) text += "\n" + to_qt(numbers.kernel);
  numbers_->setText(text);
}

void PlanView::ask_file_to_save() {
  const Run* run = bench().document().runs.find(shown_.run);
  if (run == nullptr) return;
  const QString start =
      run->plan.empty() ? to_qt(shown_.name).replace(' ', '-') + ".fuse" : to_qt(run->plan);
  QString file = QFileDialog::getSaveFileName(this, tr("Save the plan"), start,
                                              tr("Plans (*.fuse);;All files (*)"));
  if (file.isEmpty()) return;
  if (QFileInfo(file).suffix().isEmpty()) file += ".fuse";
  save_as(from_qt(file));
}

void PlanView::save_as(const std::filesystem::path& path) {
  if (!has_run()) return;
  const RunId run = shown_.run;
  session().act([&](Workbench& b) { b.save_plan(run, path.string()); });
}

void PlanView::finish() {
  show_document();
  work_.finish();
}

void PlanView::cancel() {
  work_.cancel();
  asked_.reset();
}

void PlanView::restyle() {
  edit().restyle();
  show_problems();
}

void PlanView::paint_to(QPainter& painter, QSize size) {
  std::optional<BlockProblem> problem;
  if (!checked_.problems.empty()) problem = checked_.problems.front();
  // As many lines as there is room for: those that are seen, else the kernels.
  int first = edit().first_line();
  if (first == 0 && problem && problem->line > 0) first = std::max(0, problem->line - 8);
  if (first == 0 && !checked_.kernels.empty())
    first = std::max(0, checked_.kernels.front().line - 3);
  const int lines = size.height() / QFontMetrics(code_font(font())).lineSpacing() - 5;
  paint_html(painter, size,
             code_html({state().text() + " · " + numbers_->text().section('\n', 0, 0),
                        edit().text(), problem, &words_of_plan_line, first, std::max(1, lines)},
                       theme(), font()),
             theme(), font());
}

std::vector<Table> PlanView::tables() const {
  const RunView* view = bench().results().find(shown_.run);
  if (view == nullptr) return {Table{"plan", {"line", "text"}, {}}};
  return {lines_table("plan", to_qt(shown_.text), subject_of(*view))};
}

}  // namespace fuseline::gui
