// Opening, saving and leaving without losing work.
#pragma once

#include <QObject>
#include <filesystem>
#include <functional>
#include <vector>

#include "gui/widgets/session.h"

class QAction;
class QMenu;
class QKeySequence;
class QMimeData;
class QWidget;

namespace fuseline::gui {

class FileActions : public QObject {
  Q_OBJECT
 public:
  FileActions(Session& session, QWidget& window);

  void fill(QMenu& menu);
  [[nodiscard]] const std::vector<QAction*>& actions() const { return actions_; }
  [[nodiscard]] QAction* find(const QString& name) const;  // "open", "save", ...

  // Asks when there is unsaved work. False: stay.
  bool may_lose_work();
  // Whatever the file is; asks before a session replaces unsaved work.
  void open(const std::filesystem::path& path);
  bool save();
  bool save_as();
  // Work of a window that was killed: asks what to do with it.
  void offer_recovery();

  static bool takes(const QMimeData& data);
  void drop(const QMimeData& data);

 signals:
  void export_requested();

 private:
  QAction* make(const char* name, const QString& text, const QKeySequence& keys,
                const std::function<void()>& does);
  void fill_recent();

  Session& session_;
  QWidget& window_;
  QMenu* recent_;
  std::vector<QAction*> actions_;
};

}  // namespace fuseline::gui
