#include "gui/widgets/picture_export.h"

#include <QBuffer>
#include <QImage>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <algorithm>

#include "base/error.h"
#include "base/output_file.h"
#include "gui/model/export.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kDotsPerInch = 96;  // of a logical pixel, so that fonts are as large as on screens

QByteArray png(View& view, QSize size, double scale) {
  QImage image(size * scale, QImage::Format_ARGB32_Premultiplied);
  if (image.isNull()) {
    throw InputError({.field = "size",
                      .value = std::to_string(size.width()) + "x" + std::to_string(size.height()),
                      .message = "is too large for a picture"});
  }
  image.setDevicePixelRatio(scale);
  image.setDotsPerMeterX(static_cast<int>(kDotsPerInch / 0.0254));
  image.setDotsPerMeterY(static_cast<int>(kDotsPerInch / 0.0254));
  QPainter painter(&image);
  view.paint_to(painter, size);
  painter.end();
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.save(&buffer, "PNG");
  return bytes;
}

QByteArray svg(View& view, QSize size) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  QSvgGenerator device;
  device.setOutputDevice(&buffer);
  device.setResolution(kDotsPerInch);
  device.setSize(size);
  device.setViewBox(QRect(QPoint(), size));
  device.setTitle(view.title());
  QPainter painter(&device);
  view.paint_to(painter, size);
  painter.end();
  return bytes;
}

QByteArray pdf(View& view, QSize size) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QPdfWriter device(&buffer);
  device.setTitle(view.title());
  device.setCreator("fuseline");
  const QSizeF points = QSizeF(size) * 72.0 / kDotsPerInch;
  device.setPageSize(QPageSize(points, QPageSize::Point, {}, QPageSize::ExactMatch));
  device.setPageMargins(QMarginsF());
  device.setResolution(kDotsPerInch);
  QPainter painter(&device);
  view.paint_to(painter, size);
  painter.end();
  return bytes;
}

}  // namespace

std::string picture_bytes(View& view, const QString& format, QSize size, double scale) {
  const QByteArray bytes = format == "svg"   ? svg(view, size)
                           : format == "pdf" ? pdf(view, size)
                                             : png(view, size, scale);
  return bytes.toStdString();
}

void write_picture(View& view, const std::filesystem::path& file, QSize size, double scale) {
  const QString format = QString::fromStdString(file.extension().string()).mid(1);
  if (!kPictureFormats.contains(format)) {
    throw InputError({.file = file.string(),
                      .value = file.extension().string(),
                      .message = "is no format of pictures",
                      .allowed = ".png, .svg, .pdf"});
  }
  replace_file(file, picture_bytes(view, format, size, scale));
}

std::vector<ExportFile> view_files(Workbench& bench, const std::vector<View*>& views) {
  std::vector<ExportFile> files = export_data({.results = &bench.results()});
  const auto is_there = [&](const std::string& stem) {
    return std::ranges::any_of(files, [&](const ExportFile& file) {
      const bool of_a_run = stem.find('-') == std::string::npos;
      return file.name.starts_with(stem + ".") || (of_a_run && file.name.starts_with(stem + "-"));
    });
  };
  for (View* view : views) {
    for (const Table& table : view->tables()) {
      if (is_there(table.name)) continue;
      files.push_back({table.name + ".csv", to_csv(table)});
      files.push_back({table.name + ".json", to_json(table)});
    }
  }
  return files;
}

QStringList export_views(Workbench& bench, const std::vector<View*>& views,
                         const std::filesystem::path& folder, const PictureOptions& options) {
  bench.wait();
  for (View* view : views) {
    view->refresh();
    view->finish();
    view->show_highlight(bench.highlighted());
  }
  std::vector<ExportFile> files = view_files(bench, views);
  for (View* view : views) {
    for (const QString& format : options.formats) {
      files.push_back({from_qt(view->id() + "." + format),
                       picture_bytes(*view, format, options.size, options.scale)});
    }
  }
  write_files(folder, files);
  QStringList names;
  for (const ExportFile& file : files) names << to_qt(file.name);
  return names;
}

}  // namespace fuseline::gui
