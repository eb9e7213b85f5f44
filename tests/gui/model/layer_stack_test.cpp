// All layers of a model: which there are, and where.
#include "gui/model/layer_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

LayerStack stack_of(const gui::Setup& setup, const std::string& policy) {
  Document document = test::small_document({policy});
  document.setup = setup;
  ResultCache cache;
  const Results results = compute(document, cache);
  return layer_stack({document, results.runs.front()}, cache);
}

TEST(LayerStack, HasEveryLayerWithTheBlocksOperators) {
  const LayerStack stack = stack_of(test::small_setup(), "coda");
  ASSERT_EQ(stack.kinds.size(), 1U);
  const LayerKind& kind = stack.kinds.front();
  EXPECT_EQ(stack.layers(), 22);  // TinyLlama's
  EXPECT_EQ(stack.operators(), 22 * kind.operators);
  EXPECT_GT(kind.operators, 8);
  EXPECT_TRUE(kind.is_first);
  // Bands fill the layer, each as its kernel's share of the time.
  ASSERT_FALSE(kind.bands.empty());
  EXPECT_EQ(kind.bands.front().begin, 0);
  EXPECT_NEAR(kind.bands.back().end, 1, 1e-9);
  for (std::size_t i = 1; i < kind.bands.size(); ++i)
    EXPECT_EQ(kind.bands[i].begin, kind.bands[i - 1].end);
  EXPECT_EQ(unlike_in(to_table(stack)), "");
}

TEST(LayerStack, HasEachKindOfLayers) {
  gui::Setup setup = test::small_setup();
  setup.model = "gemma2-9b";
  const LayerStack stack = stack_of(setup, "per-operator");
  ASSERT_EQ(stack.kinds.size(), 2U) << stack.note;
  EXPECT_NE(stack.kinds[0].name, stack.kinds[1].name);
  EXPECT_EQ(stack.layers(), 42);
  EXPECT_TRUE(stack.kinds[0].is_first);
  EXPECT_FALSE(stack.kinds[1].is_first);
}

TEST(LayerStack, PlacesNoLayerOverAnother) {
  const LayerStack stack = stack_of(test::small_setup(), "eager");
  for (const double ratio : {0.4, 1.0, 2.5}) {
    const StackPlaces places = stack_places(stack, ratio);
    ASSERT_EQ(places.layers.size(), 22U);
    const double width = stack.kinds[0].layout.width, height = stack.kinds[0].layout.height;
    for (std::size_t i = 0; i < places.layers.size(); ++i) {
      const LayerPlace& a = places.layers[i];
      EXPECT_EQ(a.number, static_cast<std::int64_t>(i) + 1);
      EXPECT_LE(a.x + width, places.width + 1e-6);
      EXPECT_LE(a.y + height, places.height + 1e-6);
      for (std::size_t k = i + 1; k < places.layers.size(); ++k) {
        const LayerPlace& b = places.layers[k];
        EXPECT_TRUE(std::abs(a.x - b.x) >= width || std::abs(a.y - b.y) >= height);
      }
    }
  }
  EXPECT_TRUE(stack_places({}, 1).layers.empty());
}

TEST(LayerStack, OfARunWithoutAGraphSaysWhy) {
  Document document = test::small_document({"coda"});
  RunView view{document.runs.all().front(), nullptr, {}};
  ResultCache cache;
  EXPECT_NE(layer_stack({document, view}, cache).problem, "");
}

}  // namespace
}  // namespace fuseline::gui
