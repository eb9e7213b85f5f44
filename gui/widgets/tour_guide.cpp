#include "gui/widgets/tour_guide.h"

#include <QDockWidget>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "gui/widgets/charts/motion_view.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kTickMs = 100;
constexpr int kCardWidth = 330;
constexpr int kCardGap = 14;  // px between the card and what it is about
constexpr int kFrameWidth = 3;

}  // namespace

// Around what the card is about; the mouse goes through it.
class TourGuide::Frame : public QWidget {
 public:
  explicit Frame(QWidget* parent) : QWidget(parent) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setObjectName("tour-frame");
    hide();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(Theme(palette()).colour(ColourRole::highlight), kFrameWidth));
    const double half = kFrameWidth / 2.0;
    painter.drawRoundedRect(QRectF(rect()).adjusted(half, half, -half, -half), 6, 6);
  }
};

TourGuide::TourGuide(Session& session, MainWindow& window)
    : QFrame(&window),
      session_(session),
      window_(window),
      frame_(new Frame(&window)),
      title_(new QLabel(this)),
      text_(new QLabel(this)),
      count_(new QLabel(this)),
      progress_(new QProgressBar(this)),
      back_(new QPushButton(tr("Back"), this)),
      pause_(new QPushButton(tr("Pause"), this)),
      next_(new QPushButton(tr("Next"), this)),
      close_(new QPushButton(tr("Close"), this)) {
  setObjectName("tour");
  setAccessibleName(tr("Tour"));
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  setFocusPolicy(Qt::StrongFocus);
  title_->setObjectName("tour-title");
  text_->setObjectName("tour-text");
  text_->setWordWrap(true);
  count_->setObjectName("tour-count");
  count_->setForegroundRole(QPalette::PlaceholderText);
  progress_->setTextVisible(false);
  progress_->setFixedHeight(5);
  progress_->setRange(0, 1000);
  progress_->setAccessibleName(tr("Of the tour's time"));
  back_->setObjectName("tour-back");
  pause_->setObjectName("tour-pause");
  next_->setObjectName("tour-next");
  close_->setObjectName("tour-close");
  back_->setToolTip(tr("The step before (←)"));
  pause_->setToolTip(tr("Stay here, or go on (Space)"));
  next_->setToolTip(tr("The next step (→)"));
  close_->setToolTip(tr("End the tour (Esc)"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(14, 12, 14, 12);
  auto* head = new QHBoxLayout;
  head->addWidget(title_, 1);
  head->addWidget(count_);
  column->addLayout(head);
  column->addWidget(text_);
  column->addWidget(progress_);
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {back_, pause_, next_, close_}) buttons->addWidget(button);
  column->addLayout(buttons);
  connect(back_, &QPushButton::clicked, this, [this] { go_to(step_ - 1); });
  connect(next_, &QPushButton::clicked, this, [this] { go_to(step_ + 1); });
  connect(pause_, &QPushButton::clicked, this, [this] { pause(!paused_); });
  connect(close_, &QPushButton::clicked, this, [this] { end(); });
  clock_.setInterval(kTickMs);
  connect(&clock_, &QTimer::timeout, this, [this] { pass(kTickMs / 1000.0); });
  window.installEventFilter(this);
  hide();
}

void TourGuide::start() {
  edited_ = false;
  edge_.reset();
  pause(false);
  step_ = -1;
  go_to(0);
}

void TourGuide::pause(bool on) {
  paused_ = on;
  pause_->setText(on ? tr("Go on") : tr("Pause"));
}

void TourGuide::pass(double seconds) {
  if (!is_running() || paused_) return;
  passed_ += seconds;
  double before = 0;
  for (int i = 0; i < step_; ++i) before += seconds_of(static_cast<std::size_t>(i));
  progress_->setValue(static_cast<int>(1000 * (before + passed_) / kTourSeconds));
  // The last card stays until it is closed.
  const bool last = step_ + 1 == static_cast<int>(tour_steps().size());
  if (passed_ >= seconds_of(static_cast<std::size_t>(step_)) && !last) go_to(step_ + 1);
}

void TourGuide::go_to(int step) {
  if (is_running()) leave_step();
  if (step >= static_cast<int>(tour_steps().size())) {
    end();
    return;
  }
  step_ = std::max(0, step);
  passed_ = 0;
  clock_.start();
  show_step();
}

void TourGuide::show_step() {
  const TourStep& step = tour_steps()[static_cast<std::size_t>(step_)];
  window_.raise_view(to_qt(step.view));
  title_->setText("<b>" + to_qt(step.title).toHtmlEscaped() + "</b>");
  text_->setText(to_qt(step.text));
  count_->setText(tr("%1 of %2").arg(step_ + 1).arg(tour_steps().size()));
  setAccessibleDescription(to_qt(step.title + ". " + step.text));
  back_->setEnabled(step_ > 0);
  next_->setText(step_ + 1 == static_cast<int>(tour_steps().size()) ? tr("End") : tr("Next"));
  pass(0);
  show();
  frame_->show();
  setFocus();
  act(step.act);
  place();
}

std::optional<OnChipEdge> TourGuide::edge_to_fuse() const {
  return window_.graph().last_fusable_edge();
}

void TourGuide::act(TourAct what) {
  GraphView& graph = window_.graph();
  switch (what) {
    case TourAct::none:
      return;
    case TourAct::point_at_edge:
      edge_ = edge_to_fuse();
      if (edge_) session_.hover(edge_thing(*edge_));
      return;
    case TourAct::fuse_edge:
      if (!edge_) edge_ = edge_to_fuse();
      if (!edge_ || edited_) return;
      session_.hover({});
      session_.toggle_edge(*edge_);
      edited_ = true;
      return;
    case TourAct::carry_operator:
      graph.drag().lift(edge_ ? edge_->to : std::string());
      return;
    case TourAct::play_motion:
      if (auto* motion = qobject_cast<MotionView*>(window_.view("motion"))) motion->play(true);
      return;
    case TourAct::undo:
      undo_edit();
      return;
  }
}

void TourGuide::leave_step() {
  session_.hover({});
  window_.graph().drag().cancel();
  if (auto* motion = qobject_cast<MotionView*>(window_.view("motion"))) motion->play(false);
}

// Only where it is the last thing that was done: what a person did since is not ours to take back.
void TourGuide::undo_edit() {
  if (!edited_) return;
  edited_ = false;
  const History& history = session_.bench().history();
  if (history.can_undo() && edge_ &&
      history.undo_text().find(edge_->from + " → " + edge_->to) != std::string::npos)
    session_.act([](Workbench& bench) { bench.undo(); });
}

void TourGuide::end() {
  if (!is_running()) return;
  leave_step();
  undo_edit();
  step_ = -1;
  clock_.stop();
  hide();
  frame_->hide();
  window_.graph().canvas().setFocus();
}

QWidget* TourGuide::target() const {
  const QString id = to_qt(tour_steps()[static_cast<std::size_t>(step_)].view);
  if (auto* dock = window_.findChild<QDockWidget*>("dock-" + id)) return dock;
  return window_.view(id);
}

// Beside what it is about, where there is room; else over its lower end.
void TourGuide::place() {
  QWidget* about = target();
  if (about == nullptr) return;
  const QRect room = window_.rect().adjusted(4, 4, -4, -4);
  const QRect there(about->mapTo(&window_, QPoint()), about->size());
  frame_->setGeometry(there.adjusted(-kFrameWidth, -kFrameWidth, kFrameWidth, kFrameWidth));
  setFixedWidth(std::min(kCardWidth, room.width()));
  const int height = layout()->heightForWidth(width());
  setFixedHeight(height > 0 ? height : sizeHint().height());
  const int y = std::clamp(there.top() + 30, room.top(),
                           std::max(room.top(), room.bottom() - this->height()));
  const std::array<QRect, 3> places = {
      QRect(there.right() + kCardGap, y, width(), this->height()),
      QRect(there.left() - kCardGap - width(), y, width(), this->height()),
      QRect(there.right() - width() - kCardGap, there.bottom() - this->height() - kCardGap, width(),
            this->height())};
  const auto fits = std::ranges::find_if(places, [&](const QRect& r) { return room.contains(r); });
  QRect chosen = fits == places.end() ? places.back() : *fits;
  chosen.moveLeft(
      std::clamp(chosen.left(), room.left(), std::max(room.left(), room.right() - width())));
  chosen.moveTop(
      std::clamp(chosen.top(), room.top(), std::max(room.top(), room.bottom() - this->height())));
  setGeometry(chosen);
  frame_->raise();
  raise();
}

void TourGuide::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
      return go_to(step_ + 1);
    case Qt::Key_Left:
      return go_to(step_ - 1);
    case Qt::Key_Space:
      return pause(!paused_);
    case Qt::Key_Escape:
      return end();
    default:
      QFrame::keyPressEvent(event);
  }
}

bool TourGuide::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize && is_running())
    QTimer::singleShot(0, this, [this] {
      if (is_running()) place();
    });
  return QFrame::eventFilter(watched, event);
}

void TourGuide::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && frame_ != nullptr) frame_->update();
}

}  // namespace fuseline::gui
