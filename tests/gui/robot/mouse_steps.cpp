#include "tests/gui/robot/mouse_steps.h"

#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QPointer>
#include <QSlider>
#include <QStyle>
#include <QStyleOptionSlider>
#include <QTest>
#include <QWheelEvent>
#include <iostream>
#include <memory>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui::robot {

namespace {

constexpr int kNotOffered = 99;
constexpr int kTries = 5;

Place& carried() {
  static Place place;
  return place;
}

// Opens the list. A release that comes late, on a busy machine, closes it again.
bool open_list(const Place& place, const QComboBox& combo) {
  for (int i = 0; i < kTries && !combo.view()->isVisible(); ++i) {
    click(place);
    QApplication::processEvents();
  }
  return combo.view()->isVisible();
}

// Until the box says that this entry was taken. One click is not always enough on a busy machine:
// the list takes no release soon after it opened, and stays open then.
void choose(const Place& place, const QString& box, const QString& text) {
  const QPointer<QComboBox> combo = qobject_cast<QComboBox*>(place.widget);
  if (combo == nullptr) return;
  const int index = combo->findText(text, Qt::MatchContains);
  const auto taken = std::make_shared<bool>(false);
  const auto heard = QObject::connect(combo, QOverload<int>::of(&QComboBox::activated), combo,
                                      [taken, index](int now) { *taken = *taken || now == index; });
  for (int i = 0; i < kTries && index >= 0 && combo != nullptr && !*taken; ++i) {
    if (!open_list(place, *combo)) break;
    QAbstractItemView& list = *combo->view();
    const QModelIndex row = combo->model()->index(index, combo->modelColumn());
    list.scrollTo(row);
    // The popup is a window of its own.
    QTest::mouseMove(list.viewport(), list.visualRect(row).center());
    QTest::mouseClick(list.viewport(), Qt::LeftButton, {}, list.visualRect(row).center());
    QApplication::processEvents();
  }
  QObject::disconnect(heard);
  if (*taken) return;
  std::cerr << "gui_robot: " << from_qt(box) << " does not offer " << from_qt(text) << "\n";
  QCoreApplication::exit(kNotOffered);
}

void slide(const Place& place, double part) {
  auto* slider = qobject_cast<QSlider*>(place.widget);
  if (slider == nullptr) return;
  const auto handle = [&](double p) {
    QStyleOptionSlider option;
    option.initFrom(slider);
    option.orientation = slider->orientation();
    option.minimum = slider->minimum();
    option.maximum = slider->maximum();
    option.sliderPosition = option.sliderValue =
        qRound(slider->minimum() + p * (slider->maximum() - slider->minimum()));
    return slider->style()
        ->subControlRect(QStyle::CC_Slider, &option, QStyle::SC_SliderHandle, slider)
        .center();
  };
  const double now = double(slider->value() - slider->minimum()) /
                     std::max(1, slider->maximum() - slider->minimum());
  press({slider, handle(now)});
  for (const double step : {0.3, 0.6, 1.0})
    move_to({slider, handle(now + (part - now) * step)}, Qt::LeftButton);
  release({slider, handle(part)});
}

}  // namespace

// Before the first colon, and after it.
std::pair<QString, QString> parts(const QString& value) {
  return {value.section(':', 0, 0).trimmed(), value.section(':', 1).trimmed()};
}

std::optional<Place> place_of(const MainWindow& window, const QString& name, const QString& value) {
  const auto [object, text] = parts(value);
  if (name == "click" || name == "hover") return edge_place(window, value);
  if (name == "run") return run_place(window, value);
  if (name == "lift") return operator_place(window, value);
  if (name == "over") {
    return value == "nothing" ? empty_place(window) : operator_place(window, value);
  }
  if (name == "button") return button_place(window, value);
  if (name == "widget") return widget_place(window, value);
  if (name == "row") return row_place(window, object, text);
  if (name == "menu") return menu_place(window, value);
  if (name == "choose" || name == "write" || name == "slide" || name == "wheel" || name == "drag" ||
      name == "point")
    return widget_place(window, object);
  return std::nullopt;
}

// Steps with the mouse. False: it is none of them.
bool act_with_mouse(MainWindow& window, const QString& name, const QString& value) {
  const auto [object, text] = parts(value);
  if (name == "tab") {
    click(tab_place(window, value)->place);
    return true;
  }
  if (name == "drop") {
    release(carried());
    return true;
  }
  const std::optional<Place> place = place_of(window, name, value);
  if (!place) return false;
  if (name == "hover") {
    move_to(*place);
  } else if (name == "lift") {
    press(*place);
    move_to({place->widget, place->at + QPoint(4, 4)}, Qt::LeftButton);
    move_to({place->widget, place->at + QPoint(12, 12)}, Qt::LeftButton);
    carried() = *place;
  } else if (name == "over") {
    const QPoint from = carried().at;
    for (const double part : {0.25, 0.5, 0.75, 1.0})
      move_to({place->widget, from + (place->at - from) * part}, Qt::LeftButton);
    carried() = *place;
    window.graph().drag().finish();
  } else if (name == "choose") {
    choose(*place, object, text);
  } else if (name == "write") {
    click(*place);
    QTest::keySequence(place->widget, QKeySequence::SelectAll);
    QTest::keyClicks(place->widget, text);
  } else if (name == "slide") {
    slide(*place, text.toDouble());
  } else if (name == "wheel") {
    const QPoint global = place->widget->mapToGlobal(place->at);
    QWheelEvent event(place->at, global, {}, {0, 120 * text.toInt()}, {}, {}, Qt::NoScrollPhase,
                      false);
    auto* area = qobject_cast<QAbstractScrollArea*>(place->widget);
    QApplication::sendEvent(area == nullptr ? place->widget : area->viewport(), &event);
  } else if (name == "drag") {
    auto* area = qobject_cast<QAbstractScrollArea*>(place->widget);
    const Place from{area == nullptr ? place->widget : area->viewport(), place->at};
    const QPoint by(text.section(',', 0, 0).toInt(), text.section(',', 1, 1).toInt());
    press(from);
    for (const double part : {0.3, 0.6, 1.0})
      move_to({from.widget, from.at + by * part}, Qt::LeftButton);
    release({from.widget, from.at + by});
  } else if (name == "point") {
    const QSizeF size = place->widget->size();
    move_to({place->widget, QPointF(size.width() * text.section(',', 0, 0).toDouble(),
                                    size.height() * text.section(',', 1, 1).toDouble())
                                .toPoint()});
  } else {
    click(*place);
  }
  return true;
}

}  // namespace fuseline::gui::robot
