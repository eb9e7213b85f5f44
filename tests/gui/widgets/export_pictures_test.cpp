// Headless export: the same numbers as the command line's, every view as a picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QDir>
#include <QProcess>
#include <QSet>
#include <QTemporaryDir>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "gui/widgets/app.h"
#include "gui/widgets/picture_export.h"
#include "tests/gui/widgets/window_support.h"

#include "cli/app.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Ran {
  int status = -1;
  std::string err;
};

Ran run_window(const QStringList& args) {
  QProcess process;
  process.setWorkingDirectory(FUSELINE_SOURCE_DIR);
  process.start(FUSELINE_GUI_BINARY, args);
  process.waitForFinished(120000);
  return {process.exitCode(), process.readAllStandardError().toStdString()};
}

TEST(Export, GivesTheNumbersOfTheCommandLine) {
  test::application();
  QTemporaryDir folder;
  const std::filesystem::path out = folder.path().toStdString();
  const Ran ran = run_window({"--export", folder.path(), "scenarios/tinyllama-rtx4090.toml",
                              "--size", "600x400", "--format", "png,svg,pdf"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const nlohmann::json exported = nlohmann::json::parse(contents(out / "predictions.json"));
  std::ostringstream text, messages;
  ASSERT_EQ(
      run_cli({"predict", std::string(FUSELINE_SOURCE_DIR) + "/scenarios/tinyllama-rtx4090.toml",
               "--format", "json"},
              text, messages),
      0);
  EXPECT_EQ(exported, nlohmann::json::parse(text.str()));
  for (const char* view : {"graph", "traffic", "waterfall", "memory", "timeline", "kernels",
                           "program", "sweep", "validation"}) {
    for (const char* format : {".png", ".svg", ".pdf"}) {
      EXPECT_GT(contents(out / (std::string(view) + format)).size(), 1000U) << view << format;
    }
  }
  const QImage graph(folder.filePath("graph.png"));
  EXPECT_EQ(graph.size(), QSize(600, 400));
  EXPECT_THAT(contents(out / "graph.svg"), HasSubstr("gate_up"));  // text stays text
  EXPECT_EQ(contents(out / "graph.pdf").substr(0, 5), "%PDF-");
  EXPECT_FALSE(QImage(folder.filePath("window.png")).isNull());
}

TEST(Export, OnlyTheViewsThatAreAskedFor) {
  test::application();
  QTemporaryDir folder;
  const Ran ran = run_window({"--export", folder.path(), "scenarios/tinyllama-rtx4090.toml",
                              "--size", "600x400", "--views", "traffic,window"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const QStringList pictures = QDir(folder.path()).entryList({"*.png"}, QDir::Files, QDir::Name);
  EXPECT_EQ(pictures, QStringList({"traffic.png", "window.png"}));
  EXPECT_EQ(QImage(folder.filePath("window.png")).size(), QSize(900, 600)) << "the least";
  const Ran wrong = run_window({"--export", folder.path(), "--views", "trafic"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean 'traffic'"));
}

bool has_single_pixels(const QImage& image) {
  for (int y = 0; y + 1 < image.height(); y += 2)
    for (int x = 0; x + 1 < image.width(); x += 2)
      if (image.pixel(x, y) != image.pixel(x + 1, y)) return true;
  return false;
}

TEST(Export, TheWindowHasAsManyPixelsAsItsViews) {
  test::application();
  QTemporaryDir folder;
  const Ran ran = run_window({"--export", folder.path(), "scenarios/tinyllama-rtx4090.toml",
                              "--size", "900x600", "--views", "traffic,window", "--scale", "2"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const QImage window(folder.filePath("window.png")), traffic(folder.filePath("traffic.png"));
  EXPECT_EQ(traffic.size(), QSize(1800, 1200));
  EXPECT_EQ(window.size(), QSize(1800, 1200));
  EXPECT_TRUE(has_single_pixels(window)) << "drawn so, and not made larger";
}

TEST(Export, NamesOfFilesArePlainAndUnique) {
  test::Window window(default_document());
  QTemporaryDir folder;
  const QStringList names = export_views(window.bench(), window->views(),
                                         folder.path().toStdString(), {.size = {400, 300}});
  EXPECT_EQ(names.size(), QSet<QString>(names.begin(), names.end()).size());
  EXPECT_EQ(QDir(folder.path()).entryList(QDir::Files).size(), names.size());
  for (const QString& name : names) {
    for (const QChar c : name) {
      EXPECT_TRUE(c == '-' || c == '.' || (c.unicode() < 128 && c.isLetterOrNumber()))
          << name.toStdString();
    }
  }
  EXPECT_TRUE(names.contains("memory-eager-measured.csv"));
  EXPECT_TRUE(names.contains("kernels-torch-compile-measured.json"));
}

TEST(Export, WrongInputIsRefusedAsOnTheCommandLine) {
  test::application();
  QTemporaryDir folder;
  const Ran missing = run_window({"--export", folder.path(), "no-such.toml"});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("no-such.toml"));
  EXPECT_EQ(run_window({"--exprot"}).status, 2);
  EXPECT_EQ(run_window({"--export", folder.path(), "--run", "nobody"}).status, 2);
  EXPECT_EQ(run_window({"--help"}).status, 0);
}

TEST(Options, AreReadAndWrongOnesRefused) {
  const AppOptions o = parse_options({"--export=out", "a.toml", "--size", "900x600", "--dark",
                                      "--format", "svg,pdf", "--scale", "2"});
  EXPECT_EQ(o.export_folder, "out");
  EXPECT_EQ(o.session, "a.toml");
  EXPECT_EQ(o.size, QSize(900, 600));
  EXPECT_EQ(o.dark, std::optional(true));
  EXPECT_EQ(o.formats, QStringList({"svg", "pdf"}));
  EXPECT_EQ(o.scale, 2);
  for (const char* size : {"900", "10x10", "900x600x2", "-900x600", "x", "99999x600"}) {
    EXPECT_THROW(parse_options({"--size", size}), InputError) << size;
  }
  EXPECT_THROW(parse_options({"--format", "gif"}), InputError);
  EXPECT_THROW(parse_options({"--scale", "0"}), InputError);
  EXPECT_THROW(parse_options({"--export"}), InputError);
  EXPECT_THROW(parse_options({"a.toml", "b.toml"}), InputError);
}

TEST(Export, APictureThatCannotBeWrittenIsAnError) {
  test::Window window(test::window_document({"coda"}));
  EXPECT_THROW(write_picture(window->graph(), "/no/such/folder/graph.png", {400, 300}), InputError);
  EXPECT_THROW(write_picture(window->graph(), window.folder() / "graph.gif", {400, 300}),
               InputError);
}

}  // namespace
}  // namespace fuseline::gui
