#include "gui/model/history.h"

#include <gtest/gtest.h>

#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

Document named(const std::string& title) {
  Document d;
  d.title = title;
  return d;
}

TEST(History, UndoAndRedoGoThroughTheDocuments) {
  History h(named("a"));
  h.change(named("b"), "b");
  h.change(named("c"), "c");
  EXPECT_EQ(h.undo_text(), "Undo c");
  EXPECT_TRUE(h.undo());
  EXPECT_EQ(h.document().title, "b");
  EXPECT_EQ(h.redo_text(), "Redo c");
  EXPECT_TRUE(h.redo());
  EXPECT_EQ(h.document().title, "c");
  EXPECT_FALSE(h.redo());
}

TEST(History, AChangeForgetsWhatWasUndone) {
  History h(named("a"));
  h.change(named("b"), "b");
  h.undo();
  h.change(named("c"), "c");
  EXPECT_FALSE(h.can_redo());
  h.undo();
  EXPECT_EQ(h.document().title, "a");
}

TEST(History, TheSameDocumentIsNoStep) {
  History h(named("a"));
  h.change(named("a"), "nothing");
  EXPECT_FALSE(h.can_undo());
}

TEST(History, AGestureIsOneStep) {
  History h(named("a"));
  for (const char* title : {"b", "c", "d"}) h.change(named(title), "drag", "slider");
  h.undo();
  EXPECT_EQ(h.document().title, "a");
  h.redo();
  EXPECT_EQ(h.document().title, "d");
}

TEST(History, AnotherGestureOrItsEndBeginsAStep) {
  History h(named("a"));
  h.change(named("b"), "drag", "slider");
  h.change(named("c"), "drag", "another");
  h.undo();
  EXPECT_EQ(h.document().title, "b");
  h.change(named("d"), "drag", "slider");
  h.end_gesture();
  h.change(named("e"), "drag", "slider");
  h.undo();
  EXPECT_EQ(h.document().title, "d");
}

TEST(History, DirtyMeansDifferentFromWhatWasSaved) {
  History h(named("a"));
  EXPECT_FALSE(h.is_dirty());
  h.change(named("b"), "b");
  EXPECT_TRUE(h.is_dirty());
  h.mark_saved();
  EXPECT_FALSE(h.is_dirty());
  h.undo();
  EXPECT_TRUE(h.is_dirty());
  h.redo();
  EXPECT_FALSE(h.is_dirty());
}

TEST(History, KeepsABoundedNumberOfSteps) {
  History h(named("0"));
  const int steps = static_cast<int>(History::kDeepest) + 10;
  for (int i = 1; i <= steps; ++i) h.change(named(std::to_string(i)), "step");
  int undone = 0;
  while (h.undo()) ++undone;
  EXPECT_EQ(undone, static_cast<int>(History::kDeepest));
  EXPECT_EQ(h.document().title, "10");
}

}  // namespace
}  // namespace fuseline::gui
