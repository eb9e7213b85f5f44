#include "gui/widgets/file_actions.h"

#include <QAction>
#include <QFileDialog>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QUrl>
#include <algorithm>

#include "gui/model/choices.h"
#include "gui/model/document.h"
#include "gui/model/session_file.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

const char* const kFilter = QT_TRANSLATE_NOOP("file", "Sessions and scenarios (*.toml)");

}  // namespace

FileActions::FileActions(Session& session, QWidget& window)
    : QObject(&window), session_(session), window_(window), recent_(new QMenu(tr("Open &recent"))) {
  recent_->setParent(&window, recent_->windowFlags());
  connect(recent_, &QMenu::aboutToShow, this, &FileActions::fill_recent);
  make("new", tr("&New comparison"), QKeySequence::New, [this] {
    if (may_lose_work()) session_.start_anew(default_document());
  });
  make("open", tr("&Open…"), QKeySequence::Open, [this] {
    const QString file =
        QFileDialog::getOpenFileName(&window_, tr("Open"), to_qt(session_.path().parent_path()),
                                     tr("All that can be opened (*.toml *.json *.block *.fuse "
                                        "*.csv *.gz *.sqlite);;All files (*)"));
    if (!file.isEmpty()) open(from_qt(file));
  });
  make("open-folder", tr("Open a &folder of measurements…"), QKeySequence("Ctrl+Shift+O"), [this] {
    const QString folder = QFileDialog::getExistingDirectory(
        &window_, tr("Open a folder of measurements"), to_qt(session_.path().parent_path()));
    if (!folder.isEmpty()) open(from_qt(folder));
  });
  make("save", tr("&Save"), QKeySequence::Save, [this] { save(); });
  make("save-as", tr("Save &as…"), QKeySequence("Ctrl+Shift+S"), [this] { save_as(); });
  make("export", tr("&Export pictures and data…"), QKeySequence("Ctrl+E"),
       [this] { emit export_requested(); });
  make("reload", tr("Read files &again"), QKeySequence("F5"),
       [this] { session_.act([](Workbench& bench) { bench.reload(); }); });
  make("quit", tr("&Quit"), QKeySequence("Ctrl+Q"), [this] { window_.close(); });
}

QAction* FileActions::make(const char* name, const QString& text, const QKeySequence& keys,
                           const std::function<void()>& does) {
  auto* action = new QAction(text, &window_);
  action->setObjectName(name);
  action->setShortcut(keys);
  connect(action, &QAction::triggered, this, does);
  actions_.push_back(action);
  return action;
}

QAction* FileActions::find(const QString& name) const {
  const auto found = std::ranges::find_if(
      actions_, [&](const QAction* action) { return action->objectName() == name; });
  return found == actions_.end() ? nullptr : *found;
}

void FileActions::fill(QMenu& menu) {
  menu.addAction(find("new"));
  menu.addAction(find("open"));
  menu.addAction(find("open-folder"));
  menu.addMenu(recent_);
  menu.addSeparator();
  menu.addAction(find("save"));
  menu.addAction(find("save-as"));
  menu.addAction(find("export"));
  menu.addSeparator();
  menu.addAction(find("reload"));
  menu.addSeparator();
  menu.addAction(find("quit"));
}

void FileActions::fill_recent() {
  recent_->clear();
  for (const std::filesystem::path& path : session_.recent().list()) {
    QAction* action = recent_->addAction(to_qt(path.filename()));
    action->setToolTip(to_qt(path));
    connect(action, &QAction::triggered, this, [this, path] { open(path); });
  }
  if (recent_->isEmpty()) recent_->addAction(tr("None yet"))->setEnabled(false);
}

bool FileActions::may_lose_work() {
  if (!session_.is_dirty()) return true;
  QMessageBox box(QMessageBox::Question, tr("Unsaved work"),
                  tr("The comparison has changes that are not saved."),
                  QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, &window_);
  box.setObjectName("unsaved-work");
  box.setDefaultButton(QMessageBox::Save);
  switch (box.exec()) {
    case QMessageBox::Save:
      return save();
    case QMessageBox::Discard:
      return true;
    default:
      return false;
  }
}

void FileActions::open(const std::filesystem::path& path) {
  FileKind kind = FileKind::session;
  const bool readable = session_.act([&](Workbench&) {
    kind = kind_of_file(path);
    // A broken file is no reason to ask about unsaved work.
    if (kind == FileKind::session) static_cast<void>(load_document(path.string()));
  });
  if (!readable) return;
  if (kind != FileKind::session) {
    session_.take_in(path, kind);
  } else if (may_lose_work()) {
    session_.open(path);
  }
}

bool FileActions::save() {
  return session_.path().empty() ? save_as() : session_.save(session_.path());
}

bool FileActions::save_as() {
  const QString start =
      session_.path().empty() ? QString("comparison.toml") : to_qt(session_.path());
  QString file = QFileDialog::getSaveFileName(&window_, tr("Save"), start, tr(kFilter));
  if (file.isEmpty()) return false;
  if (!file.contains('.')) file += ".toml";
  return session_.save(from_qt(file));
}

void FileActions::offer_recovery() {
  for (const Autosave::Left& left : session_.autosave().left_behind()) {
    const QString what = left.original.empty() ? tr("a comparison that was never saved")
                                               : tr("changes of %1").arg(to_qt(left.original));
    QMessageBox box(QMessageBox::Question, tr("Recover work"),
                    tr("fuseline ended before %1 was saved.").arg(what), QMessageBox::NoButton,
                    &window_);
    box.setObjectName("recover-work");
    const QAbstractButton* recover = box.addButton(tr("Recover"), QMessageBox::AcceptRole);
    const QAbstractButton* discard = box.addButton(tr("Discard"), QMessageBox::DestructiveRole);
    box.addButton(tr("Later"), QMessageBox::RejectRole);
    box.exec();
    if (box.clickedButton() == recover) {
      session_.recover(left);
      return;  // one window holds one session: others are offered at the next start
    }
    if (box.clickedButton() == discard) {
      std::error_code error;
      std::filesystem::remove(left.file, error);
    }
  }
}

bool FileActions::takes(const QMimeData& data) {
  return data.hasUrls() && std::ranges::all_of(data.urls(), &QUrl::isLocalFile);
}

void FileActions::drop(const QMimeData& data) {
  const QList<QUrl> urls = data.urls();
  for (const QUrl& url : urls) open(from_qt(url.toLocalFile()));
}

}  // namespace fuseline::gui
