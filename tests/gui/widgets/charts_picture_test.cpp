// Pictures of charts: nothing is blank, the screen and exports look the same, light and dark keep
// their contrast, vectors stay vectors.
#include <gtest/gtest.h>

#include <QBuffer>
#include <QSvgGenerator>
#include <QSvgRenderer>
#include <cmath>

#include "gui/widgets/charts/canvas.h"
#include "gui/widgets/charts/roofline_view.h"
#include "gui/widgets/charts/traffic_view.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

using test::Shown;

// Contrast as WCAG 2 defines it.
double contrast(const QColor& a, const QColor& b) {
  const auto luminance = [](const QColor& c) {
    const auto linear = [](double v) {
      return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
  };
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

class AllViews {
 public:
  AllViews() {
    test::application();
    bench_ = std::make_unique<Workbench>(test::small_document(), [] {});
    bench_->wait();
    home_ = std::make_unique<QWidget>();
    views_ = make_chart_views(*bench_, home_.get());
    for (View* view : views_) {
      view->refresh();
      view->finish();
    }
  }
  void use(const QPalette& palette) {
    for (View* view : views_) view->setPalette(palette);
  }
  [[nodiscard]] const std::vector<View*>& all() const { return views_; }

 private:
  std::unique_ptr<Workbench> bench_;
  std::unique_ptr<QWidget> home_;
  std::vector<View*> views_;
};

TEST(ChartPictures, EveryViewDrawsSomethingAtEverySize) {
  AllViews views;
  views.use(light_palette());
  for (View* view : views.all()) {
    for (const QSize size : {QSize(600, 400), QSize(900, 600), QSize(3840, 2160)}) {
      const QImage image = test::picture(*view, size);
      const std::string where = view->id().toStdString() + " " + std::to_string(size.width());
      EXPECT_EQ(test::part_of(image, Qt::magenta), 0) << where << ": not all is painted";
      const double background = test::part_of(image, view->theme().background());
      // The smallest there is: a sentence that says what is missing.
      EXPECT_LT(background, 0.998) << where;
      EXPECT_GT(background, 0.2) << where;
    }
  }
}

TEST(ChartPictures, IdsAreUniqueAndTablesHoldWhatIsDrawn) {
  AllViews views;
  QStringList ids;
  for (View* view : views.all()) {
    EXPECT_FALSE(ids.contains(view->id()));
    ids.append(view->id());
    EXPECT_FALSE(view->title().isEmpty());
    EXPECT_FALSE(view->hint().isEmpty());
    for (const Table& table : view->tables()) {
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << table.name;
    }
  }
  EXPECT_EQ(ids.size(), 11);
}

TEST(ChartPictures, ThePaletteChangesEveryPictureAndTextKeepsItsContrast) {
  AllViews views;
  for (View* view : views.all()) {
    view->setPalette(light_palette());
    const QImage light = test::picture(*view, {600, 400});
    EXPECT_FALSE(view->theme().is_dark());
    view->setPalette(dark_palette());
    const QImage dark = test::picture(*view, {600, 400});
    EXPECT_TRUE(view->theme().is_dark());
    EXPECT_GT(test::difference(light, dark), 0.9) << view->id().toStdString();
    EXPECT_EQ(dark.pixelColor(1, 1), view->theme().background());
    EXPECT_EQ(test::part_of(dark, light_palette().color(QPalette::Base), 2) > 0.05, false)
        << view->id().toStdString() << ": a light surface is left in the dark";
  }
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    const Theme theme(palette);
    EXPECT_GE(contrast(theme.colour(ColourRole::text), theme.background()), 7);
    EXPECT_GE(contrast(theme.colour(ColourRole::muted), theme.background()), 4.5);
    for (const ColourRole role :
         {ColourRole::limit, ColourRole::ceiling, ColourRole::baseline, ColourRole::highlight,
          ColourRole::better, ColourRole::worse, ColourRole::allowed, ColourRole::refused}) {
      EXPECT_GE(contrast(theme.colour(role), theme.background()), 3) << static_cast<int>(role);
    }
    // Names in the nodes of the graph, and texts on any run's colour.
    for (int role = 0; role <= static_cast<int>(ColourRole::refused); ++role) {
      for (int shade = 0; shade < 10; ++shade) {
        const QColor fill = theme.colour({static_cast<ColourRole>(role), shade});
        EXPECT_GE(contrast(ink_on(fill), fill), 4.5) << role << " " << shade;
      }
    }
    // Labels in bars.
    for (int role = static_cast<int>(ColourRole::kind_gemm);
         role <= static_cast<int>(ColourRole::tensor_output); ++role) {
      for (int shade = 0; shade < 4; ++shade) {
        const Mark mark{.colour = {static_cast<ColourRole>(role), shade}};
        for (const bool measured : {false, true}) {
          Mark m = mark;
          m.measured = measured;
          const QColor fill = look_of(m, theme, false, false).fill;
          EXPECT_GE(contrast(ink_on(fill), fill), 4.5) << role << " " << shade;
        }
      }
    }
  }
}

TEST(ChartPictures, TheExportLooksLikeTheScreen) {
  Shown<TrafficView> shown(test::small_document());
  Plot& plot = shown.plot();
  plot.clearFocus();
  const QImage screen = plot.grab().toImage().convertToFormat(QImage::Format_RGB32);
  QImage exported(plot.size(), QImage::Format_RGB32);
  QPainter painter(&exported);
  plot.paint_to(painter, QRect(QPoint(0, 0), plot.size()));
  painter.end();
  // Antialiasing of text and hairlines may differ; places and colours may not.
  EXPECT_LT(test::difference(screen, exported, 60), 0.02);
  // And a picture of other data would be found out.
  shown.view().stack_by(StackBy::tensor);
  QCoreApplication::processEvents();
  EXPECT_GT(
      test::difference(plot.grab().toImage().convertToFormat(QImage::Format_RGB32), exported, 60),
      0.02);
}

TEST(ChartPictures, HighResolutionShowsTheSameInMorePixels) {
  Shown<TrafficView> shown(test::small_document());
  QImage fine(1200, 800, QImage::Format_RGB32);
  fine.setDevicePixelRatio(2);
  fine.fill(Qt::magenta);
  QPainter painter(&fine);
  shown.view().paint_to(painter, {600, 400});
  painter.end();
  fine.setDevicePixelRatio(1);
  EXPECT_EQ(test::part_of(fine, Qt::magenta), 0);
  const QImage coarse = test::picture(shown.view(), {600, 400});
  const QImage smaller = fine.scaled(600, 400, Qt::IgnoreAspectRatio, Qt::SmoothTransformation)
                             .convertToFormat(QImage::Format_RGB32);
  EXPECT_LT(test::difference(coarse, smaller, 100), 0.02);
}

TEST(ChartPictures, SizesAreThoseOfThePainterAtAnyResolution) {
  AllViews views;
  for (View* view : views.all()) {
    QImage image(600, 400, QImage::Format_RGB32);
    image.setDotsPerMeterX(11811);  // 300 dots per inch
    image.setDotsPerMeterY(11811);
    image.fill(Qt::magenta);
    QPainter painter(&image);
    view->paint_to(painter, {600, 400});
    painter.end();
    EXPECT_LT(test::difference(image, test::picture(*view, {600, 400}), 60), 0.02)
        << view->id().toStdString();
  }
}

// Names and results of rows leave the axis a part of the width alone.
TEST(ChartPictures, ValuesOfANarrowAxisStandApart) {
  Shown<TrafficView> shown(test::small_document());
  Plot& plot = shown.plot();
  const QFont font = in_pixels(small_font(plot.font()));
  for (const int width : {260, 300, 340, 369, 420, 600, 900}) {
    shown.view().resize(width, 240);
    QCoreApplication::processEvents();
    plot.replot();
    QVector<double> ticks;
    QVector<QString> labels;
    plot.xAxis->ticker()->generate(plot.xAxis->range(), QLocale::c(), 'g', 6, ticks, nullptr,
                                   &labels);
    ASSERT_GE(ticks.size(), 2) << width;
    for (int i = 1; i < ticks.size(); ++i) {
      const double apart =
          plot.xAxis->coordToPixel(ticks[i]) - plot.xAxis->coordToPixel(ticks[i - 1]);
      const double texts = text_width(font, labels[i - 1]) + text_width(font, labels[i]);
      EXPECT_GT(apart, texts / 2) << width << ": " << labels[i].toStdString();
    }
  }
}

TEST(ChartPictures, PaintingAPictureLeavesTheScreenAsItWas) {
  Shown<RooflineView> shown(test::small_document(), MemoryLevel::hbm);
  const Plot::Zoom before = shown.plot().shown();
  const QImage screen = shown.plot().grab().toImage();
  test::picture(shown.view(), {3840, 2160});
  EXPECT_EQ(shown.plot().shown(), before);
  EXPECT_EQ(shown.plot().grab().toImage(), screen);
}

TEST(ChartPictures, VectorsStayVectors) {
  AllViews views;
  for (View* view : views.all()) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setSize({900, 600});
    generator.setViewBox(QRect(0, 0, 900, 600));
    QPainter painter(&generator);
    view->paint_to(painter, {900, 600});
    painter.end();
    EXPECT_TRUE(bytes.contains("<text")) << view->id().toStdString();
    EXPECT_FALSE(bytes.contains("<image")) << view->id().toStdString();
    QImage drawn(900, 600, QImage::Format_RGB32);
    drawn.fill(Qt::magenta);
    QPainter again(&drawn);
    QSvgRenderer(bytes).render(&again);
    again.end();
    EXPECT_LT(test::difference(drawn, test::picture(*view, {900, 600}), 100), 0.03)
        << view->id().toStdString();
  }
}

