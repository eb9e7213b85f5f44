// Pictures as they were, of numbers made up here: they change when the drawing changes, and not
// when the simulator learns something. Font: DejaVu Sans, of Debian's package fonts-dejavu-core.
//
// FUSELINE_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>

#include <QDir>
#include <QFontDatabase>
#include <QImage>

#include "gui/model/dot_layout.h"
#include "gui/widgets/charts/memory_drawing.h"
#include "gui/widgets/charts/traffic_view.h"
#include "gui/widgets/graph_scene.h"
#include "gui/widgets/theme.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

// Another release of the font engine may move the edges of letters by a part of a pixel: a pixel
// counts when it is off by more than 60 of 255, and 1 % of the pixels may be. A letter's edge is
// rarely off by so much, and a bar that is 40 pixels longer is 0.9 % of one of these pictures.
constexpr int kGoldenSteps = 60;
constexpr double kGoldenTolerance = 0.008;
const QSize kSize(460, 300);

QFont golden_font() {
  QFont font("DejaVu Sans");
  font.setPointSizeF(9.5);
  return font;
}

TrafficBar bar(const std::string& policy, bool measured, const std::vector<std::int64_t>& megabytes,
               std::int64_t base) {
  static const Colour kColours[] = {{ColourRole::kind_gemm, 0},
                                    {ColourRole::kind_norm, 0},
                                    {ColourRole::kind_attention, 0},
                                    {ColourRole::kind_gemm, 1}};
  TrafficBar b;
  b.run = RunId{static_cast<int>(policy.size()) + (measured ? 100 : 0)};
  b.policy = policy;
  b.label = policy + (measured ? ", measured" : "");
  b.measured = measured;
  b.is_baseline = policy == "eager" && !measured;
  for (std::size_t i = 0; i < megabytes.size(); ++i) {
    const Bytes bytes(megabytes[i] * 1'000'000);
    b.parts.push_back({.label = "part" + std::to_string(i),
                       .from = b.total,
                       .bytes = bytes,
                       .tooltip = {},
                       .colour = kColours[i % 4],
                       .thing = {}});
    b.total += bytes;
  }
  b.delta = delta_of(Bytes(base * 1'000'000), b.total);
  return b;
}

TrafficChart traffic(std::int64_t last_megabytes = 300) {
  TrafficChart chart;
  chart.bars = {bar("eager", false, {500, 80, 300, 700}, 1580),
                bar("eager", true, {520, 70, 310, 640}, 1580),
                bar("coda", false, {480, 20, 90, last_megabytes}, 1580)};
  chart.limit = Bytes(440'000'000);
  chart.limit_label = "compulsory: 440.0 MB";
  chart.axis_high = 2e9;
  return chart;
}

QImage empty_picture(const Theme& theme) {
  QImage image(kSize, QImage::Format_RGB32);
  image.fill(theme.background());
  return image;
}

QImage picture_of(const Scene& scene, const QPalette& palette) {
  Plot plot(nullptr);
  plot.setFont(golden_font());
  plot.setPalette(palette);
  plot.set_style(Theme(palette), golden_font());
  plot.set_scene(scene);
  QImage image = empty_picture(Theme(palette));
  QPainter painter(&image);
  plot.paint_to(painter, QRect(QPoint(), kSize));
  return image;
}

