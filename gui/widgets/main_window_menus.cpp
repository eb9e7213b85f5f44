// The window's menus and tool bar.
#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFileDialog>
#include <QImage>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QPainter>
#include <QStatusBar>
#include <QToolBar>

#include "gui/model/command_text.h"
#include "gui/widgets/help_dialogs.h"
#include "gui/widgets/main_window.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/search_box.h"
#include "gui/widgets/tour_guide.h"

namespace fuseline::gui {

QAction* MainWindow::make(const char* name, const QString& text, const QKeySequence& keys,
                          const std::function<void()>& does) {
  auto* made = new QAction(text, this);
  made->setObjectName(name);
  made->setShortcut(keys);
  connect(made, &QAction::triggered, this, does);
  addAction(made);
  own_actions_.push_back(made);
  return made;
}

QAction* MainWindow::action(const QString& name) const {
  for (QAction* a : own_actions_) {
    if (a->objectName() == name) return a;
  }
  return files_->find(name);
}

std::vector<QAction*> MainWindow::all_actions() const {
  std::vector<QAction*> all = files_->actions();
  all.insert(all.end(), own_actions_.begin(), own_actions_.end());
  for (QAction* a : runs_->run_actions()) all.push_back(a);
  return all;
}

void MainWindow::make_menus() {
  QMenu* file = menuBar()->addMenu(tr("&File"));
  file->setToolTipsVisible(true);
  files_->fill(*file);
  make_edit_menu();
  QMenu* run = menuBar()->addMenu(tr("&Run"));
  run->addMenu(runs_->add_menu());
  run->addSeparator();
  for (QAction* a : runs_->run_actions()) run->addAction(a);
  file->insertAction(files_->find("reload"),
                     make("export-page", tr("Export &one page (HTML)…"),
                          QKeySequence("Ctrl+Shift+E"), [this] { export_page(); }));
  make_view_menu();
  make_help_menu();
  make_tool_bar();
}

void MainWindow::make_edit_menu() {
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  edit->addAction(make("undo", tr("&Undo"), QKeySequence::Undo,
                       [this] { session_.act([](Workbench& bench) { bench.undo(); }); }));
  edit->addAction(make("redo", tr("&Redo"), QKeySequence("Ctrl+Shift+Z"),
                       [this] { session_.act([](Workbench& bench) { bench.redo(); }); }));
  edit->addSeparator();
  edit->addAction(make("copy-command", tr("Copy the &command that gives these numbers"),
                       QKeySequence("Ctrl+Shift+C"), [this] { copy_command(); }));
  edit->addSeparator();
  edit->addAction(make("find", tr("&Find…"), QKeySequence::Find, [this] {
    search_->setFocus();
    search_->selectAll();
  }));
}

void MainWindow::make_view_menu() {
  QMenu* menu = menuBar()->addMenu(tr("&View"));
  int number = 1;
  for (View* v : views_) {
    const char* held = number <= 10 ? "Ctrl+%1" : number <= 20 ? "Ctrl+Shift+%1" : "Alt+%1";
    const QKeySequence keys(QString(held).arg(number % 10));
    menu->addAction(make(("view-" + v->id().toStdString()).c_str(), v->title(), keys,
                         [this, id = v->id()] { raise_view(id); }));
    ++number;
  }
  menu->addSeparator();
  QMenu* panels = menu->addMenu(tr("&Panels"));
  for (QDockWidget* d : docks_) panels->addAction(d->toggleViewAction());
  menu->addAction(make("reset-layout", tr("&Reset layout"), QKeySequence("Ctrl+Shift+R"),
                       [this] { reset_layout(); }));
  QMenu* pictures = menu->addMenu(tr("&Export one view"));
  for (View* v : views_) {
    connect(pictures->addAction(v->title() + "…"), &QAction::triggered, this,
            [this, v] { export_view(*v); });
  }
  menu->addSeparator();
  QAction* dark = make("dark", tr("&Dark colours"), QKeySequence("Ctrl+D"), [] {});
  dark->setCheckable(true);
  dark->setChecked(Theme(QApplication::palette()).is_dark());
  connect(dark, &QAction::toggled, this, [this](bool on) {
    QApplication::setPalette(on ? dark_palette() : light_palette());
    store_colours(on);
  });
  menu->addAction(dark);
  menu->addAction(make("full-screen", tr("&Full screen"), QKeySequence("F11"),
                       [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); }));
}

void MainWindow::make_help_menu() {
  QMenu* help = menuBar()->addMenu(tr("&Help"));
  help->addAction(make("tour", tr("&Tour of the window (90 s)"), QKeySequence("Shift+F1"),
                       [this] { tour_->start(); }));
  // The key is that of keyPressEvent(): as a shortcut it would be taken from text fields.
  QAction* sheet = make("shortcuts", tr("&Shortcuts"), {}, [this] { show_shortcuts(); });
  sheet->setText(tr("&Shortcuts\t?"));
  help->addAction(sheet);
  help->addAction(make("glossary", tr("&Glossary"), QKeySequence("F1"),
                       [this] { glossary_dialog(this)->show(); }));
  help->addAction(make("about", tr("&About fuseline"), {}, [this] {
    QMessageBox::about(
        this, tr("About fuseline"),
        tr("<p><b>fuseline</b> says what fusing a Transformer block is worth on a GPU, with "
           "predictions beside measurements.</p><p>This window uses QCustomPlot and is under the "
           "GNU General Public License, version 3. The libraries and the command line are under "
           "the Apache License 2.0.</p>"));
  }));
}

