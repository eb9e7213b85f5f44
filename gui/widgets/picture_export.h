// Views as pictures and data files.
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>
#include <filesystem>
#include <vector>

#include "gui/model/export.h"
#include "gui/widgets/view.h"

namespace fuseline::gui {

inline const QStringList kPictureFormats = {"png", "svg", "pdf"};

// A picture as the bytes of a file; `format`: one of kPictureFormats. InputError: it is too large.
std::string picture_bytes(View& view, const QString& format, QSize size, double scale);

// The data of all views: export_data() and the tables that only a view has. Views are finished.
std::vector<ExportFile> view_files(Workbench& bench, const std::vector<View*>& views);

// All or nothing. `scale`: pixels of a PNG for each of `size`. InputError when it cannot be
// written.
void write_picture(View& view, const std::filesystem::path& file, QSize size, double scale = 1);

struct PictureOptions {
  QSize size{1200, 800};
  double scale = 1;
  QStringList formats{"png"};
};

// Every view's picture as ID.FORMAT, every table as CSV and JSON (gui/model/export.h) and those
// that only a view has. Views are finished first. Returns the names of the files.
QStringList export_views(Workbench& bench, const std::vector<View*>& views,
                         const std::filesystem::path& folder, const PictureOptions& options);

}  // namespace fuseline::gui