QImage memory_picture(const QPalette& palette) {
  MemoryChart chart;
  chart.title = "coda: the block";
  chart.boxes = {{MemoryLevel::registers,
                  "registers and tensor cores",
                  "",
                  0.7,
                  "70 % of 1.00 PFLOP/s",
                  true,
                  "",
                  {ColourRole::bound_tensor, 0},
                  {}},
                 {MemoryLevel::smem,
                  "shared memory",
                  "132 × 228 KiB",
                  0.4,
                  "40 % of 33.0 TB/s",
                  false,
                  "",
                  {ColourRole::bound_smem, 0},
                  {}},
                 {MemoryLevel::l2,
                  "L2",
                  "60 MiB",
                  0.55,
                  "55 % of 9.70 TB/s",
                  false,
                  "",
                  {ColourRole::bound_l2, 0},
                  {}},
                 {MemoryLevel::hbm,
                  "HBM",
                  "141 GB",
                  0.2,
                  "20 % of 4.80 TB/s",
                  false,
                  "",
                  {ColourRole::bound_hbm, 0},
                  {}}};
  const auto arrow = [](MemoryLevel from, MemoryLevel to, std::int64_t bytes,
                        const std::string& label) {
    return MemoryArrow{
        .from = from, .to = to, .bytes = Bytes(bytes), .rate = {}, .label = label, .tooltip = {}};
  };
  chart.arrows = {
      arrow(MemoryLevel::hbm, MemoryLevel::l2, 1'000'000'000, "1.00 GB · 900 GB/s"),
      arrow(MemoryLevel::l2, MemoryLevel::hbm, 150'000'000, "150.0 MB · 127 GB/s"),
      arrow(MemoryLevel::l2, MemoryLevel::smem, 7'500'000'000, "7.50 GB · 6.53 TB/s"),
      arrow(MemoryLevel::smem, MemoryLevel::registers, 21'000'000'000, "21.0 GB · 18.3 TB/s")};
  const Theme theme(palette);
  QImage image = empty_picture(theme);
  QPainter painter(&image);
  draw_memory(painter, QRectF(QPointF(), kSize), {chart}, theme, golden_font(), {});
  return image;
}

BlockGraph small_graph() {
  BlockGraph graph;
  graph.title = "coda: one block";
  graph.repeat = "× 32";
  const auto node = [&](const std::string& id, bool tensor, ColourRole role) {
    const std::string name = id.substr(id.find(':') + 1);
    graph.nodes.push_back({.id = id,
                           .is_tensor = tensor,
                           .label = name,
                           .detail = tensor ? "[2048, 4096] bf16" : "GEMM",
                           .tooltip = {},
                           .colour = {role, 0},
                           .thing = tensor ? tensor_thing(name) : op_thing(name)});
  };
  node("tensor:x", true, ColourRole::tensor_input);
  node("op:gate_up", false, ColourRole::kind_gemm);
  node("op:swiglu", false, ColourRole::kind_pointwise);
  node("op:down", false, ColourRole::kind_attention);
  const auto edge = [&](const std::string& from, const std::string& to, bool on_chip,
                        double thickness, const std::string& label) {
    GraphEdge e;
    e.from = from;
    e.to = to;
    e.tensor = "t";
    e.can_toggle = e.fused = on_chip;
    e.on_chip = on_chip;
    if (from.starts_with("op:")) e.choice = {from.substr(3), to.substr(3)};
    e.thickness = thickness;
    e.label = label;
    graph.edges.push_back(e);
  };
  edge("tensor:x", "op:gate_up", false, 0.5, "16.8 MB");
  edge("op:gate_up", "op:swiglu", true, 0, "on chip");
  edge("op:swiglu", "op:down", false, 0.9, "45.1 MB");
  graph.groups.push_back({.kernel = 0,
                          .name = "gate_up",
                          .nodes = {"op:gate_up", "op:swiglu"},
                          .colour = {ColourRole::kind_gemm, 0},
                          .thing = {}});
  return graph;
}

QImage graph_picture(const QPalette& palette) {
  const Theme theme(palette);
  const BlockGraph graph = small_graph();
  GraphScene scene(nullptr);
  scene.show_graph(graph, layered_layout(graph), theme);  // of ours: dot's releases differ
  QImage image = empty_picture(theme);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  scene.render(&painter, QRectF(QPointF(), kSize), scene.picture(), Qt::KeepAspectRatio);
  return image;
}

class Golden : public ::testing::Test {
 protected:
  void SetUp() override {
    test::application();
    if (!QFontDatabase().families().contains("DejaVu Sans")) {
      GTEST_SKIP() << "the font DejaVu Sans is not here: apt install fonts-dejavu-core";
    }
    before_ = QApplication::font();
    QApplication::setFont(golden_font());
  }
  void TearDown() override { QApplication::setFont(before_); }

  static QString file_of(const QString& name) {
    return QStringLiteral(FUSELINE_SOURCE_DIR "/tests/gui/widgets/golden/") + name + ".png";
  }
  static double difference_to(const QString& name, const QImage& drawn) {
    const QImage golden = QImage(file_of(name)).convertToFormat(QImage::Format_RGB32);
    return test::difference(drawn, golden, kGoldenSteps);
  }
  static void expect_as_before(const QString& name, const QImage& drawn) {
    if (qEnvironmentVariableIsSet("FUSELINE_UPDATE_GOLDEN")) drawn.save(file_of(name));
    const double difference = difference_to(name, drawn);
    if (difference <= kGoldenTolerance) return;
    const QString looked_at = QDir::temp().filePath("golden-" + name + "-drawn.png");
    drawn.save(looked_at);
    ADD_FAILURE() << name.toStdString() << ": " << 100 * difference
                  << " % of the pixels differ; drawn: " << looked_at.toStdString();
  }

 private:
  QFont before_;
};

TEST_F(Golden, TrafficPredictedBesideMeasured) {
  const Scene scene = traffic_scene(traffic());
  expect_as_before("traffic-light", picture_of(scene, light_palette()));
  expect_as_before("traffic-dark", picture_of(scene, dark_palette()));
}

TEST_F(Golden, MemoryHierarchy) {
  expect_as_before("memory-light", memory_picture(light_palette()));
}

TEST_F(Golden, BlockGraph) {
  expect_as_before("graph-light", graph_picture(light_palette()));
  expect_as_before("graph-dark", graph_picture(dark_palette()));
}

// The comparison must fail where there is something to find.
TEST_F(Golden, AChangedBarALostEdgeAndTheOtherColoursAreFound) {
  if (qEnvironmentVariableIsSet("FUSELINE_UPDATE_GOLDEN")) GTEST_SKIP() << "writing them";
  const QImage longer = picture_of(traffic_scene(traffic(560)), light_palette());
  EXPECT_GT(difference_to("traffic-light", longer), kGoldenTolerance);
  EXPECT_GT(difference_to("traffic-light", picture_of(traffic_scene(traffic()), dark_palette())),
            0.5);
  EXPECT_GT(difference_to("graph-light", graph_picture(dark_palette())), 0.5);
  EXPECT_EQ(difference_to("no-such-picture", longer), 1);
}

}  // namespace
}  // namespace fuseline::gui
