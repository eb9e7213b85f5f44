#include "gui/widgets/measure_view.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <algorithm>

#include "base/error.h"
#include "gui/model/command_text.h"
#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr double kPredictedHalf = 0.18, kApart = 0.2;
const char* const kCommandKey = "measure-command";

QString window_settings(const std::filesystem::path& folder) {
  return to_qt(folder / "window.ini");
}

// fuseline beside the window's own program, where it lies there.
QString usual_command() {
  const QFileInfo beside(QCoreApplication::applicationDirPath() + "/fuseline");
  return beside.isExecutable() ? to_qt(shell_word(from_qt(beside.absoluteFilePath())))
                               : QStringLiteral("fuseline");
}

}  // namespace

Scene live_scene(const LiveChart& chart) {
  if (!chart.problem.empty()) return empty_scene("Measure this", chart.problem);
  Scene scene;
  scene.title = chart.title + ": predicted, and measured while it runs";
  double at = 0, most = 0;
  for (const LiveRow& row : chart.rows) {
    const double predicted = to_us(row.run.predicted);
    Row out{.at = at,
            .text = row.run.label,
            .note_colour = {ColourRole::muted, 0},
            .thing = run_thing(row.run.run)};
    scene.marks.push_back(
        {.shape = Shape::bar,
         .from = {0, at - kApart - kPredictedHalf},
         .to = {predicted, at - kApart + kPredictedHalf},
         .colour = {ColourRole::predicted, 0},
         .label = short_time(row.run.predicted),
         .tooltip = row.run.label + ", predicted: " + short_time(row.run.predicted),
         .thing = run_thing(row.run.run)});
    most = std::max(most, predicted);
    if (row.measured) {
      const SpreadOfTimes& t = row.measured->time;
      const double us = to_us(t.median);
      scene.marks.push_back({.shape = Shape::bar,
                             .from = {0, at + kApart - kPredictedHalf},
                             .to = {us, at + kApart + kPredictedHalf},
                             .colour = {ColourRole::measured, 0},
                             .measured = true,
                             .label = short_time(t.median),
                             .tooltip = row.run.label + ", measured: " + short_time(t.median) +
                                        ", " + short_time(t.least) + " to " + short_time(t.most),
                             .thing = run_thing(row.run.run)});
      most = std::max(most, us);
      out.result = short_time(t.median);
      out.result_note = "predicted " + signed_percent_text(row.run.predicted / t.median - 1);
    } else {
      out.result_note = "not measured yet";
    }
    scene.rows.push_back(std::move(out));
    ++at;
  }
  add_to_legend(scene, {"predicted", {ColourRole::predicted, 0}, Swatch::fill});
  add_to_legend(scene, {"measured", {ColourRole::measured, 0}, Swatch::hatched});
  scene.x = {.label = "µs of one block", .range = snug_range(most, nice_above(most * 1.02))};
  scene.y = row_axis(scene.rows.size());
  return scene;
}

MeasureView::MeasureView(Session& session, const std::filesystem::path& state_folder,
                         QWidget* parent)
    : ChartView(session.bench(), parent),
      session_(session),
      folder_(state_folder),
      command_(new QLineEdit(this)),
      go_(new QPushButton(tr("Measure"), this)),
      state_(new QLabel(this)),
      process_(this) {
  command_->setObjectName("measure-command");
  command_->setAccessibleName(tr("Command that starts fuseline"));
  command_->setToolTip(
      tr("What starts fuseline: here, or on another machine with its GPU, as in ssh HOST fuseline "
         "{}\n{} stands for all arguments as one word"));
  command_->setPlaceholderText(QStringLiteral("ssh HOST fuseline {}"));
  command_->setText(QSettings(window_settings(folder_), QSettings::IniFormat)
                        .value(kCommandKey, usual_command())
                        .toString());
  go_->setObjectName("measure-go");
  go_->setToolTip(tr("Runs the command, which measures the policies that follow the setup"));
  state_->setObjectName("measure-state");
  state_->setAccessibleName(tr("State of the measurement"));
  state_->setWordWrap(true);
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  state_->setContentsMargins(10, 2, 10, 2);
  auto* label = new QLabel(tr("Command"), this);
  label->setBuddy(command_);
  controls().insertWidget(0, label);
  controls().insertWidget(1, command_, 1);
  controls().insertWidget(2, go_);
  body().addWidget(state_);
  add_plot(1);
  connect(go_, &QPushButton::clicked, this, [this] { measure(); });
  connect(command_, &QLineEdit::returnPressed, this, [this] { measure(); });
  connect(command_, &QLineEdit::editingFinished, this, [this] {
    QSettings(window_settings(folder_), QSettings::IniFormat)
        .setValue(kCommandKey, command_->text());
  });
  connect(&process_, &MeasureProcess::changed, this, [this] { draw(); });
  connect(&process_, &MeasureProcess::ended, this, &MeasureView::end);
}

QString MeasureView::hint() const {
  return tr(
      "Measures the predicted policies on the GPU of this machine or of another one. The session "
      "keeps what was measured.");
}

void MeasureView::set_command(const QString& command) {
  command_->setText(command);
  emit command_->editingFinished();
}

// A run that goes on is of the session as it was.
void MeasureView::refresh() {
  if (!is_busy() && said_.isEmpty())
    request_ = live_request(bench().document(), bench().results(), from_qt(command_->text()));
  draw();
}

void MeasureView::measure() {
  if (is_busy()) return;
  said_.clear();
  wrong_ = false;
  request_ = live_request(bench().document(), bench().results(), from_qt(command_->text()));
  if (request_.problem.empty()) process_.start(request_.shell);
  draw();
}

void MeasureView::draw() {
  chart_ = live_chart(request_, process_.seen(), is_busy());
  plots().front()->set_scene(live_scene(chart_));
  QString text = is_busy() ? to_qt(chart_.status) : said_;
  if (text.isEmpty() && !request_.shell.empty()) text = tr("Runs: %1").arg(to_qt(request_.shell));
  if (!request_.note.empty()) text += "\n" + to_qt(request_.note);
  state_->setText(text);
  QPalette colours = palette();
  if (wrong_) colours.setColor(QPalette::WindowText, theme().colour(ColourRole::worse));
  state_->setPalette(colours);
  go_->setEnabled(!is_busy());
  command_->setEnabled(!is_busy());
  show_work(is_busy(), process_.seen().done, tr("measuring"));
}

void MeasureView::end(bool cancelled, const QString& why) {
  wrong_ = !why.isEmpty() && !cancelled;
  said_ = cancelled ? tr("Cancelled: nothing was kept") : why;
  if (why.isEmpty()) keep();
  draw();
}

// A folder among the window's own files; its runs are added to the session.
void MeasureView::keep() {
  try {
    const auto folder = folder_for_measured(folder_ / "measured", request_);
    keep_measured(process_.seen(), folder);
    said_ = tr("Measured, kept in %1").arg(to_qt(folder));
    session_.take_in(folder, FileKind::measurements);
  } catch (const std::exception& error) {
    wrong_ = true;
    said_ = message_of(error);
  }
}

void MeasureView::cancel() { process_.cancel(); }

std::vector<Table> MeasureView::tables() const {
  return chart_.rows.empty() ? std::vector<Table>{} : std::vector<Table>{to_table(chart_)};
}

}  // namespace fuseline::gui
