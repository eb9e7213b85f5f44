#include "gui/widgets/missions_view.h"

#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QSettings>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/widgets/html_picture.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

const char* const kMissionsDone = "done";

QString escaped_text(const std::string& text) { return to_qt(text).toHtmlEscaped(); }

}  // namespace

MissionsView::MissionsView(Session& session, const std::filesystem::path& state_folder,
                           QWidget* parent)
    : View(session.bench(), parent),
      session_(session),
      file_(state_folder / "missions.ini"),
      list_(new QListWidget(this)),
      text_(new QLabel(this)),
      now_(new QLabel(this)),
      start_(new QPushButton(tr("Start"), this)),
      hint_(new QPushButton(tr("Hint"), this)) {
  list_->setObjectName("mission-list");
  list_->setAccessibleName(tr("Missions"));
  list_->setFrameShape(QFrame::NoFrame);
  list_->setWordWrap(true);
  text_->setObjectName("mission-text");
  text_->setWordWrap(true);
  text_->setTextFormat(Qt::RichText);
  text_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  text_->setMargin(10);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  now_->setObjectName("mission-now");
  now_->setWordWrap(true);
  now_->setMargin(6);
  start_->setObjectName("mission-start");
  start_->setToolTip(tr("Begin with the session that the mission is about"));
  hint_->setObjectName("mission-hint");
  auto* scroll = new QScrollArea(this);
  scroll->setWidget(text_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* right = new QWidget(this);
  auto* column = new QVBoxLayout(right);
  column->setContentsMargins(0, 0, 0, 6);
  column->addWidget(scroll, 1);
  column->addWidget(now_);
  auto* buttons = new QHBoxLayout;
  buttons->setContentsMargins(8, 0, 8, 0);
  buttons->addWidget(start_);
  buttons->addWidget(hint_);
  buttons->addStretch(1);
  column->addLayout(buttons);
  auto* split = new QSplitter(this);
  split->addWidget(list_);
  split->addWidget(right);
  split->setStretchFactor(0, 2);
  split->setStretchFactor(1, 3);
  split->setChildrenCollapsible(false);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(split);
  setFocusProxy(list_);

  const QSettings kept(to_qt(file_), QSettings::IniFormat);
  for (const QString& id : kept.value(kMissionsDone).toStringList()) done_.insert(from_qt(id));
  for (const Mission& m : missions()) {
    auto* item = new QListWidgetItem(to_qt(m.title), list_);
    item->setData(Qt::UserRole, to_qt(m.id));
  }
  list_->setCurrentRow(0);
  connect(list_, &QListWidget::currentRowChanged, this, [this] { show_mission(); });
  connect(list_, &QListWidget::itemActivated, start_, &QPushButton::click);
  connect(start_, &QPushButton::clicked, this, [this] { emit start_requested(chosen()); });
  connect(hint_, &QPushButton::clicked, this, [this] {
    ++hints_[chosen().id];
    show_mission();
  });
  show_mission();
}

QString MissionsView::hint() const {
  return tr(
      "Tasks of the labs that are done in this window. Start begins the session that one is "
      "about; it is done when the session's own predictions say so.");
}

const Mission& MissionsView::chosen() const {
  const int row = std::clamp(list_->currentRow(), 0, static_cast<int>(missions().size()) - 1);
  return missions()[static_cast<std::size_t>(row)];
}

void MissionsView::choose(const std::string& id) {
  const auto found = std::ranges::find(missions(), id, &Mission::id);
  if (found != missions().end()) list_->setCurrentRow(static_cast<int>(found - missions().begin()));
}

// A mission's session has its title, so that one that was saved is one again when it is opened.
const Mission* MissionsView::running() const {
  const std::string& title = bench().document().title;
  const auto found =
      std::ranges::find_if(missions(), [&](const Mission& m) { return m.start().title == title; });
  return found == missions().end() ? nullptr : &*found;
}

bool MissionsView::is_on() const {
  const Mission* on = running();
  return on != nullptr && on->id == chosen().id;
}

void MissionsView::refresh() {
  if (const Mission* on = running()) {
    const QSignalBlocker quiet(list_);
    choose(on->id);
  }
  show_mission();
}

void MissionsView::judge_now() {
  state_ = {};
  if (!is_on()) return;
  state_ = judge(chosen(), bench().document(), bench().results());
  if (!state_.done || !done_.insert(chosen().id).second) return;
  QStringList ids;
  for (const std::string& id : done_) ids << to_qt(id);
  QSettings(to_qt(file_), QSettings::IniFormat).setValue(kMissionsDone, ids);
}

QString MissionsView::html() const {
  const Mission& m = chosen();
  const Theme t = theme();
  QString out =
      QString("<p><b>%1</b></p><p>%2</p>").arg(escaped_text(m.title), escaped_text(m.task));
  const auto shown = hints_.find(m.id);
  const int hints = shown == hints_.end() ? 0 : shown->second;
  for (int i = 0; i < std::min(hints, static_cast<int>(m.hints.size())); ++i)
    out += QString("<p style='color:%1'>%2</p>")
               .arg(t.colour(ColourRole::muted).name(),
                    escaped_text(m.hints[static_cast<std::size_t>(i)]));
  if (state_.done) out += QString("<p>%1</p>").arg(escaped_text(m.learnt));
  out += QString("<p style='color:%1'>%2</p>")
             .arg(t.colour(ColourRole::muted).name(),
                  tr("Lab %1 has questions about this: fuseline lab start %1").arg(m.lab));
  return out;
}

void MissionsView::show_mission() {
  judge_now();
  const Mission& m = chosen();
  for (int i = 0; i < list_->count(); ++i) {
    const Mission& of = missions()[static_cast<std::size_t>(i)];
    const bool done = was_done(of.id);
    list_->item(i)->setText((done ? QStringLiteral("✓ ") : QString()) + to_qt(of.title));
    list_->item(i)->setData(Qt::AccessibleTextRole,
                            done ? tr("%1, done").arg(to_qt(of.title)) : to_qt(of.title));
  }
  text_->setText(html());
  const Theme t = theme();
  const ColourRole role = state_.done ? ColourRole::allowed : ColourRole::text;
  now_->setText(!is_on() ? tr("Not started")
                         : (state_.done ? tr("Done. ") : QString()) + to_qt(state_.now));
  QPalette colours = palette();
  colours.setColor(QPalette::WindowText, t.colour(is_on() ? role : ColourRole::muted));
  now_->setPalette(colours);
  start_->setText(is_on() ? tr("Start again") : tr("Start"));
  hint_->setEnabled(hints_[m.id] < static_cast<int>(m.hints.size()));
}

void MissionsView::restyle() { show_mission(); }

void MissionsView::paint_to(QPainter& painter, QSize size) {
  QString all;
  for (const Mission& m : missions()) {
    all += QString("<p><b>%1%2</b><br/>%3</p>")
               .arg(was_done(m.id) ? QStringLiteral("✓ ") : QString(), escaped_text(m.title),
                    escaped_text(m.task));
    if (m.id == chosen().id && is_on()) all += QString("<p>%1</p>").arg(escaped_text(state_.now));
  }
  paint_html(painter, size, all, theme(), font());
}

}  // namespace fuseline::gui
