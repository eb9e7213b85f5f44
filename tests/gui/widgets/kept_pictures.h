// The pictures of docs/pictures beside what is drawn now.
#pragma once

#include <gtest/gtest.h>

#include <QDir>
#include <QFontDatabase>
#include <QStandardPaths>
#include <string>

#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui::test {

// Whether the font and Graphviz are here, which the pictures were drawn with.
inline bool draws_kept_pictures() {
  application();
  return QFontDatabase().families().contains("DejaVu Sans") &&
         !QStandardPaths::findExecutable("dot").isEmpty();
}

inline QDir kept_pictures() { return {FUSELINE_SOURCE_DIR "/docs/pictures"}; }

// How the pictures are drawn anew.
inline std::string drawn_anew() {
  const QDir root(FUSELINE_SOURCE_DIR);
  return ": they are drawn anew, from the folder of the sources, with\n  scripts/gui-pictures.sh " +
         root.relativeFilePath(FUSELINE_GUI_BINARY).toStdString() + " docs/pictures " +
         root.relativeFilePath(FUSELINE_GUI_ROBOT).toStdString();
}

// As for the golden pictures: a pixel counts when it is off by more than 60 of 255, and 1 % of them
// may be.
inline void expect_as_kept(const QImage& drawn, const QString& name) {
  constexpr int kSteps = 60;
  constexpr double kPictureTolerance = 0.01;
  const QImage kept(kept_pictures().filePath(name));
  ASSERT_FALSE(kept.isNull()) << name.toStdString() << drawn_anew();
  EXPECT_LE(difference(kept.convertToFormat(QImage::Format_RGB32),
                       drawn.convertToFormat(QImage::Format_RGB32), kSteps),
            kPictureTolerance)
      << name.toStdString() << drawn_anew();
}

}  // namespace fuseline::gui::test
