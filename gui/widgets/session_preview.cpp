// What a click on an edge would do, found off the window's thread while the mouse points there.
#include <QMetaObject>
#include <mutex>
#include <utility>

#include "gui/widgets/qt_text.h"
#include "gui/widgets/session.h"

namespace fuseline::gui {

namespace {

constexpr int kPassingMs = 40;

}  // namespace

struct Session::PreviewInbox {
  std::mutex mutex;
  std::optional<Previewed> done;
  std::exception_ptr bug;
};

void Session::make_previewer() {
  preview_inbox_ = std::make_shared<PreviewInbox>();
  const auto wake = [this] {
    QMetaObject::invokeMethod(
        this, [this] { take_preview(); }, Qt::QueuedConnection);
  };
  Previewer::Callbacks callbacks;
  callbacks.done = [inbox = preview_inbox_, wake](Previewer::Id, Previewed done) {
    {
      const std::lock_guard lock(inbox->mutex);
      inbox->done = std::move(done);
    }
    wake();
  };
  callbacks.failed = [inbox = preview_inbox_, wake](Previewer::Id, std::exception_ptr bug) {
    {
      const std::lock_guard lock(inbox->mutex);
      inbox->bug = std::move(bug);
    }
    wake();
  };
  previewer_ = std::make_unique<Previewer>(
      [&cache = bench_.cache()](const PreviewRequest& r, const std::stop_token& stop,
                                const Progress&) {
        return Previewed{r.run.result, r.edge,
                         preview_edge(r.document, r.run, r.edge, cache, stop)};
      },
      std::move(callbacks));
}

const EdgePreview* Session::preview(const OnChipEdge& edge) const {
  const RunView* view = bench_.results().find(bench_.shown_run());
  if (view == nullptr || view->result != previewed_) return nullptr;
  const auto found = previews_.find(edge_text(edge));
  return found == previews_.end() ? nullptr : &found->second;
}

void Session::ask_preview() {
  previewer_->cancel();
  const Thing asked = bench_.selection().shown();
  if (asked.kind != ThingKind::edge || preview(asked.edge) != nullptr) return;
  // The mouse may only be passing over the edge.
  QTimer::singleShot(kPassingMs, this, [this, asked] {
    const RunView* view = bench_.results().find(bench_.shown_run());
    if (!(bench_.selection().shown() == asked) || bench_.is_computing() || view == nullptr ||
        !view->ok() || view->run.is_measurement() || !view->result->plan) {
      return;
    }
    const Graph& graph = view->result->plan->graph;
    if (!graph.find_op(asked.edge.from) || !graph.find_op(asked.edge.to)) return;
    if (view->result != previewed_) {
      previews_.clear();
      previewed_ = view->result;
    }
    if (!previews_.contains(edge_text(asked.edge))) {
      previewer_->submit({bench_.document(), *view, asked.edge});
    }
  });
}

void Session::take_preview() {
  std::optional<Previewed> done;
  std::exception_ptr bug;
  {
    const std::lock_guard lock(preview_inbox_->mutex);
    std::swap(done, preview_inbox_->done);
    std::swap(bug, preview_inbox_->bug);
  }
  try {
    if (bug) std::rethrow_exception(bug);
  } catch (const std::exception& error) {
    emit failed(tr("A bug of fuseline"),
                tr("Please report it: %1").arg(to_qt(std::string(error.what()))));
  }
  if (!done || done->of != previewed_) return;
  previews_[edge_text(done->edge)] = std::move(done->preview);
  emit preview_changed(done->edge);
}

}  // namespace fuseline::gui
