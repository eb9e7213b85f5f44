#include "gui/widgets/operator_drag.h"

#include <algorithm>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kBesideMouse = 16;  // px
constexpr int kWidestLabel = 300;
constexpr int kRoomForLabel = 14;  // px over a kernel: of what a drop there saves

bool is_own(const MoveTargets& targets, const std::string& op) {
  return op == targets.op || std::ranges::find(targets.together, op) != targets.together.end();
}

}  // namespace

OperatorDrag::OperatorDrag(Session& session, GraphCanvas& canvas)
    : QObject(&canvas),
      session_(session),
      canvas_(canvas),
      label_(new QLabel(canvas.viewport())),
      judge_(this,
             [](const Request& r, const std::stop_token& stop, const Progress&) {
               return move_targets(r.document, r.run, r.op, stop);
             },
             {.done = [this](MoveTargets found) { take(std::move(found)); },
              .failed = [this](const std::string&) { cancel(); }}),
      simulate_(this,
                [&cache = session.bench().cache()](const Request& r, const std::stop_token& stop,
                                                   const Progress&) {
                  return with_savings(*r.known, r.document, r.run, cache, stop);
                },
                {.done =
                     [this](MoveTargets found) {
                       targets_ = std::move(found);
                       draw();
                     },
                 .failed = [this](const std::string&) { cancel(); }}) {
  label_->setObjectName("carried");
  label_->setAccessibleName(tr("What dropping the operator here would do"));
  label_->setAttribute(Qt::WA_TransparentForMouseEvents);
  label_->setFrameShape(QFrame::StyledPanel);
  label_->setAutoFillBackground(true);
  label_->setBackgroundRole(QPalette::ToolTipBase);
  label_->setForegroundRole(QPalette::ToolTipText);
  label_->setMargin(5);
  label_->setTextFormat(Qt::RichText);
  label_->hide();
}

void OperatorDrag::lift(const std::string& op) {
  const RunView* view = session_.bench().results().find(session_.bench().shown_run());
  if (op.empty() || view == nullptr || !view->ok() || session_.bench().is_computing()) return;
  op_ = op;
  targets_ = {.op = op, .from = {}, .together = {}, .targets = {}};
  aim_.reset();
  at_.reset();
  request_ = Request{session_.bench().document(), *view, op};
  canvas_.set_carrying(true);
  judge_.start(*request_);
}

void OperatorDrag::take(MoveTargets targets) {
  if (!is_active()) return;
  targets_ = std::move(targets);
  if (!targets_.problem.empty()) {
    say();
    return;
  }
  Request savings = *request_;
  savings.known = targets_;
  simulate_.start(std::move(savings));
  if (at_) {
    carry(*at_);
  } else {
    step(1);
  }
  draw();
}

void OperatorDrag::carry(QPoint at) {
  if (!is_active()) return;
  at_ = at;
  const QPointF place = canvas_.mapToScene(at);
  const std::vector<std::string> under = canvas_.graph().kernel_at(place);
  std::optional<std::size_t> aim;
  const bool home =
      std::ranges::any_of(under, [&](const std::string& op) { return is_own(targets_, op); });
  if (!home) {
    for (std::size_t i = 0; i < targets_.targets.size(); ++i) {
      const std::vector<std::string>& there = targets_.targets[i].operators;
      const bool hit =
          under.empty() ? there.empty() : std::ranges::find(there, under.front()) != there.end();
      if (hit) aim = i;
    }
  }
  if (aim != aim_) {
    aim_ = aim;
    draw();
  }
  say();
}

// Those that are near, from top to bottom as the plan has them; the others are never legal.
std::vector<std::size_t> OperatorDrag::reachable() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < targets_.targets.size(); ++i)
    if (targets_.targets[i].near) found.push_back(i);
  return found;
}