// Marks without text, as fonts differ between machines.
QImage sampler(const Theme& theme) {
  test::application();
  QImage image(240, 120, QImage::Format_RGB32);
  image.fill(theme.background());
  QPainter p(&image);
  p.setRenderHint(QPainter::Antialiasing);
  double x = 10;
  for (const ColourRole role :
       {ColourRole::kind_gemm, ColourRole::kind_attention, ColourRole::bound_hbm}) {
    Mark mark{.colour = {role, 0}};
    mark.size = 0.5;
    draw_bar(p, {x, 10, 60, 20}, mark, look_of(mark, theme, false, false), theme);
    draw_point(p, {x + 15, 80}, mark, look_of(mark, theme, false, true), theme);
    mark.measured = true;
    draw_bar(p, {x, 35, 60, 20}, mark, look_of(mark, theme, false, false), theme);
    mark.shape = Shape::diamond;
    draw_point(p, {x + 45, 80}, mark, look_of(mark, theme, true, false), theme);
    x += 75;
  }
  draw_arrow(p, {10, 110}, {230, 104}, theme.colour(ColourRole::muted), 2, false);
  return image;
}

// Edges may be antialiased otherwise: less than 2 % of the pixels may differ by more than 24 of
// 255.
constexpr double kTolerance = 0.02;

TEST(ChartPictures, MarksLookAsTheyDid) {
  for (const bool dark : {false, true}) {
    const Theme theme(dark ? dark_palette() : light_palette());
    const QString file = QStringLiteral(FUSELINE_SOURCE_DIR "/tests/gui/widgets/golden/marks-") +
                         (dark ? QStringLiteral("dark.png") : QStringLiteral("light.png"));
    const QImage drawn = sampler(theme);
    if (qEnvironmentVariableIsSet("FUSELINE_UPDATE_GOLDEN")) drawn.save(file);
    QImage golden(file);
    ASSERT_FALSE(golden.isNull()) << file.toStdString();
    golden = golden.convertToFormat(QImage::Format_RGB32);
    EXPECT_LT(test::difference(drawn, golden), kTolerance);
    // The comparison can fail: one bar of another colour is found.
    QImage wrong = golden;
    QPainter p(&wrong);
    p.fillRect(QRectF(10, 10, 60, 20), theme.colour(ColourRole::bound_hbm));
    p.end();
    EXPECT_GT(test::difference(drawn, wrong), kTolerance);
  }
}

}  // namespace
}  // namespace fuseline::gui
