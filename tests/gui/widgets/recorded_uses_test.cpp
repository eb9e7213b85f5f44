// The recorded scripts of mouse and keyboard, each in a process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QImage>
#include <QProcess>
#include <QTemporaryDir>
#include <fstream>

#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

const std::string kRecordedSteps = FUSELINE_SOURCE_DIR "/tests/gui/steps/";

std::vector<std::string> pictures_of(const std::string& file) {
  std::vector<std::string> names;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("shot=")) names.push_back(line.substr(5));
  return names;
}

class RecordedUses : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedUses, DoWhatTheySay) {
  test::application();
  const std::string file = kRecordedSteps + GetParam() + ".steps";
  const std::vector<std::string> pictures = pictures_of(file);
  ASSERT_FALSE(pictures.empty()) << file;
  QTemporaryDir folder;
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  environment.insert("XDG_STATE_HOME", folder.path());
  process.setProcessEnvironment(environment);
  process.setWorkingDirectory(FUSELINE_SOURCE_DIR);
  process.start(FUSELINE_GUI_ROBOT, {"--out", folder.path(), QString::fromStdString(file)});
  ASSERT_TRUE(process.waitForFinished(300000)) << GetParam();
  const QString errors = process.readAllStandardError();
  EXPECT_EQ(process.exitCode(), 0) << errors.toStdString();
  EXPECT_EQ(process.exitStatus(), QProcess::NormalExit);
  for (const QString& line : errors.split('\n', Qt::SkipEmptyParts)) {
    // What there is no display for is said by Qt's platform.
    const bool of_platform = line.startsWith("This plugin") || line.startsWith("QStandardPaths");
    EXPECT_TRUE(of_platform) << line.toStdString();
  }
  for (const std::string& name : pictures) {
    const QImage picture(folder.filePath(QString::fromStdString(name)));
    EXPECT_EQ(picture.size(), QSize(1240, 800)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Window, RecordedUses,
                         ::testing::Values("1-tiles-in-motion", "2-two-graphs", "3-drag-operators",
                                           "4-measure-this", "5-import-a-trace", "6-editors",
                                           "7-whole-model", "8-why-slow", "9-first-minute",
                                           "10-program-to-sass", "11-all-layers", "12-search"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return "Use" + name;
                         });

}  // namespace
}  // namespace fuseline::gui
