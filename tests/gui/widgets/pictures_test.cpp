// The pictures of README.md and docs/gui.md are what the window draws today. Those of the recorded
// uses are compared where the uses are played (recorded_uses_test.cpp).
#include <gtest/gtest.h>

#include <QProcess>
#include <QTemporaryDir>

#include "tests/gui/widgets/kept_pictures.h"

namespace fuseline::gui {
namespace {

TEST(SlowPictures, OfTheDocumentsAreWhatTheScriptDraws) {
  if (!test::draws_kept_pictures()) GTEST_SKIP() << "not here: fonts-dejavu-core and graphviz";
  QTemporaryDir drawn;
  QProcess script;
  script.setWorkingDirectory(FUSELINE_SOURCE_DIR);
  script.start(FUSELINE_SOURCE_DIR "/scripts/gui-pictures.sh", {FUSELINE_GUI_BINARY, drawn.path()});
  ASSERT_TRUE(script.waitForFinished(1200000));
  ASSERT_EQ(script.exitCode(), 0) << script.readAllStandardError().toStdString();
  const QStringList names = QDir(drawn.path()).entryList({"*.png"}, QDir::Files, QDir::Name);
  QStringList kept = test::kept_pictures().entryList({"*.png"}, QDir::Files, QDir::Name);
  kept.erase(std::remove_if(kept.begin(), kept.end(),
                            [](const QString& name) { return name.startsWith("use-"); }),
             kept.end());
  EXPECT_EQ(names, kept) << test::drawn_anew();
  EXPECT_GE(names.size(), 8);
  for (const QString& name : names)
    test::expect_as_kept(QImage(QDir(drawn.path()).filePath(name)), name);
}

TEST(SlowPictures, AreShownSomewhere) {
  QStringList text;
  for (const char* page : {"/README.md", "/docs/gui.md"}) {
    QFile file(QString(FUSELINE_SOURCE_DIR) + page);
    ASSERT_TRUE(file.open(QIODevice::ReadOnly));
    text << QString::fromUtf8(file.readAll());
  }
  for (const QString& name : QDir(FUSELINE_SOURCE_DIR "/docs/pictures").entryList({"*.png"})) {
    EXPECT_TRUE(text.join("").contains("pictures/" + name)) << name.toStdString();
  }
}

}  // namespace
}  // namespace fuseline::gui
