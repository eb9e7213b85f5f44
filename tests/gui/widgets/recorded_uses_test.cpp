// The recorded scripts of mouse and keyboard, each in a process of its own, show what
// scripts/gui-pictures.sh keeps of them in docs/pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QImage>
#include <QProcess>
#include <QTemporaryDir>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/gui/widgets/kept_pictures.h"

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

// The names of all of them, without `.steps`.
std::vector<std::string> recorded_uses() {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(kRecordedSteps))
    if (file.path().extension() == ".steps") names.insert(file.path().stem().string());
  return {names.begin(), names.end()};
}

class RecordedUses : public ::testing::TestWithParam<std::string> {};

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
  ASSERT_TRUE(process.waitForFinished(300000)) << file;
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
    // In the middle of a search, it is never the same twice.
    if (test::draws_kept_pictures() && name != "12-searching.png")
      test::expect_as_kept(picture, "use-" + QString::fromStdString(name));
  }
}

// A recorded use that the documents show no more leaves no picture behind.
TEST(RecordedPictures, AreOfStepsThatArePlayed) {
  EXPECT_GE(recorded_uses().size(), 12U);
  std::set<std::string> shown, kept;
  for (const std::string& use : recorded_uses())
    for (const std::string& name : pictures_of(kRecordedSteps + use + ".steps"))
      shown.insert("use-" + name);
  for (const QString& name : test::kept_pictures().entryList({"use-*.png"}))
    kept.insert(name.toStdString());
  EXPECT_EQ(kept, shown) << test::drawn_anew();
}

INSTANTIATE_TEST_SUITE_P(Window, RecordedUses, ::testing::ValuesIn(recorded_uses()),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return "Use" + name;
                         });

}  // namespace
}  // namespace fuseline::gui