void OperatorDrag::step(int by) {
  judge_.finish();
  const std::vector<std::size_t> near = reachable();
  if (!is_active() || near.empty()) return;
  at_.reset();
  const auto n = static_cast<std::ptrdiff_t>(near.size());
  const auto now = aim_ ? std::ranges::find(near, *aim_) : near.end();
  const std::ptrdiff_t next =
      now == near.end() ? (by > 0 ? 0 : n - 1) : (now - near.begin() + by + n) % n;
  aim_ = near[static_cast<std::size_t>(next)];
  draw();
}

const MoveTarget* OperatorDrag::aim() const {
  return aim_ && *aim_ < targets_.targets.size() ? &targets_.targets[*aim_] : nullptr;
}

void OperatorDrag::put() {
  if (!is_active()) return;
  judge_.finish();
  const MoveTarget* target = aim();
  const std::string op = op_;
  const std::optional<MoveTarget> chosen =
      target == nullptr ? std::nullopt : std::optional(*target);
  cancel();
  if (chosen) session_.move_operator(op, chosen->beside);
}

void OperatorDrag::cancel() {
  if (!is_active()) return;
  op_.clear();
  judge_.cancel();
  simulate_.cancel();
  aim_.reset();
  at_.reset();
  label_->hide();
  canvas_.graph().show_targets({}, {}, Theme(canvas_.palette()));
  canvas_.set_carrying(false);
  emit ended();
}

void OperatorDrag::finish() {
  judge_.finish();
  simulate_.finish();
}

void OperatorDrag::draw() {
  if (!is_active()) return;
  canvas_.graph().show_targets(targets_, aim_, Theme(canvas_.palette()));
  say();
}

void OperatorDrag::say() {
  if (!is_active()) return;
  const MoveTarget* target = aim();
  const QString name = to_qt(op_).toHtmlEscaped();
  QString text;
  if (!targets_.problem.empty()) {
    text = to_qt(targets_.problem).toHtmlEscaped();
  } else if (target != nullptr) {
    text = to_qt(target->text).toHtmlEscaped();
  } else if (targets_.together.empty()) {
    text = tr("drop it on a kernel");
  } else {
    text = tr("drop it on a kernel, or on nothing to give it one of its own");
  }
  label_->setText(QString("<b>%1</b><br/>%2").arg(name, text));
  label_->setAccessibleDescription(text);
  label_->setWordWrap(false);
  label_->setFixedWidth(std::min({kWidestLabel, std::max(120, canvas_.viewport()->width() - 20),
                                  label_->sizeHint().width() + 2}));
  label_->setWordWrap(true);
  label_->setFixedHeight(label_->heightForWidth(label_->width()));
  QPoint where;
  if (at_) {
    where = *at_ + QPoint(kBesideMouse, kBesideMouse);
  } else {
    canvas_.setAccessibleDescription(text);
    const QRectF frame = canvas_.graph().target_place(aim_);
    where = canvas_.mapFromScene(frame.isNull() ? canvas_.graph().operator_place(op_).center()
                                                : frame.bottomLeft()) +
            QPoint(0, 4);
  }
  const QSize room = canvas_.viewport()->size() - label_->size();
  QRect card({std::clamp(where.x(), 0, std::max(0, room.width())),
              std::clamp(where.y(), 0, std::max(0, room.height()))},
             label_->size());
  // What it is about stays in sight: the card goes over or under the kernel that is aimed at.
  const QRect aimed = canvas_.mapFromScene(canvas_.graph().target_place(aim_)).boundingRect();
  if (aim_ && card.intersects(aimed.adjusted(0, -kRoomForLabel, 0, 0))) {
    const int above = aimed.top() - kRoomForLabel - card.height();
    card.moveTop(aimed.bottom() + 4 <= room.height() || above < 0
                     ? std::min(aimed.bottom() + 4, room.height())
                     : above);
  }
  label_->move(card.topLeft());
  label_->show();
  label_->raise();
}

}  // namespace fuseline::gui
