// Tiles in motion: plays and scrubs the simulator's walk through a kernel or the block, of the
// shown run and of another one in step with it.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>

#include "gui/widgets/charts/background.h"
#include "gui/widgets/charts/chart_view.h"
#include "gui/widgets/charts/motion_drawing.h"

class QSlider;

namespace fuseline::gui {

class MotionCanvas : public QWidget {
  Q_OBJECT
 public:
  explicit MotionCanvas(QWidget* parent);

  void set_tracks(std::vector<MovingTrack> tracks);
  [[nodiscard]] const std::vector<MovingTrack>& tracks() const { return tracks_; }
  // Since the spans began, at most length().
  void set_time(Seconds now);
  [[nodiscard]] Seconds time() const { return now_; }
  [[nodiscard]] Seconds length() const;  // of the longest span
  void paint_on(QPainter& painter, const QRect& area) const;
  [[nodiscard]] const MotionPicture& picture() const { return picture_; }  // as drawn last
  [[nodiscard]] QString spoken() const;
  [[nodiscard]] QSize minimumSizeHint() const override { return {240, 200}; }
  [[nodiscard]] QSize sizeHint() const override { return {600, 420}; }

 signals:
  void scrubbed(fuseline::Seconds now);
  void stepped(int by);  // to the neighbouring step
  void toggled();        // plays or pauses

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  [[nodiscard]] const MotionPart* part_at(const QPointF& at) const;
  void scrub_to(const QPointF& at);

  std::vector<MovingTrack> tracks_;
  Seconds now_{};
  std::optional<std::size_t> lit_;
  MotionPicture picture_;
};

class MotionView : public ChartView {
  Q_OBJECT
 public:
  MotionView(Workbench& bench, QWidget* parent);

  [[nodiscard]] QString id() const override { return QStringLiteral("motion"); }
  [[nodiscard]] QString title() const override { return tr("Tiles in motion"); }
  [[nodiscard]] QString hint() const override;
  void refresh() override;
  void show_highlight(const Highlight& highlight) override;
  void restyle() override;
  void prepare() override { start(); }
  void finish() override;
  [[nodiscard]] bool is_busy() const override { return work_.is_busy(); }
  void cancel() override;
  void put_away() override;
  [[nodiscard]] std::vector<Table> tables() const override;

  [[nodiscard]] MotionCanvas& canvas() const { return *canvas_; }
  [[nodiscard]] bool is_playing() const { return tick_.isActive(); }
  void play(bool on);
  void show_beside(RunId other);         // an invalid one: no other
  void show_kernel(std::size_t launch);  // of the shown run

 signals:
  // Other kernels move now, one of each run that is in step.
  void moved_on(const std::vector<fuseline::gui::MovingKernel>& now);

 protected:
  void paint_content(QPainter& painter, const QRect& area) override;
  void hideEvent(QHideEvent* event) override;

 private:
  struct Request {
    std::vector<RunView> runs;
    friend bool operator==(const Request& a, const Request& b) {
      return std::ranges::equal(a.runs, b.runs, [](const RunView& x, const RunView& y) {
        return x.run.id == y.run.id && x.result == y.result && x.label() == y.label();
      });
    }
  };

  void start();
  void fill_runs();
  void fill_kernels();
  void lay_out();        // the spans of the chosen kernel
  void remember_time();  // as a part of the span
  void go_to(Seconds now);
  void tick();

  QComboBox* kernel_;
  QComboBox* beside_;
  QComboBox* speed_;
  QToolButton* play_;
  QSlider* slider_;
  MotionCanvas* canvas_;
  QTimer soon_, tick_;
  QElapsedTimer since_tick_;
  std::optional<Request> asked_;
  std::vector<MotionTrack> walks_;
  std::vector<MovingKernel> moving_;
  double part_;            // of the span: the time of the picture, when it was laid out or put away
  bool put_away_ = false;  // the walks were given up, and are made again when it is seen
  Background<Request, std::vector<MotionTrack>> work_;
};

}  // namespace fuseline::gui
