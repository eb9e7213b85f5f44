// All layers of a model in the window.
#include "gui/widgets/layers_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

LayersView& layers_of(Window& window) {
  window->raise_view("layers");
  window.settle();
  auto& view = *qobject_cast<LayersView*>(window->view("layers"));
  view.finish();
  return view;
}

TEST(LayersView, ShowsMoreTheNearerItIs) {
  Window window(test::window_document({"eager", "coda"}));
  LayersCanvas& canvas = layers_of(window).canvas();
  EXPECT_EQ(canvas.stack().layers(), 32);
  const StackDetail far = canvas.detail();
  EXPECT_NE(far, StackDetail::names);  // 32 layers in one picture
  canvas.setFocus();
  QTest::keyClick(&canvas, Qt::Key_PageDown);  // to layer 2
  EXPECT_EQ(canvas.layer(), 2);
  EXPECT_EQ(canvas.detail(), StackDetail::names);
  QTest::keyClick(&canvas, Qt::Key_End);
  EXPECT_EQ(canvas.layer(), 32);
  QTest::keyClick(&canvas, Qt::Key_0);
  EXPECT_EQ(canvas.detail(), far);
}

TEST(LayersView, AClickOnAnOperatorSelectsItEverywhere) {
  Window window(test::window_document({"eager", "coda"}));
  LayersCanvas& canvas = layers_of(window).canvas();
  canvas.go_to_layer(3);
  const QRectF box = canvas.operator_box(3, "qkv");
  ASSERT_FALSE(box.isNull());
  for (int i = 0; i < 30 && !QRectF(canvas.rect()).contains(canvas.operator_box(3, "qkv").center());
       ++i)
    QTest::keyClick(&canvas, Qt::Key_Down);
  QTest::mouseClick(&canvas, Qt::LeftButton, {}, canvas.operator_box(3, "qkv").center().toPoint());
  EXPECT_EQ(window.bench().selection().selected, op_thing("qkv"));
}

// What is painted with ten thousand operators is what can be seen of them.
TEST(LayersView, TenThousandOperatorsArePaintedFromAfar) {
  Window window(test::window_document({"eager", "coda"}));
  LayersCanvas& canvas = layers_of(window).canvas();
  LayerStack many = canvas.stack();
  many.kinds.front().layers = 10'000 / many.kinds.front().operators + 1;
  canvas.show_stack(many);
  EXPECT_GE(canvas.stack().operators(), 10'000);
  const QImage picture = canvas.grab().toImage();
  std::set<QRgb> colours;
  for (int x = 0; x < picture.width(); x += 3)
    for (int y = 0; y < picture.height(); y += 3) colours.insert(picture.pixel(x, y));
  EXPECT_GT(colours.size(), 3U);  // bands of several kinds of kernels
}

}  // namespace
}  // namespace fuseline::gui
