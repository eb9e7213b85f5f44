#include "gui/widgets/charts/motion_view.h"

#include <QComboBox>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalBlocker>
#include <QSlider>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "gui/widgets/charts/plot.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kMotionCalmMs = 300;  // after the last change, before the walk begins
constexpr int kFrameMs = 33;        // 30 pictures a second
constexpr int kSliderSteps = 1000;
constexpr double kOpensAt = 0.35;  // of the span: at its begin nothing moves yet

// Seconds of the film, and its texts.
struct Speed {
  double film;
  const char* text;
};
constexpr Speed kSpeeds[] = {{5, "in 5 s"}, {20, "in 20 s"}, {60, "in 1 min"}, {300, "in 5 min"}};

}  // namespace

MotionCanvas::MotionCanvas(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
}

void MotionCanvas::set_tracks(std::vector<MovingTrack> tracks) {
  tracks_ = std::move(tracks);
  lit_.reset();
  set_time(now_);
}

Seconds MotionCanvas::length() const {
  Seconds longest;
  for (const MovingTrack& t : tracks_)
    if (t.track.record) longest = std::max(longest, t.span.length());
  return longest;
}

void MotionCanvas::set_time(Seconds now) {
  now_ = std::clamp(now, Seconds(), length());
  update();
}

void MotionCanvas::paint_on(QPainter& painter, const QRect& area) const {
  draw_motion(painter, area, tracks_, now_, std::nullopt, Theme(palette()), font());
}

QString MotionCanvas::spoken() const {
  QStringList all;
  for (const std::string& s : picture_.spoken) all << to_qt(s);
  return all.join(QStringLiteral(". "));
}

void MotionCanvas::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  picture_ = draw_motion(painter, rect(), tracks_, now_, lit_, Theme(palette()), font());
  setAccessibleDescription(spoken());
  if (!hasFocus()) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

const MotionPart* MotionCanvas::part_at(const QPointF& at) const {
  for (const MotionPart& part : picture_.parts)
    if (part.area.contains(at)) return &part;
  return nullptr;
}

// A strip of kernels says which time lies under the mouse.
void MotionCanvas::scrub_to(const QPointF& at) {
  const MotionPart* part = part_at(at);
  if (part == nullptr || !part->time) return;
  emit scrubbed(*part->time + ((at.x() - part->area.left()) / part->area.width()) * part->length);
}

void MotionCanvas::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) != 0) {
    scrub_to(event->localPos());
    return;
  }
  const MotionPart* part = part_at(event->localPos());
  const std::optional<std::size_t> unit = part == nullptr ? std::nullopt : part->unit;
  if (unit != lit_) {
    lit_ = unit;
    update();
  }
  if (part == nullptr) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(event->globalPos(), to_qt(part->tooltip), this, part->area.toAlignedRect());
  }
}

void MotionCanvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) scrub_to(event->localPos());
}

void MotionCanvas::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Space:
    case Qt::Key_Return:
      emit toggled();
      break;
    case Qt::Key_Right:
      emit stepped(1);
      break;
    case Qt::Key_Left:
      emit stepped(-1);
      break;
    case Qt::Key_Home:
      emit scrubbed(Seconds());
      break;
    case Qt::Key_End:
      emit scrubbed(length());
      break;
    default:
      QWidget::keyPressEvent(event);
  }
}

void MotionCanvas::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  lit_.reset();
  update();
}

