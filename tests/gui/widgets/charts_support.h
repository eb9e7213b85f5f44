// What the tests of charts share: a computed workbench of small blocks, mouse events as a display
// would send them, and pictures.
#pragma once

#include <QApplication>
#include <QImage>
#include <QMouseEvent>
#include <QPainter>
#include <QTest>
#include <memory>

#include "gui/widgets/charts/plot.h"
#include "gui/widgets/view.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui::test {

// Tests run without a display, whatever the environment says. One per process, never destroyed:
// widgets of other tests may outlive any one test.
inline QApplication& application() {
  static int argc = 1;
  static char name[] = "charts_test";
  static char* argv[] = {name, nullptr};
  if (qApp == nullptr) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    new QApplication(argc, argv);
  }
  return *static_cast<QApplication*>(qApp);
}

// However slow the machine is: ctest ends a test that waits for what never comes.
template <class Condition>
void wait_until(const Condition& holds) {
  while (!QTest::qWaitFor(holds, 1000)) {
  }
}

// A view linked with a workbench as the window links it.
template <class V>
class Shown {
 public:
  template <class... Args>
  explicit Shown(Document document, Args... args) {
    application();
    bench_ = std::make_unique<Workbench>(std::move(document), [] {});
    bench_->wait();
    view_ = std::make_unique<V>(*bench_, nullptr, args...);
    view_->setPalette(light_palette());
    QObject::connect(view_.get(), &View::hovered, [this](const Thing& thing) {
      bench_->hover(thing);
      view_->show_highlight(bench_->highlighted());
    });
    QObject::connect(view_.get(), &View::selected, [this](const Thing& thing) {
      bench_->select(thing);
      view_->show_highlight(bench_->highlighted());
    });
    view_->resize(800, 600);
    view_->refresh();
    view_->show();
    if (!QTest::qWaitForWindowExposed(view_.get())) qFatal("the view is not exposed");
    QCoreApplication::processEvents();
  }
  ~Shown() { view_.reset(); }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  [[nodiscard]] Workbench& bench() { return *bench_; }
  [[nodiscard]] V& view() { return *view_; }
  [[nodiscard]] Plot& plot(std::size_t i = 0) { return *view_->plots()[i]; }

 private:
  std::unique_ptr<Workbench> bench_;
  std::unique_ptr<V> view_;
};

inline void move_mouse(QWidget& widget, QPointF to, Qt::MouseButtons held = Qt::NoButton) {
  QMouseEvent event(QEvent::MouseMove, to, widget.mapToGlobal(to.toPoint()), Qt::NoButton, held,
                    Qt::NoModifier);
  QCoreApplication::sendEvent(&widget, &event);
  QCoreApplication::processEvents();
}

inline void click(QWidget& widget, QPointF at) {
  QTest::mouseClick(&widget, Qt::LeftButton, Qt::NoModifier, at.toPoint());
  QCoreApplication::processEvents();
}

inline void drag(QWidget& widget, QPointF from, QPointF to) {
  QTest::mousePress(&widget, Qt::LeftButton, Qt::NoModifier, from.toPoint());
  for (const double part : {0.2, 0.5, 0.8, 1.0}) {
    move_mouse(widget, from + (to - from) * part, Qt::LeftButton);
  }
  QTest::mouseRelease(&widget, Qt::LeftButton, Qt::NoModifier, to.toPoint());
  QCoreApplication::processEvents();
}

inline void double_click(QWidget& widget, QPointF at) {
  QTest::mouseDClick(&widget, Qt::LeftButton, Qt::NoModifier, at.toPoint());
  QCoreApplication::processEvents();
}

inline QImage picture(View& view, QSize size) {
  QImage image(size, QImage::Format_RGB32);
  image.fill(Qt::magenta);  // what is not painted stays so
  QPainter painter(&image);
  view.paint_to(painter, size);
  return image;
}

// Part of the pixels that differ by more than `steps` of 255 in any channel.
inline double difference(const QImage& a, const QImage& b, int steps = 24) {
  if (a.size() != b.size()) return 1;
  std::int64_t different = 0;
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0; x < a.width(); ++x) {
      const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
      different += std::abs(qRed(p) - qRed(q)) > steps || std::abs(qGreen(p) - qGreen(q)) > steps ||
                           std::abs(qBlue(p) - qBlue(q)) > steps
                       ? 1
                       : 0;
    }
  }
  return static_cast<double>(different) / (static_cast<double>(a.width()) * a.height());
}

// Part of the pixels that have that colour, nearly.
inline double part_of(const QImage& image, const QColor& colour, int steps = 6) {
  QImage same(image.size(), QImage::Format_RGB32);
  same.fill(colour);
  return 1 - difference(image, same, steps);
}

// The first mark that is a bar, point or diamond with that thing.
inline const Mark* mark_of(const Plot& plot, const Thing& thing) {
  for (const Mark& mark : plot.scene().marks) {
    if (mark.thing == thing && mark.shape != Shape::arrow && mark.shape != Shape::curve) {
      return &mark;
    }
  }
  return nullptr;
}

inline QPointF middle(const Plot& plot, const Mark& mark) {
  if (mark.shape == Shape::bar) return (plot.pixel(mark.from) + plot.pixel(mark.to)) / 2;
  return plot.pixel(mark.from);
}

}  // namespace fuseline::gui::test
