// The program in processes of its own: killed in the middle of work, and started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <QProcess>
#include <QTemporaryDir>
#include <fstream>

#include "gui/model/session_file.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

class Robot {
 public:
  // `state`: where the program keeps unsaved work, in place of the home folder.
  Robot(const QString& state, const QStringList& steps, const QStringList& arguments) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
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
  int end() {
    process_.waitForFinished(60000);
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

}  // namespace
}  // namespace fuseline::gui