MotionView::MotionView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      kernel_(&add_choice(tr("Of"), {}, tr("the whole block, or one kernel of the shown run"))),
      beside_(&add_choice(tr("Beside"), {}, tr("another run, at the same time"))),
      speed_(&add_choice(tr("Plays"), {}, tr("how long it takes to play all of it"))),
      play_(new QToolButton(this)),
      slider_(new QSlider(Qt::Horizontal, this)),
      canvas_(new MotionCanvas(this)),
      part_(kOpensAt),
      work_(this,
            [](const Request& request, const std::stop_token& stop, const Progress& progress) {
              std::vector<MotionTrack> tracks;
              for (const RunView& view : request.runs) {
                progress(tracks.size(), request.runs.size());
                tracks.push_back(motion_track(view, [&stop] { throw_if_stopped(stop); }));
              }
              return tracks;
            },
            {.done =
                 [this](std::vector<MotionTrack> tracks) {
                   walks_ = std::move(tracks);
                   lay_out();
                 },
             .failed =
                 [this](const std::string& why) {
                   walks_.assign(1, MotionTrack{});
                   walks_.front().label = title().toStdString();
                   walks_.front().problem = why;
                   lay_out();
                 },
             .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("walking")); }}) {
  for (const Speed& s : kSpeeds) speed_->addItem(tr(s.text), s.film);
  speed_->setCurrentIndex(1);
  kernel_->setObjectName("motion-kernel");
  beside_->setObjectName("motion-beside");
  body().addWidget(canvas_, 1);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 0, 8, 4);
  play_->setObjectName("motion-play");
  play_->setText(tr("Play"));
  play_->setAccessibleName(tr("Play or pause"));
  play_->setToolTip(tr("Play or pause (Space); arrows go from step to step"));
  slider_->setObjectName("motion-time");
  slider_->setRange(0, kSliderSteps);
  slider_->setPageStep(kSliderSteps / 20);
  slider_->setAccessibleName(tr("Time of the picture"));
  row->addWidget(play_);
  row->addWidget(slider_, 1);
  static_cast<QVBoxLayout*>(layout())->addLayout(row);
  setFocusProxy(canvas_);
  canvas_->setAccessibleName(title());
  soon_.setSingleShot(true);
  soon_.setInterval(kMotionCalmMs);
  tick_.setInterval(kFrameMs);
  connect(&soon_, &QTimer::timeout, this, [this] { start(); });
  connect(&tick_, &QTimer::timeout, this, [this] { tick(); });
  connect(play_, &QToolButton::clicked, this, [this] { play(!is_playing()); });
  connect(slider_, &QSlider::valueChanged, this, [this](int value) {
    play(false);
    go_to((static_cast<double>(value) / kSliderSteps) * canvas_->length());
  });
  connect(canvas_, &MotionCanvas::toggled, this, [this] { play(!is_playing()); });
  connect(canvas_, &MotionCanvas::scrubbed, this, [this](Seconds now) {
    play(false);
    go_to(now);
  });
  connect(canvas_, &MotionCanvas::stepped, this, [this](int by) {
    play(false);
    for (const MovingTrack& t : canvas_->tracks()) {
      if (!t.track.record) continue;
      go_to(next_step(*t.track.record, t.span, t.span.begin + canvas_->time(), by) - t.span.begin);
      break;
    }
  });
  connect(kernel_, QOverload<int>::of(&QComboBox::activated), this, [this] { lay_out(); });
  connect(beside_, QOverload<int>::of(&QComboBox::activated), this, [this] { start(); });
}

QString MotionView::hint() const {
  return tr(
      "The simulator's own walk, step by step: which tiles run, what L2 holds, what HBM moved. "
      "Space plays, arrows go from step to step.");
}

void MotionView::fill_runs() {
  const QVariant before = beside_->currentData();
  beside_->clear();
  beside_->addItem(tr("no other run"), -1);
  for (const RunView& view : bench().results().runs) {
    if (view.run.is_measurement() || view.run.id == bench().shown_run()) continue;
    beside_->addItem(to_qt(view.label()), view.run.id.value);
  }
  beside_->setCurrentIndex(std::max(0, beside_->findData(before)));
}

void MotionView::fill_kernels() {
  const int before = kernel_->currentIndex();
  kernel_->clear();
  kernel_->addItem(tr("the whole block"));
  const RunView* view = bench().results().find(bench().shown_run());
  if (view != nullptr && view->ok()) {
    for (const KernelRow& row : view->result->kernels) kernel_->addItem(to_qt(row.estimate.name));
  }
  kernel_->setCurrentIndex(before > 0 && before < kernel_->count() ? before : 0);
}

void MotionView::refresh() {
  fill_runs();
  fill_kernels();
  soon_.start();
}

void MotionView::start() {
  soon_.stop();
  put_away_ = false;
  if (beside_->count() == 0) {
    fill_runs();
    fill_kernels();
  }
  Request request;
  for (const RunId id : {bench().shown_run(), RunId{beside_->currentData().toInt()}}) {
    const RunView* view = bench().results().find(id);
    if (view != nullptr) request.runs.push_back(*view);
  }
  if (asked_ && *asked_ == request) return;
  asked_ = request;
  if (!request.runs.empty()) work_.start(std::move(request));
}

