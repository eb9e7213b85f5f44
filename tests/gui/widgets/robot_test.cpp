// The program in processes of its own: killed in the middle of work, and started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <QFile>
#include <QImage>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>

#include "gui/model/session_file.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

class Robot {
 public:
  // `state`: where the program keeps unsaved work, in place of the home folder.
  Robot(const QString& state, const QStringList& steps, const QStringList& arguments,
        const std::map<QString, QString>& variables = {}) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const auto& [name, value] : variables) environment.insert(name, value);
    environment.insert("QT_QPA_PLATFORM", "offscreen");
    environment.insert("XDG_STATE_HOME", state);
    process_.setProcessEnvironment(environment);
    process_.setWorkingDirectory(FUSELINE_SOURCE_DIR);
    process_.start(FUSELINE_GUI_ROBOT, steps + QStringList("--") + arguments);
  }
  bool says(const QByteArray& text) {
    while (!out_.contains(text)) {
      if (!process_.waitForReadyRead(60000)) return false;
      out_ += process_.readAllStandardOutput();
    }
    return true;
  }
  int end(int longest_ms = 60000) {
    process_.waitForFinished(longest_ms);
    out_ += process_.readAllStandardOutput();
    return process_.exitStatus() == QProcess::NormalExit ? process_.exitCode() : -1;
  }
  [[nodiscard]] qint64 id() const { return process_.processId(); }
  [[nodiscard]] std::string out() const { return out_.toStdString(); }
  [[nodiscard]] std::string err() { return process_.readAllStandardError().toStdString(); }

 private:
  QProcess process_;
  QByteArray out_;
};

TEST(KilledWindow, OffersItsWorkAtTheNextStartAndGivesBackTheSame) {
  test::application();
  QTemporaryDir folder;
  const QString scenario = folder.filePath("scenario.toml");
  std::ofstream(scenario.toStdString())
      << "title = \"small\"\nmodel = \"tinyllama\"\ngpu = \"h200\"\nphase = \"forward\"\nseq = "
         "256\npolicies = [\"per-operator\"]\n";
  Robot first(folder.path(),
              {"ready", "click=down -> residual2", "ready", "autosaved", "say=kept", "hang"},
              {scenario});
  ASSERT_TRUE(first.says("kept")) << first.err();
  ASSERT_EQ(kill(static_cast<pid_t>(first.id()), SIGKILL), 0);
  EXPECT_EQ(first.end(), -1);
  std::filesystem::path kept;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.path().toStdString() + "/fuseline")) {
    if (entry.path().filename().string().starts_with("autosave-")) kept = entry.path();
  }
  ASSERT_FALSE(kept.empty());
  const Document work = load_document(kept.string()).document;
  ASSERT_EQ(work.runs.all().size(), 2U);
  EXPECT_EQ(work.runs.all()[1].custom.on_chip, (std::vector<OnChipEdge>{{"down", "residual2"}}));

  const QString saved = folder.filePath("saved.toml");
  Robot second(folder.path(),
               {"press=Recover", "ready", "key=Ctrl+Shift+S", "file=" + saved, "ready", "quit"},
               {});
  EXPECT_EQ(second.end(), 0) << second.err();
  EXPECT_THAT(second.out(), HasSubstr("scenario.toml"));  // whose changes they are
  EXPECT_EQ(load_document(saved.toStdString()).document, work);
  EXPECT_FALSE(std::filesystem::exists(kept));

  // Nothing is left to be offered: a dialog would stand in the way of these steps.
  Robot third(folder.path(), {"ready", "say=no question", "quit"}, {scenario});
  EXPECT_EQ(third.end(), 0) << third.err();
}

// An exception out of an event is told, and the window goes on. It is told when the event is
// delivered: a box that held the delivery up would let widgets be deleted under Qt's own loops.
TEST(BugInAnEvent, IsToldOnceTheEventIsDelivered) {
  test::application();
  QTemporaryDir folder;
  Robot robot(folder.path(),
              {"ready", "throw=of a test", "press=OK", "ready", "say=goes on", "quit"}, {});
  EXPECT_EQ(robot.end(), 0);
  EXPECT_THAT(robot.err(), HasSubstr("internal error (a bug of fuseline, please report it): of a"));
  const std::string out = robot.out();
  EXPECT_LT(out.find("delivered"), out.find("Please report it: of a test")) << out;
  EXPECT_THAT(out, HasSubstr("goes on"));
}

// A display of 144 dots an inch shows 150 %, neither 100 nor 200.
TEST(ScaledWindow, IsAsLargeAsTheDisplayAsks) {
  test::application();
  QTemporaryDir folder;
  Robot robot(folder.path(),
              {"--out", folder.path(), "size=900x600", "ready", "shot=scaled.png", "quit"}, {},
              {{"QT_FONT_DPI", "144"}});
  EXPECT_EQ(robot.end(), 0) << robot.err();
  EXPECT_EQ(QImage(folder.filePath("scaled.png")).size(), QSize(1350, 900));
}

// Ten minutes of clicks, drags, keys and the wheel at random: alive, no warning, and no memory that
// is kept for nothing.
class LongMonkey : public ::testing::TestWithParam<int> {};

TEST_P(LongMonkey, FindsNothing) {
  constexpr int kSeconds = 600;
  constexpr double kMostMb = 20;
  test::application();
  QTemporaryDir folder;
  // It may type any command: only Graphviz is found.
  const QString dot = QStandardPaths::findExecutable("dot");
  if (!dot.isEmpty()) QFile::link(dot, folder.filePath("dot"));
  Robot robot(folder.path(),
              {"size=1240x800", "ready", QString("monkey=%1: %2").arg(GetParam()).arg(kSeconds),
               "ready", "quit"},
              {}, {{"PATH", folder.path()}});
  EXPECT_EQ(robot.end((kSeconds + 600) * 1000), 0);
  for (const QString& line : QString::fromStdString(robot.err()).split('\n', Qt::SkipEmptyParts)) {
    // What there is no display for is said by Qt's platform.
    const bool of_platform = line.startsWith("This plugin") || line.startsWith("QStandardPaths");
    EXPECT_TRUE(of_platform) << line.toStdString();
  }
  double actions = 0, more = 0;
  ASSERT_EQ(std::sscanf(robot.out().c_str(), "monkey: %lf actions; %lf MB", &actions, &more), 2)
      << robot.out();
  std::cout << robot.out();
  EXPECT_GT(actions, 1000);
  EXPECT_LE(more, kMostMb) << robot.out();
}

INSTANTIATE_TEST_SUITE_P(Window, LongMonkey, ::testing::Values(1));

}  // namespace
}  // namespace fuseline::gui
