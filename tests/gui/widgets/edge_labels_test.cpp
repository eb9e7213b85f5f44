// What edges of the block graph say stays readable.
#include <gtest/gtest.h>

#include <QGraphicsScene>
#include <QImage>
#include <QPainter>
#include <vector>

#include "gui/widgets/graph_items.h"
#include "tests/gui/widgets/charts_support.h"

namespace fuseline::gui {
namespace {

// An edge that is drawn later, and thicker, crosses the middle of another one's label.
TEST(EdgeLabels, NoEdgeStrikesTheLabelOfAnotherOneOut) {
  test::application();
  const Theme theme(light_palette());
  GraphEdge quiet, loud;
  quiet.label = "8.39 MB";
  quiet.thickness = 0.2;
  loud.thickness = 1;
  const auto picture = [&](bool crossed) {
    QGraphicsScene scene(-60, -60, 120, 120);
    std::vector<EdgeItem*> edges{
        new EdgeItem(quiet, {{0, -50}, {0, -17}, {0, 17}, {0, 50}}, theme)};
    if (crossed) edges.push_back(new EdgeItem(loud, {{-55, 0}, {-20, 0}, {20, 0}, {55, 0}}, theme));
    for (EdgeItem* edge : edges) scene.addItem(edge);
    edges.front()->place_label({});
    if (crossed) edges.back()->place_label({QRectF(-50, -20, 100, 40)});
    scene.addItem(new EdgeLabelsItem(edges, scene.sceneRect()));
    QImage image(120, 120, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    scene.render(&painter);
    return image.copy(60 - 18, 60 - 5, 36, 10);  // within the label
  };
  EXPECT_EQ(test::difference(picture(false), picture(true)), 0);
}

// A selected kernel lights all its edges: what they say must not lie over each other either.
TEST(EdgeLabels, ALitEdgeWithoutRoomLeavesOtherLabelsFree) {
  test::application();
  const Theme theme(light_palette());
  GraphEdge first, second;
  first.label = "196.1 MB";
  second.label = "184.8 MB";
  first.thickness = second.thickness = 0.2;
  const std::vector<Point> path{{0, -50}, {0, -17}, {0, 17}, {0, 50}};
  const auto picture = [&](bool both) {
    QGraphicsScene scene(-60, -60, 120, 120);
    std::vector<EdgeItem*> edges{new EdgeItem(first, path, theme)};
    if (both) edges.push_back(new EdgeItem(second, path, theme));
    for (EdgeItem* edge : edges) {
      scene.addItem(edge);
      edge->set_lit(true);
    }
    edges.front()->place_label({});
    if (both) edges.back()->place_label({QRectF(-60, -60, 120, 120)});
    scene.addItem(new EdgeLabelsItem(edges, scene.sceneRect()));
    QImage image(120, 120, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    scene.render(&painter);
    return image.copy(60 - 18, 60 - 5, 36, 10);  // within the label
  };
  EXPECT_EQ(test::difference(picture(false), picture(true)), 0);
}

}  // namespace
}  // namespace fuseline::gui
