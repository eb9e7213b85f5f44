#include "gui/widgets/session.h"

#include <algorithm>

#include <QMetaObject>

#include "base/error.h"
#include "gui/model/edit_savings.h"
#include "gui/model/run_plan.h"
#include "gui/widgets/qt_text.h"
#include "sim/measured/measurement.h"

namespace fuseline::gui {

namespace {

constexpr int kAutosaveEachMs = 400;  // at most once in that time

}  // namespace

QString message_of(const std::exception& error) {
  const auto* input = dynamic_cast<const InputError*>(&error);
  if (input == nullptr) return to_qt(std::string(error.what()));
  const InputProblem& p = input->problem();
  QStringList lines;
  if (!p.file.empty()) {
    QString where = to_qt(p.file);
    if (p.line > 0) where += QObject::tr(", line %1").arg(p.line);
    lines << where;
  }
  QString what;
  if (!p.field.empty()) what = to_qt(p.field);
  if (!p.value.empty()) what += (what.isEmpty() ? "'" : " = '") + to_qt(p.value) + "'";
  if (!p.message.empty()) what += (what.isEmpty() ? "" : ": ") + to_qt(p.message);
  if (!what.isEmpty()) lines << what;
  if (!p.allowed.empty()) lines << QObject::tr("Allowed: %1").arg(to_qt(p.allowed));
  if (!p.nearest.empty()) lines << QObject::tr("Did you mean '%1'?").arg(to_qt(p.nearest));
  return lines.join('\n');
}

Session::Session(Document document, const std::filesystem::path& state_folder, QObject* parent)
    : QObject(parent),
      recent_(state_folder),
      autosave_(state_folder),
      bench_(std::move(document), [this] {
        QMetaObject::invokeMethod(
            this, [this] { poll(); }, Qt::QueuedConnection);
      }) {
  autosave_timer_.setSingleShot(true);
  connect(&autosave_timer_, &QTimer::timeout, this, [this] {
    autosaved_.start();
    try {
      if (is_dirty()) autosave_.store(bench_.document(), path_);
    } catch (const std::exception& error) {
      emit noted(tr("Unsaved work could not be kept: %1").arg(message_of(error)));
    }
  });
  make_previewer();
  show_first_run();
  busy_ = true;
}

Session::~Session() = default;

// What a person made last, of an opened session. Else the baseline, where it is predicted: fusing
// starts from it, and it has edges that can be fused. Else the first prediction.
void Session::show_first_run() {
  const RunList& runs = bench_.document().runs;
  const Run* shown = runs.find(runs.baseline());
  for (const Run& run : runs.all()) {
    if (shown == nullptr || shown->is_measurement()) shown = &run;
  }
  for (const Run& run : runs.all())
    if (run.is_custom()) shown = &run;
  if (shown != nullptr) bench_.show_run(shown->id);
}

bool Session::act(const std::function<void(Workbench&)>& what) {
  try {
    what(bench_);
  } catch (const InputError& error) {
    emit failed(tr("This cannot be done"), message_of(error));
    changed();  // controls go back to what is
    return false;
  } catch (const MissingError& error) {
    emit failed(tr("Something needed is not here"), message_of(error));
    changed();
    return false;
  }
  changed();
  return true;
}

void Session::changed() {
  if (judged_ && !(bench_.document() == *judged_)) {
    judged_.reset();
    pending_.reset();
    emit edit_outdated();
  }
  emit document_changed();
  if (bench_.is_computing() != busy_) {
    busy_ = bench_.is_computing();
    emit progress_changed();
  }
  if (!is_dirty()) {
    autosave_timer_.stop();
    autosave_.discard();
  } else if (!autosave_timer_.isActive()) {
    // A program that is killed does not wait: at once, and what follows soon after together.
    const qint64 ago = autosaved_.isValid() ? autosaved_.elapsed() : kAutosaveEachMs;
    autosave_timer_.start(
        static_cast<int>(std::clamp<qint64>(kAutosaveEachMs - ago, 0, kAutosaveEachMs)));
  }
}

void Session::poll() {
  bool fresh = false;
  try {
    fresh = bench_.poll();
  } catch (const std::exception& error) {
    emit failed(tr("A bug of fuseline"),
                tr("Please report it: %1").arg(to_qt(std::string(error.what()))));
  }
  busy_ = bench_.is_computing();
  emit progress_changed();
  if (fresh) tell_results();
}

Saving Session::saving_of(const Pending& pending, const PlanEstimate& after) {
  if (pending.like) {
    const auto like = bench_.result_like(*pending.like);
    if (like->predicted) {
      return saving_of_edit(pending.policy, *pending.before, *like->predicted, after);
    }
  }
  return saving_between(*pending.before, after);
}

void Session::tell_results() {
  ask_preview();
  emit results_changed();
  emit highlight_changed();
  if (!pending_) return;
  const Pending pending = *std::move(pending_);
  pending_.reset();
  EditNotice notice = pending.notice;
  const std::optional<PlanEstimate> after = estimate_of(notice.run);
  if (pending.before && after) {
    const Saving saving = saving_of(pending, *after);
    notice.text += ": " + saving.text;
    notice.colour = saving.colour;
  }
  emit edit_judged(notice);
}

void Session::wait() {
  bench_.wait();
  busy_ = bench_.is_computing();
  emit progress_changed();
  tell_results();
}

void Session::hover(const Thing& thing) {
  if (bench_.selection().hovered == thing) return;
  bench_.hover(thing);
  ask_preview();
  emit highlight_changed();
}

void Session::select(const Thing& thing) {
  bench_.select(thing);
  const bool run = thing.kind == ThingKind::run || thing.kind == ThingKind::kernel;
  if (run && bench_.document().runs.find(thing.run) != nullptr && bench_.shown_run() != thing.run) {
    show_run(thing.run);
  }
  ask_preview();
  emit highlight_changed();
}

void Session::show_run(RunId run) {
  if (bench_.shown_run() == run) return;
  bench_.show_run(run);
  emit results_changed();
  emit highlight_changed();
}

std::optional<PlanEstimate> Session::estimate_of(RunId run) const {
  const RunView* view = bench_.results().find(run);
  if (view == nullptr || !view->ok()) return std::nullopt;
  return view->result->predicted;
}

void Session::judge(const Workbench::Edit& edit, std::optional<PlanEstimate> before,
                    std::string policy) {
  EditNotice notice{edit.outcome.legal,
                    edit.outcome.legal ? edit.outcome.what : edit.outcome.reason,
                    edit.run,
                    edit.outcome.suggestions,
                    {}};
  previewer_->cancel();
  judged_ = bench_.document();
  if (edit.outcome.legal) {
    pending_ = Pending{notice, std::move(before), edit.like, std::move(policy)};
    changed();
  }
  emit edit_judged(notice);
}

void Session::toggle_edge(const OnChipEdge& edge) {
  const RunId run = bench_.shown_run();
  const std::optional<PlanEstimate> before = estimate_of(run);
  const std::string policy = bench_.document().runs.at(run).policy;
  judge(bench_.toggle_edge(run, edge), before, policy);
}

void Session::fuse_all(const std::vector<std::string>& operators) {
  const RunId run = bench_.shown_run();
  const std::optional<PlanEstimate> before = estimate_of(run);
  const std::string policy = bench_.document().runs.at(run).policy;
  judge(bench_.fuse_all(run, operators), before, policy);
}

void Session::move_operator(const std::string& op, const std::optional<std::string>& beside) {
  const RunId run = bench_.shown_run();
  const std::optional<PlanEstimate> before = estimate_of(run);
  const std::string policy = bench_.document().runs.at(run).policy;
  judge(bench_.move_operator(run, op, beside), before, policy);
}

void Session::toggle_rewrite(const std::string& rewrite) {
  const RunId run = bench_.shown_run();
  const std::optional<PlanEstimate> before = estimate_of(run);
  const std::string policy = bench_.document().runs.at(run).policy;
  judge(bench_.toggle_rewrite(run, rewrite), before, policy);
}

void Session::accept(const Suggestion& suggestion) {
  const RunId run = bench_.shown_run();
  const std::optional<PlanEstimate> before = estimate_of(run);
  const std::string policy = bench_.document().runs.at(run).policy;
  judge(bench_.accept(run, suggestion), before, policy);
}

bool Session::open(const std::filesystem::path& path) {
  std::vector<std::string> notes;
  const bool done = act([&](Workbench& bench) {
    LoadedDocument loaded = load_document(path.string());
    bench.open(std::move(loaded.document));
    notes = std::move(loaded.notes);
    path_ = path;
    recent_.add(path);
    show_first_run();
  });
  if (!done) return false;
  pending_.reset();
  for (const std::string& note : notes) emit noted(to_qt(note));
  return true;
}

bool Session::save(const std::filesystem::path& path) {
  return act([&](Workbench& bench) {
    save_document(bench.document(), path);
    bench.mark_saved();
    path_ = path;
    recent_.add(path);
  });
}

void Session::start_anew(Document document) {
  path_.clear();
  act([&](Workbench& bench) {
    bench.open(std::move(document));
    show_first_run();
  });
}

bool Session::recover(const Autosave::Left& left) {
  const bool done = act([&](Workbench& bench) {
    bench.open_unsaved(load_document(left.file.string()).document);
    path_ = left.original;
    show_first_run();
  });
  if (!done) return false;
  // Kept under this window's name from now on.
  act([&](Workbench& bench) { autosave_.store(bench.document(), path_); });
  std::error_code error;
  std::filesystem::remove(left.file, error);
  return true;
}

bool Session::take_in(const std::filesystem::path& path, FileKind kind) {
  const std::string name = path.filename().string();
  return act([&](Workbench& bench) {
    Setup setup = bench.document().setup;
    switch (kind) {
      case FileKind::model:
        setup.model = path.string();
        bench.set_setup(setup, "model " + name);
        return;
      case FileKind::block:
        bench.choose_block(path.string());
        return;
      case FileKind::plan:
        bench.show_run(bench.add_run(run_of_plan(path.string())));
        return;
      case FileKind::gpu:
        setup.gpu = path.string();
        bench.set_setup(setup, "GPU " + name);
        return;
      case FileKind::measurements: {
        const Measurements measurements = load_measurements(path.string());
        const std::vector<Run> runs = measured_runs(measurements, setup);
        const std::string why = runs.empty() ? why_no_run_fits(measurements, setup) : "";
        if (measurements.meta.gpu.empty())
          throw InputError({.file = path.string(), .message = why});
        // They can be judged, whether a run of this session is among them or not.
        bench.set_measurements(path.string());
        for (const Run& run : runs) bench.add_run(run);
        if (runs.empty()) {
          emit failed(
              tr("No run of this comparison was measured there"),
              tr("%1 %2.\n\nValidation judges all that it holds.").arg(to_qt(path), to_qt(why)));
        }
        return;
      }
      case FileKind::trace:
        emit trace_given(to_qt(path));
        return;
      case FileKind::session:
        return;  // open() is for these
    }
  });
}

void Session::end_without_autosave() {
  autosave_timer_.stop();
  autosave_.discard();
}

}  // namespace fuseline::gui
