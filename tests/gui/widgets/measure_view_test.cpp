// Measuring from the window, with commands that print a recorded run.
#include "gui/widgets/measure_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <fstream>

#include "base/data_dir.h"
#include "gui/widgets/charts/plot.h"
#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;
using ::testing::HasSubstr;

// Of the shipped measurement: the block that the window is about.
Document measured_document() {
  Document d = test::window_document({"unfused", "coda"});
  d.setup.workload.seq = 2048;
  return d;
}

std::vector<MeasuredBlock> recorded_blocks() {
  std::vector<MeasuredBlock> blocks;
  const auto all = load_measurements((data_dir() / "measurements" / "h200-fuseline").string());
  for (const MeasuredBlock& b : all.blocks) {
    const BlockCase wanted{"llama2-7b", b.block.execution, measured_document().setup.workload};
    if (same_case(b.block, wanted)) blocks.push_back(b);
  }
  return blocks;
}

// A command that prints the run: its progress, its blocks, then its files.
std::string script(const std::filesystem::path& folder, const std::string& behind_blocks) {
  Measurements run;
  run.blocks = recorded_blocks();
  run.meta.gpu = "h200";
  run.meta.title = "a recorded run";
  std::ofstream lines(folder / "first");
  lines << progress_line("coda: timing", 0.5);
  for (const MeasuredBlock& b : run.blocks) lines << block_line(b);
  std::ofstream(folder / "last") << file_lines(run) << end_line(true, "");
  std::ofstream(folder / "fake.sh")
      << "cat " << (folder / "first").string() << "\n"
      << behind_blocks << "\ncat " << (folder / "last").string() << "\n";
  return "sh " + (folder / "fake.sh").string();
}

MeasureView& measure_of(Window& window) {
  window->raise_view("measure");
  window.settle();
  return *qobject_cast<MeasureView*>(window->view("measure"));
}

QString state_of(MeasureView& view) { return view.findChild<QLabel*>("measure-state")->text(); }

void wait_for_end(MeasureView& view) {
  view.process().wait();
  QCoreApplication::processEvents();
}

// A process whose parent has ended stays in the system's table until the first process, which
// inherits it, asks how it ended. In a container that may be never, so kill() would still find it.
bool has_ended(int process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(stat, text)) return true;
  const std::size_t name_ends = text.rfind(") ");
  return name_ends != std::string::npos &&
         (text[name_ends + 2] == 'Z' || text[name_ends + 2] == 'X');
}

TEST(MeasureView, KeepsWhatWasMeasuredInTheSession) {
  Window window(measured_document());
  ASSERT_FALSE(recorded_blocks().empty());
  MeasureView& view = measure_of(window);
  view.set_command(QString::fromStdString(script(window.folder(), "")));
  const std::size_t runs = window.bench().document().runs.all().size();
  QTest::mouseClick(view.findChild<QPushButton*>("measure-go"), Qt::LeftButton);
  EXPECT_TRUE(view.is_busy());
  wait_for_end(view);
  window.settle();
  EXPECT_FALSE(view.is_busy());
  EXPECT_THAT(state_of(view).toStdString(), HasSubstr("kept in"));
  for (const LiveRow& row : view.chart().rows) EXPECT_TRUE(row.measured) << row.run.label;
  ASSERT_GT(window.bench().document().runs.all().size(), runs);
  const RunView* added =
      window.bench().results().find(window.bench().document().runs.all().back().id);
  ASSERT_TRUE(added->ok()) << added->result->problem->text;
  EXPECT_TRUE(added->run.is_measurement());
  EXPECT_TRUE(
      std::filesystem::exists(window.folder() / "measured" / "llama2-7b-forward" / "block.csv"));
}

TEST(MeasureView, BarsFillInWhileItRuns) {
  Window window(measured_document());
  MeasureView& view = measure_of(window);
  const std::filesystem::path go = window.folder() / "go";
  view.set_command(QString::fromStdString(
      script(window.folder(), "while ! test -e " + go.string() + "; do sleep 0.05; done")));
  view.measure();
  ASSERT_TRUE(QTest::qWaitFor(
      [&] { return !view.chart().rows.empty() && view.chart().rows[0].measured; }, 20000));
  EXPECT_TRUE(view.is_busy());
  EXPECT_THAT(state_of(view).toStdString(), HasSubstr("coda: timing, 50 %"));
  EXPECT_FALSE(view.findChild<QPushButton*>("measure-go")->isEnabled());
  std::ofstream(go) << "\n";
  wait_for_end(view);
  EXPECT_TRUE(view.findChild<QPushButton*>("measure-go")->isEnabled());
}

TEST(MeasureView, CancellingEndsWhatTheCommandStartedToo) {
  Window window(measured_document());
  MeasureView& view = measure_of(window);
  const std::filesystem::path pid = window.folder() / "pid";
  view.set_command(QString::fromStdString(
      script(window.folder(), "sleep 1000 & echo $! > " + pid.string() + "; wait")));
  const std::size_t runs = window.bench().document().runs.all().size();
  view.measure();
  ASSERT_TRUE(QTest::qWaitFor(
      [&] { return std::filesystem::exists(pid) && std::filesystem::file_size(pid) > 1; }, 20000));
  view.cancel();
  wait_for_end(view);
  EXPECT_THAT(state_of(view).toStdString(), HasSubstr("Cancelled"));
  EXPECT_EQ(window.bench().document().runs.all().size(), runs);
  int child = 0;
  std::ifstream(pid) >> child;
  ASSERT_GT(child, 1);
  EXPECT_FALSE(view.is_busy());
  EXPECT_TRUE(QTest::qWaitFor([&] { return has_ended(child); }, 10000));
}

TEST(MeasureView, ErrorsAreShown) {
  Window window(measured_document());
  MeasureView& view = measure_of(window);
  for (const auto& [command, said] : std::vector<std::pair<QString, std::string>>{
           {"no-such-program-anywhere", "not found"},
           {"echo 'fuseline: error: no NVIDIA driver is here' >&2; exit 3; :", "no NVIDIA driver"},
           {"true", "without a measurement"}}) {
    view.set_command(command);
    view.measure();
    wait_for_end(view);
    EXPECT_THAT(state_of(view).toStdString(), HasSubstr(said)) << command.toStdString();
    EXPECT_FALSE(std::filesystem::exists(window.folder() / "measured"));
  }
}

TEST(MeasureView, RemembersTheCommand) {
  Window window(measured_document());
  measure_of(window).set_command("ssh box fuseline {}");
  MeasureView again(window.session(), window.folder(), nullptr);
  EXPECT_EQ(again.findChild<QLineEdit*>("measure-command")->text(), "ssh box fuseline {}");
}

}  // namespace
}  // namespace fuseline::gui
