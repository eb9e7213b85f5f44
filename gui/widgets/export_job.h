// An export of all views that leaves the window free: what is slow is computed off its thread, one
// picture is drawn at a time, and files are written when all of them are there.
#pragma once

#include <QObject>
#include <QTimer>
#include <filesystem>
#include <vector>

#include "gui/model/session_page.h"
#include "gui/widgets/picture_export.h"
#include "gui/widgets/session.h"

namespace fuseline::gui {

class ExportJob : public QObject {
  Q_OBJECT
 public:
  // Files in a folder, or one HTML file at that path.
  enum class As { files, page };
  // Deletes itself when it has ended.
  ExportJob(Session& session, std::vector<View*> views, std::filesystem::path where,
            PictureOptions options, QObject* parent, As as = As::files);

  void cancel();  // nothing is written

  [[nodiscard]] double progress() const;  // 0 to 1

 signals:
  void progressed();
  void ended(const QString& what);  // what to tell: how many files and where, or why there are none

 private:
  void step();
  void draw_next();
  [[nodiscard]] std::size_t pictures() const;
  void end(const QString& what);

  Session& session_;
  std::vector<View*> views_;
  std::filesystem::path where_;
  PictureOptions options_;
  As as_;
  std::vector<PageView> page_;
  QTimer next_;
  std::vector<ExportFile> files_;
  bool has_data_ = false;
  bool has_ended_ = false;
  std::size_t drawn_ = 0;  // pictures
};

}  // namespace fuseline::gui
