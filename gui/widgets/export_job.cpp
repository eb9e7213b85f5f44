#include "gui/widgets/export_job.h"

#include <algorithm>

#include "base/error.h"
#include "base/output_file.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kLookMs = 20;          // how often it looks whether the views have what they draw
constexpr double kPartOfData = 0.6;  // of the progress

}  // namespace

ExportJob::ExportJob(Session& session, std::vector<View*> views, std::filesystem::path where,
                     PictureOptions options, QObject* parent, As as)
    : QObject(parent),
      session_(session),
      views_(std::move(views)),
      where_(std::move(where)),
      options_(std::move(options)),
      as_(as) {
  connect(&next_, &QTimer::timeout, this, &ExportJob::step);
  // Pictures of two comparisons would lie in one folder.
  connect(&session_, &Session::document_changed, this, [this] {
    if (session_.bench().is_computing())
      end(tr("Nothing was exported: the comparison changed meanwhile"));
  });
  for (View* view : views_) {
    view->refresh();
    view->prepare();
  }
  next_.start(kLookMs);
}

double ExportJob::progress() const {
  const auto total = static_cast<double>(views_.size());
  const auto waiting = static_cast<double>(
      std::ranges::count_if(views_, [](const View* view) { return view->is_busy(); }));
  if (!has_data_) return kPartOfData * (total - waiting) / std::max(1.0, total);
  return kPartOfData + (1 - kPartOfData) * static_cast<double>(drawn_) /
                           std::max(1.0, static_cast<double>(pictures()));
}

void ExportJob::step() {
  if (has_ended_) return;
  try {
    if (!has_data_) {
      const bool waiting = session_.bench().is_computing() ||
                           std::ranges::any_of(views_, [](const View* v) { return v->is_busy(); });
      if (!waiting) {
        for (View* view : views_) view->show_highlight(session_.bench().highlighted());
        if (as_ == As::files) files_ = view_files(session_.bench(), views_);
        has_data_ = true;
        next_.start(0);
      }
    } else if (drawn_ < pictures()) {
      draw_next();
    } else if (as_ == As::page) {
      Workbench& bench = session_.bench();
      replace_file(
          where_, session_page(bench.document(), bench.results(), page_, session_.path().string()));
      return end(tr("One page: %1").arg(to_qt(where_)));
    } else {
      write_files(where_, files_);
      return end(tr("%1 files in %2").arg(files_.size()).arg(to_qt(where_)));
    }
  } catch (const std::exception& error) {
    return end(tr("Nothing was exported: %1").arg(message_of(error)));
  }
  emit progressed();
}

std::size_t ExportJob::pictures() const {
  return as_ == As::page ? views_.size()
                         : views_.size() * static_cast<std::size_t>(options_.formats.size());
}

void ExportJob::draw_next() {
  if (as_ == As::page) {
    View& view = *views_[drawn_++];
    page_.push_back({from_qt(view.id()), from_qt(view.title()), from_qt(view.hint()),
                     picture_bytes(view, "svg", options_.size, options_.scale), view.tables()});
    return;
  }
  const auto formats = static_cast<std::size_t>(options_.formats.size());
  View& view = *views_[drawn_ / formats];
  const QString& format = options_.formats[static_cast<int>(drawn_ % formats)];
  files_.push_back({from_qt(view.id() + "." + format),
                    picture_bytes(view, format, options_.size, options_.scale)});
  ++drawn_;
}

void ExportJob::cancel() {
  for (View* view : views_) view->cancel();
  end(tr("Cancelled: nothing was exported"));
}

void ExportJob::end(const QString& what) {
  if (has_ended_) return;
  has_ended_ = true;
  next_.stop();
  emit ended(what);
  deleteLater();
}

}  // namespace fuseline::gui
