#include "gui/model/workbench.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "gui/model/block_editor.h"
#include "gui/model/operator_moves.h"
#include "gui/model/plan_editor.h"
#include "gui/model/read_once.h"
#include "gui/model/run_plan.h"
#include "sim/kernels/walk_memo.h"

namespace fuseline::gui {

Workbench::Workbench(Document document, std::function<void()> wake)
    : history_(std::move(document)),
      cache_(std::make_unique<ResultCache>()),
      inbox_(std::make_shared<Inbox>()) {
  Worker::Work work = [cache = cache_.get()](const Document& d, const std::stop_token& stop,
                                             const Progress& progress) {
    return compute(d, *cache, stop, progress);
  };
  Worker::Callbacks callbacks;
  callbacks.done = [inbox = inbox_, wake](Worker::Id id, Results results) {
    {
      const std::lock_guard lock(inbox->mutex);
      inbox->done.emplace(id, std::move(results));
    }
    if (wake) wake();
  };
  callbacks.failed = [inbox = inbox_, wake](Worker::Id, std::exception_ptr bug) {
    {
      const std::lock_guard lock(inbox->mutex);
      inbox->bug = std::move(bug);
    }
    if (wake) wake();
  };
  callbacks.progress = [inbox = inbox_, wake](Worker::Id, std::size_t done, std::size_t total) {
    inbox->progress =
        static_cast<double>(done) / static_cast<double>(std::max<std::size_t>(1, total));
    if (wake) wake();
  };
  worker_ = std::make_unique<Worker>(std::move(work), std::move(callbacks));
  compute_anew();
}

bool Workbench::is_computing() const { return taken_ != wanted_; }
double Workbench::progress() const { return is_computing() ? inbox_->progress.load() : 1.0; }

bool Workbench::poll() {
  std::optional<std::pair<Worker::Id, Results>> done;
  std::exception_ptr bug;
  {
    const std::lock_guard lock(inbox_->mutex);
    std::swap(done, inbox_->done);
    std::swap(bug, inbox_->bug);
  }
  if (bug) {
    taken_ = wanted_;
    std::rethrow_exception(bug);
  }
  if (!done || done->first != wanted_) return false;
  taken_ = wanted_;
  results_ = std::move(done->second);
  if (!exists(results_, selection_.selected)) selection_.selected = {};
  if (!exists(results_, selection_.hovered)) selection_.hovered = {};
  return true;
}

void Workbench::wait() {
  worker_->wait_idle();
  poll();
}

void Workbench::cancel() {
  worker_->cancel();
  wanted_ = taken_;
}

void Workbench::reload() {
  cache_->clear();
  read_files_again();
  WalkMemo::shared().forget();
  compute_anew();
}

void Workbench::compute_anew() {
  inbox_->progress = 0;
  wanted_ = worker_->submit(document());
}

void Workbench::change(Document next, const std::string& what, const std::string& gesture) {
  if (next == document()) return;
  const auto without_drafts = [](Document d) {  // they are not predicted
    d.draft.clear();
    d.runs.drop_drafts();
    return d;
  };
  const bool same = without_drafts(next) == without_drafts(document());
  history_.change(std::move(next), what, gesture);
  if (!same) compute_anew();
}

void Workbench::open(Document document) {
  WalkMemo::shared().forget();  // another comparison needs other walks: up to 48 MiB are given back
  history_ = History(std::move(document));
  selection_ = {};
  shown_ = {};
  compute_anew();
}

void Workbench::open_unsaved(Document document) {
  open(std::move(document));
  history_.mark_unsaved();
}

bool Workbench::undo() {
  if (!history_.undo()) return false;
  compute_anew();
  return true;
}

bool Workbench::redo() {
  if (!history_.redo()) return false;
  compute_anew();
  return true;
}

void Workbench::set_setup(const Setup& setup, const std::string& what, const std::string& gesture) {
  Document next = document();
  // Another model brings its own block along: the text was written for the other one.
  const bool other_model = setup.model != next.setup.model;
  next.setup = setup;
  if (other_model) {
    next.setup.change = {};
    next.draft.clear();
  }
  static_cast<void>(resolve(next.setup));  // refused before anything changes
  if (!next.draft.empty()) {               // other sizes may be what it was written for
    const CheckedText checked = with_text(next.setup, next.draft);
    next.setup = checked.setup;
    if (!checked.problem) next.draft.clear();
  }
  change(std::move(next), what, gesture);
}

void Workbench::set_block_text(const std::string& text, const std::string& gesture) {
  Document next = document();
  const CheckedText checked = with_text(next.setup, text);
  next.setup = checked.setup;
  next.draft = checked.problem ? text : std::string();
  change(std::move(next), "edit the block", gesture);
}

void Workbench::reset_block_text() {
  Document next = document();
  next.setup.change.text.clear();
  next.draft.clear();
  change(std::move(next), "reset the block's text");
}

void Workbench::choose_block(const std::string& block) {
  Document next = document();
  if (block.empty()) {
    next.setup.change = {};
    if (next.setup.model.empty()) next.setup.model = Setup().model;
    static_cast<void>(resolve(next.setup));
  } else {
    next.setup = with_block_of(next.setup, block);
  }
  next.draft.clear();
  change(std::move(next), block.empty() ? "the model's own block"
                                        : "block " + std::filesystem::path(block).stem().string());
}

void Workbench::save_block(const std::string& path) {
  const BlockEditorText editor = block_editor_text(document());
  save_block_text(editor.text, path);
  if (editor.problem) return;
  Document next = document();
  next.setup = with_block_of(next.setup, path);
  change(std::move(next), "save the block as " + std::filesystem::path(path).filename().string());
}

RunId Workbench::set_plan_draft(RunId id, const std::string& text, const std::string& gesture) {
  Document next = document();
  const Run run = next.runs.at(id);
  const PlanEditorText editor = plan_editor_text(document(), results_, id);
  if (!run.has_plan()) {
    if (editor.original.empty())
      throw InputError({.field = "plan", .message = editor.why_not, .allowed = "a prediction"});
    id = next.runs.add({.name = "plan from " + run.name,
                        .policy = run.policy,
                        .plan_text = editor.original,
                        .setup = run.setup});
  }
  const Run& edited = next.runs.at(id);
  // A text that is predicted already is no draft.
  const std::string now = edited.plan_text.empty() ? editor.original : edited.plan_text;
  next.runs.set_plan(
      id, {edited.policy, edited.plan, edited.plan_text, text == now ? std::string() : text});
  change(std::move(next), "edit the plan", gesture);
  shown_ = id;
  return id;
}

void Workbench::take_plan_draft(RunId id, const std::string& text, const std::string& policy,
                                const std::string& gesture) {
  const Run* run = document().runs.find(id);
  if (run == nullptr || run->plan_draft != text) return;
  Document next = document();
  next.runs.set_plan(id, {policy, run->plan, text, {}});
  change(std::move(next), "edit the plan", gesture);
}

void Workbench::reset_plan(RunId id) {
  Document next = document();
  const Run& run = next.runs.at(id);
  if (run.plan.empty()) throw InputError({.field = "plan", .message = "no file is behind it"});
  next.runs.set_plan(id, {run_of_plan(run.plan).policy, run.plan, {}, {}});
  change(std::move(next), "reset the plan's text");
}

void Workbench::save_plan(RunId id, const std::string& path) {
  const PlanEditorText editor = plan_editor_text(document(), results_, id);
  save_plan_text(editor.text, path);
  const Run& run = document().runs.at(id);
  if (!run.has_plan() || !run.plan_draft.empty()) return;
  Document next = document();
  next.runs.set_plan(id, {run.policy, path, {}, {}});
  change(std::move(next), "save the plan as " + std::filesystem::path(path).filename().string());
}

void Workbench::set_layers(std::optional<std::int64_t> layers, const std::string& gesture) {
  if (layers && (*layers < 1 || *layers > kMostLayers)) {
    throw InputError({.field = "layers",
                      .value = std::to_string(*layers),
                      .message = "is out of range",
                      .allowed = "1 to " + std::to_string(kMostLayers) + ", or all"});
  }
  Document next = document();
  next.layers = layers;
  change(std::move(next),
         layers ? "layers " + std::to_string(*layers) : std::string("the whole model"), gesture);
}

RunId Workbench::add_run(Run run) {
  Document next = document();
  const RunId id = next.runs.add(std::move(run));
  const std::string what = "add " + next.runs.at(id).name;
  change(std::move(next), what);
  return id;
}

void Workbench::remove_run(RunId id) {
  Document next = document();
  const std::string what = "remove " + next.runs.at(id).name;
  next.runs.remove(id);
  change(std::move(next), what);
}

void Workbench::rename_run(RunId id, const std::string& name) {
  Document next = document();
  next.runs.rename(id, name);
  change(std::move(next), "rename to " + name);
}

void Workbench::move_run(RunId id, std::size_t position) {
  Document next = document();
  next.runs.move(id, position);
  change(std::move(next), "move " + next.runs.at(id).name);
}

void Workbench::set_baseline(RunId id) {
  Document next = document();
  next.runs.set_baseline(id);
  const std::string what = "compare with " + next.runs.at(id).name;
  change(std::move(next), what);
}

void Workbench::pin_run(RunId id, bool pinned) {
  Document next = document();
  const Run& run = next.runs.at(id);
  const std::string what = (pinned ? "pin " : "unpin ") + run.name;
  next.runs.set_setup(id, pinned ? std::optional(setup_of(next, run)) : std::nullopt);
  change(std::move(next), what);
}

void Workbench::set_measurements(const std::string& path) {
  Document next = document();
  next.measurements = path;
  change(std::move(next), "measurements " + std::filesystem::path(path).filename().string());
}

void Workbench::set_title(const std::string& title) {
  Document next = document();
  next.title = title.substr(0, RunList::kLongestName);
  change(std::move(next), "rename the session", "title");
}

Workbench::Edit Workbench::edit(RunId id, const EditOf& of) {
  RunEdit edit = edit_run(document(), id, of);
  if (edit.outcome.legal) {
    change(std::move(edit.document), edit.outcome.what);
    shown_ = edit.run;
  }
  return {std::move(edit.outcome), edit.run, std::move(edit.like)};
}

Workbench::Edit Workbench::toggle_edge(RunId id, const OnChipEdge& edge) {
  return edit(id, [&](const Graph& block, const CustomFusion& custom) {
    return gui::toggle_edge(block, custom, edge);
  });
}

Workbench::Edit Workbench::fuse_all(RunId id, const std::vector<std::string>& operators) {
  return edit(id, [&](const Graph& block, const CustomFusion& custom) {
    return gui::fuse_all(block, custom, operators);
  });
}

Workbench::Edit Workbench::move_operator(RunId id, const std::string& op,
                                         const std::optional<std::string>& beside) {
  return edit(id, [&](const Graph& block, const CustomFusion& custom) {
    return gui::move_operator(block, custom, op, beside, Suggest::yes);
  });
}

Workbench::Edit Workbench::toggle_rewrite(RunId id, const std::string& rewrite) {
  return edit(id, [&](const Graph& block, const CustomFusion& custom) {
    return gui::toggle_rewrite(block, custom, rewrite);
  });
}

Workbench::Edit Workbench::accept(RunId id, const Suggestion& suggestion) {
  return edit(id, [&](const Graph&, const CustomFusion&) {
    EditOutcome outcome;
    outcome.legal = true;
    outcome.custom = suggestion.custom;
    outcome.what = suggestion.text;
    return outcome;
  });
}

RunId Workbench::shown_run() const {
  if (document().runs.find(shown_) != nullptr) return shown_;
  return document().runs.baseline();
}

}  // namespace fuseline::gui
