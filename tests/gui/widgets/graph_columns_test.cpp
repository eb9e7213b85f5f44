#include "gui/widgets/graph_columns.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fuseline::gui {
namespace {

// Boxes of 200 x 40, one under the other, 60 apart.
std::vector<QRectF> boxes_in_a_row(int count) {
  std::vector<QRectF> boxes;
  for (int i = 0; i < count; ++i) boxes.emplace_back(20, 20 + i * 100, 200, 40);
  return boxes;
}

TEST(GraphColumns, WhatCanBeReadStaysOnePart) {
  const QRectF all(0, 0, 240, 700);
  EXPECT_EQ(graph_columns(all, boxes_in_a_row(7), {900, 560}), std::vector<QRectF>{all});
}

TEST(GraphColumns, ALongGraphOnAWidePageIsCutBetweenBoxes) {
  const QRectF all(0, 0, 240, 2000);
  const std::vector<QRectF> boxes = boxes_in_a_row(20);
  const std::vector<QRectF> columns = graph_columns(all, boxes, {900, 560});
  ASSERT_GE(columns.size(), 2U);
  EXPECT_EQ(columns.front().top(), all.top());
  EXPECT_EQ(columns.back().bottom(), all.bottom());
  double longest = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    longest = std::max(longest, columns[i].height());
    // What goes on is in both, and no box is cut or drawn twice.
    if (i > 0) {
      EXPECT_LE(columns[i].top(), columns[i - 1].bottom());
    }
    int inside = 0;
    for (const QRectF& box : boxes) {
      const QRectF part = box & columns[i];
      EXPECT_TRUE(part.isEmpty() || part == box);
      inside += part.isEmpty() ? 0 : 1;
    }
    EXPECT_GE(inside, 1);
  }
  // All of it in one part is drawn at 560 / 2000.
  EXPECT_GE(560 / longest, 2 * 560.0 / 2000);
}

TEST(GraphColumns, AGraphFromLeftToRightIsCutIntoRows) {
  std::vector<QRectF> boxes = boxes_in_a_row(20);
  for (QRectF& box : boxes) box = QRectF(box.y(), box.x(), box.height(), box.width());
  const std::vector<QRectF> rows = graph_columns(QRectF(0, 0, 2000, 240), boxes, {900, 560});
  ASSERT_GE(rows.size(), 2U);
  EXPECT_EQ(rows.front().left(), 0);
  EXPECT_EQ(rows.back().right(), 2000);
  for (const QRectF& row : rows) EXPECT_EQ(row.height(), 240);
}

TEST(GraphColumns, BoxesWithoutAGapAreNotCut) {
  const QRectF all(0, 0, 240, 2000);
  EXPECT_EQ(graph_columns(all, {QRectF(20, 20, 200, 1900)}, {900, 560}).size(), 1U);
  EXPECT_EQ(graph_columns(all, {}, {900, 560}).size(), 1U);
}

}  // namespace
}  // namespace fuseline::gui
