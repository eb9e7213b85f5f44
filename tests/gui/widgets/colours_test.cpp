// Dark and light: no widget goes while Qt tells all of them of the other colours.
#include <gtest/gtest.h>

#include <QAction>
#include <QComboBox>
#include <QLineEdit>
#include <QMenu>
#include <QTableView>
#include <algorithm>
#include <string>
#include <vector>

#include "tests/gui/widgets/window_support.h"

namespace fuseline::gui {
namespace {

using test::Window;

// Other colours, with an ear on every widget there is.
std::vector<std::string> gone_while_colours_change(Window& window) {
  std::vector<std::string> gone;
  std::vector<QMetaObject::Connection> heard;
  bool telling = true;
  for (QWidget* widget : QApplication::allWidgets()) {
    const std::string about =
        std::string(widget->metaObject()->className()) + " " + widget->objectName().toStdString();
    heard.push_back(QObject::connect(widget, &QObject::destroyed, qApp, [&gone, &telling, about] {
      if (telling) gone.push_back(about);
    }));
  }
  window->action("dark")->toggle();
  telling = false;
  for (const QMetaObject::Connection& connection : heard) QObject::disconnect(connection);
  return gone;
}

void expect_all_stay(Window& window, const std::string& when) {
  EXPECT_EQ(gone_while_colours_change(window), std::vector<std::string>{}) << when;
  QCoreApplication::processEvents();
}

TEST(OtherColours, LeaveEveryWidgetOfEveryViewWhereItIs) {
  Window window;
  for (View* view : window->views()) {
    window->raise_view(view->id());
    QCoreApplication::processEvents();
    expect_all_stay(window, view->id().toStdString());
    const QList<QComboBox*> boxes = view->findChildren<QComboBox*>();
    const auto box = std::ranges::find_if(boxes, [](const QComboBox* b) {
      return b->isVisible() && b->isEnabled() && b->count() > 0;
    });
    if (box == boxes.end()) continue;
    (*box)->showPopup();  // its list is a widget, too
    expect_all_stay(window, "list of " + view->id().toStdString());
    (*box)->hidePopup();
  }
}

TEST(OtherColours, LeaveWhatIsTypedCarriedAskedAndOpenWhereItIs) {
  Window window(test::window_document({"eager", "coda"}));
  window->action("shortcuts")->trigger();
  window->action("glossary")->trigger();
  window->action("tour")->trigger();
  expect_all_stay(window, "dialogs and the tour");
  // A refused edit, whose strip has buttons; a new one takes their place.
  EditNotice notice;
  notice.text = "of a test";
  notice.suggestions.resize(2);
  window->graph().edit_bar().show_notice(notice);
  expect_all_stay(window, "strip over the graph");
  window->graph().edit_bar().show_hint("another");
  expect_all_stay(window, "strip whose buttons go");
  QTableView& runs = window->runs().table();
  runs.setFocus();
  runs.edit(window->runs().model().index(0, RunModel::name));
  ASSERT_NE(runs.findChild<QLineEdit*>(), nullptr);
  expect_all_stay(window, "a run's name is typed");
  window->graph().drag().lift("qkv");
  expect_all_stay(window, "an operator is carried");
  window->graph().drag().cancel();
  QMenu* menu = window->findChild<QMenu*>();
  ASSERT_NE(menu, nullptr);
  menu->popup(window->mapToGlobal({50, 50}));
  expect_all_stay(window, "an open menu");
  menu->close();
}

}  // namespace
}  // namespace fuseline::gui