void MotionView::lay_out() {
  play(false);
  remember_time();
  std::vector<MovingTrack> tracks;
  const RunId shown = walks_.empty() ? RunId{} : walks_.front().run;
  const int chosen = kernel_->currentIndex();
  Highlight same;
  if (chosen > 0)
    same = highlight(bench().results(), kernel_thing(shown, static_cast<std::size_t>(chosen - 1)));
  for (const MotionTrack& walk : walks_) {
    std::set<std::size_t> launches;
    if (chosen > 0 && walk.record) {
      const auto there = same.kernels.find(walk.run);
      if (there != same.kernels.end()) launches = there->second;
      if (walk.run == shown) launches = {static_cast<std::size_t>(chosen - 1)};
      std::erase_if(launches, [&](std::size_t l) { return l >= walk.record->launches.size(); });
      if (launches.empty()) {
        MotionTrack none = walk;
        none.record = nullptr;
        none.problem = "this run has no kernel that does the same";
        tracks.push_back(moving(std::move(none), {}));
        continue;
      }
    }
    tracks.push_back(moving(walk, launches));
  }
  canvas_->set_tracks(std::move(tracks));
  go_to(part_ * canvas_->length());
}

void MotionView::remember_time() {
  if (canvas_->length() > Seconds()) part_ = canvas_->time() / canvas_->length();
}

void MotionView::go_to(Seconds now) {
  canvas_->set_time(now);
  const double part = canvas_->length() > Seconds() ? canvas_->time() / canvas_->length() : 0;
  const QSignalBlocker quiet(slider_);
  slider_->setValue(static_cast<int>(std::lround(part * kSliderSteps)));
  std::vector<MovingKernel> moving = kernels_at(canvas_->tracks(), canvas_->time());
  if (moving == moving_) return;
  moving_ = std::move(moving);
  emit moved_on(moving_);
}

void MotionView::play(bool on) {
  if (on == is_playing()) return;
  if (!on) {
    tick_.stop();
  } else if (canvas_->length() > Seconds()) {
    if (canvas_->time() >= canvas_->length()) go_to(Seconds());
    since_tick_.start();
    tick_.start();
  }
  play_->setText(is_playing() ? tr("Pause") : tr("Play"));
}

void MotionView::tick() {
  const double film = speed_->currentData().toDouble();
  const double part = static_cast<double>(since_tick_.restart()) / 1000 / film;
  go_to(canvas_->time() + part * canvas_->length());
  if (canvas_->time() >= canvas_->length()) play(false);
}

void MotionView::show_beside(RunId other) {
  fill_runs();
  beside_->setCurrentIndex(std::max(0, beside_->findData(other.value)));
  start();
}

void MotionView::show_kernel(std::size_t launch) {
  const int at = static_cast<int>(launch) + 1;
  if (at >= kernel_->count() || at == kernel_->currentIndex()) return;
  kernel_->setCurrentIndex(at);
  lay_out();
}

void MotionView::show_highlight(const Highlight& /*highlight*/) {
  if (put_away_) start();
  const Thing& selected = bench().selection().selected;
  if (selected.kind == ThingKind::kernel && selected.run == bench().shown_run())
    show_kernel(selected.kernel);
}

void MotionView::restyle() {
  ChartView::restyle();
  canvas_->update();
}

void MotionView::finish() {
  start();
  work_.finish();
}

void MotionView::cancel() {
  soon_.stop();
  work_.cancel();
  asked_.reset();
}

// A walk takes megabytes, and is made again in less time than a person needs to look at it.
void MotionView::put_away() {
  ChartView::put_away();
  cancel();
  play(false);
  remember_time();
  walks_.clear();
  canvas_->set_tracks({});
  put_away_ = true;
}

void MotionView::paint_content(QPainter& painter, const QRect& area) {
  canvas_->paint_on(painter, area);
}

void MotionView::hideEvent(QHideEvent* event) {
  ChartView::hideEvent(event);
  play(false);
}

std::vector<Table> MotionView::tables() const {
  std::vector<Table> tables;
  for (const MotionTrack& walk : walks_) {
    if (!walk.record) continue;
    tables.push_back(to_table(walk));
    if (walks_.size() > 1) tables.back().name += "-" + file_stem(walk.label);
  }
  return tables;
}

}  // namespace fuseline::gui
