// The pictures of README.md and docs/gui.md are what the window draws today.
#include <gtest/gtest.h>

#include <QDir>
#include <QFontDatabase>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>

#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

// As for the golden pictures: a pixel counts when it is off by more than 60 of 255, and 1 % of them
// may be. scripts/gui-pictures.sh draws them anew.
constexpr int kSteps = 60;
constexpr double kPictureTolerance = 0.01;

TEST(SlowPictures, OfTheDocumentsAreWhatTheScriptDraws) {
  test::application();
  if (!QFontDatabase().families().contains("DejaVu Sans") ||
      QStandardPaths::findExecutable("dot").isEmpty()) {
    GTEST_SKIP() << "not here: fonts-dejavu-core and graphviz, which the pictures were drawn with";
  }
  QTemporaryDir drawn;
  QProcess script;
  script.setWorkingDirectory(FUSELINE_SOURCE_DIR);
  script.start(FUSELINE_SOURCE_DIR "/scripts/gui-pictures.sh",
               {FUSELINE_GUI_BINARY, drawn.path(), FUSELINE_GUI_ROBOT});
  ASSERT_TRUE(script.waitForFinished(1200000));
  ASSERT_EQ(script.exitCode(), 0) << script.readAllStandardError().toStdString();
  const QDir kept(FUSELINE_SOURCE_DIR "/docs/pictures");
  const QStringList names = kept.entryList({"*.png"}, QDir::Files, QDir::Name);
  const QDir root(FUSELINE_SOURCE_DIR);
  const std::string anew =
      ": they are drawn anew, from the folder of the sources, with\n  scripts/gui-pictures.sh " +
      root.relativeFilePath(FUSELINE_GUI_BINARY).toStdString() + " docs/pictures " +
      root.relativeFilePath(FUSELINE_GUI_ROBOT).toStdString();
  EXPECT_EQ(names, QDir(drawn.path()).entryList({"*.png"}, QDir::Files, QDir::Name)) << anew;
  EXPECT_GE(names.size(), 8);
  for (const QString& name : names) {
    const QImage a(kept.filePath(name)), b(drawn.filePath(name));
    ASSERT_FALSE(a.isNull()) << name.toStdString();
    if (name == "use-12-searching.png")
      continue;  // in the middle of a search: never the same twice
    EXPECT_LE(test::difference(a.convertToFormat(QImage::Format_RGB32),
                               b.convertToFormat(QImage::Format_RGB32), kSteps),
              kPictureTolerance)
        << name.toStdString() << anew;
  }
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