void MainWindow::make_tool_bar() {
  QToolBar* bar = addToolBar(tr("Tools"));
  bar->setObjectName("tool-bar");
  bar->setMovable(false);
  bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  for (const char* name : {"open", "save", "export"}) bar->addAction(files_->find(name));
  files_->find("export")->setIconText(tr("Export"));
  files_->find("open")->setIconText(tr("Open"));
  bar->addSeparator();
  bar->addAction(action("undo"));
  bar->addAction(action("redo"));
  auto* space = new QWidget(bar);
  space->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(space);
  search_->setMinimumWidth(160);
  bar->addWidget(search_);
}

void MainWindow::update_undo() {
  const History& history = session_.bench().history();
  const auto show = [](QAction* a, bool can, const std::string& text, const QString& plain) {
    a->setEnabled(can);
    a->setText(can ? to_qt(text) : plain);
    a->setIconText(plain);
    const QString keys = a->shortcut().toString(QKeySequence::NativeText);
    a->setToolTip((can ? to_qt(text) : plain) + " (" + keys + ")");
  };
  show(action("undo"), history.can_undo(), history.undo_text(), tr("Undo"));
  show(action("redo"), history.can_redo(), history.redo_text(), tr("Redo"));
}

void MainWindow::show_shortcuts() { shortcut_sheet(all_actions(), this)->show(); }

void MainWindow::export_all() {
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Export into a folder"));
  if (folder.isEmpty()) return;
  export_to(from_qt(folder));
}

// The window stays free meanwhile; the status bar shows how far it is, and cancels.
void MainWindow::export_to(const std::filesystem::path& folder) {
  PictureOptions options;
  options.formats = kPictureFormats;
  follow(new ExportJob(session_, views_, folder, options, this));
}

void MainWindow::export_page_to(const std::filesystem::path& file) {
  follow(new ExportJob(session_, views_, file, {}, this, ExportJob::As::page));
}

void MainWindow::export_page() {
  QString file = QFileDialog::getSaveFileName(this, tr("The session as one page"),
                                              "comparison.html", tr("Pages (*.html)"));
  if (file.isEmpty()) return;
  if (!file.contains('.')) file += ".html";
  export_page_to(from_qt(file));
}

void MainWindow::follow(ExportJob* job) {
  if (export_ != nullptr) export_->cancel();
  export_ = job;
  connect(export_, &ExportJob::progressed, this, &MainWindow::show_progress);
  connect(export_, &ExportJob::ended, this, [this](const QString& what) {
    export_ = nullptr;
    statusBar()->showMessage(what, 12000);
    show_progress();
  });
  show_progress();
}

void MainWindow::offer_copies(View& v) {
  v.setContextMenuPolicy(Qt::CustomContextMenu);
  connect(&v, &QWidget::customContextMenuRequested, this, [this, &v](const QPoint& at) {
    auto* menu = new QMenu(&v);
    menu->setObjectName("view-menu");
    menu->setAttribute(Qt::WA_DeleteOnClose);
    connect(menu->addAction(tr("Copy picture")), &QAction::triggered, this,
            [this, &v] { copy_picture(v); });
    connect(menu->addAction(tr("Copy data (CSV)")), &QAction::triggered, this,
            [this, &v] { copy_table(v); });
    connect(menu->addAction(tr("Copy the command that gives these numbers")), &QAction::triggered,
            this, [this] { copy_command(); });
    menu->addSeparator();
    connect(menu->addAction(tr("Export this view…")), &QAction::triggered, this,
            [this, &v] { export_view(v); });
    menu->popup(v.mapToGlobal(at));
  });
}

void MainWindow::copy_picture(View& v) {
  const QSize size = v.size().expandedTo({800, 500});
  QImage image(size * 2, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(2);
  QPainter painter(&image);
  v.paint_to(painter, size);
  painter.end();
  QApplication::clipboard()->setImage(image);
  statusBar()->showMessage(tr("%1: the picture is on the clipboard").arg(v.title()), 4000);
}

void MainWindow::copy_table(View& v) {
  QStringList texts;
  for (const Table& table : v.tables()) texts << to_qt(to_csv(table));
  if (texts.isEmpty()) {
    statusBar()->showMessage(tr("%1 has no data yet").arg(v.title()), 4000);
    return;
  }
  QApplication::clipboard()->setText(texts.join('\n'));
  statusBar()->showMessage(tr("%1: the data are on the clipboard").arg(v.title()), 4000);
}

void MainWindow::copy_command() {
  const CommandText text = command_of(session_.bench().document(), session_.path().string());
  if (!text.command.empty()) QApplication::clipboard()->setText(to_qt(text.command));
  statusBar()->showMessage(to_qt(text.command + (text.note.empty() ? "" : " (" + text.note + ")")),
                           12000);
}

void MainWindow::export_view(View& v) {
  const QString file = QFileDialog::getSaveFileName(
      this, tr("Export %1").arg(v.title()), v.id() + ".png", tr("Pictures (*.png *.svg *.pdf)"));
  if (file.isEmpty()) return;
  session_.act([&](Workbench&) {
    v.finish();
    write_picture(v, from_qt(file), v.size().expandedTo({800, 500}), 2);
  });
}

}  // namespace fuseline::gui
