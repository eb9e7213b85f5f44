// The window's state without a window: document with undo, results that follow it, selection. What
// a person does is a function here; widgets call it and draw what changed.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/compute.h"
#include "gui/model/history.h"
#include "gui/model/latest_wins.h"
#include "gui/model/results.h"
#include "gui/model/run_edits.h"
#include "gui/model/selection.h"

namespace fuseline::gui {

// One thread owns it. Results come from another: `wake` is called there when poll() has something
// to take (in Qt: a queued call of poll()).
class Workbench {
 public:
  Workbench(Document document, std::function<void()> wake);

  [[nodiscard]] const Document& document() const { return history_.document(); }
  [[nodiscard]] const History& history() const { return history_; }
  // The newest that was taken; those of an older document until the next poll() that says true.
  [[nodiscard]] const Results& results() const { return results_; }
  [[nodiscard]] bool is_computing() const;  // results() are of an older document
  [[nodiscard]] double progress() const;    // 0 to 1, of the runs that are computed now
  // Takes finished results. True when results() changed. A bug of ours is thrown here.
  bool poll();
  // Blocks until results() are those of the document. For headless use and tests.
  void wait();
  // Stops what is computed; results() stay as they are.
  void cancel();
  // Computes all again, with files read anew.
  void reload();

  // Replaces everything, undo included.
  void open(Document document);
  void open_unsaved(Document document);  // recovered work: dirty from the start
  void mark_saved() { history_.mark_saved(); }
  bool undo();
  bool redo();

  // Each is one step of undo, and InputError leaves everything as it was.
  void set_setup(const Setup& setup, const std::string& what, const std::string& gesture = {});
  // The text as it stands in the editor. A right one is predicted; a wrong one is kept as the
  // document's draft, and the last right one stays predicted. Typing is one gesture.
  void set_block_text(const std::string& text, const std::string& gesture = {});
  // Back to what the file says.
  void reset_block_text();
  // Another block (block_editor.h: with_block_of); empty: the model's own.
  void choose_block(const std::string& block);
  // Writes the text; a right one is read from there from now on.
  void save_block(const std::string& path);
  // The text of a run's plan as it stands in the editor (plan_editor.h), not checked yet:
  // predictions stay those of the last right one. A run without a plan gets a run of its own behind
  // it, which is shown then. Returns the edited run.
  RunId set_plan_draft(RunId id, const std::string& text, const std::string& gesture = {});
  // The same text was found to be right: it is predicted. Nothing happens where another text stands
  // there by now.
  void take_plan_draft(RunId id, const std::string& text, const std::string& policy,
                       const std::string& gesture = {});
  void reset_plan(RunId id);                          // back to what its file says
  void save_plan(RunId id, const std::string& path);  // it is read from there from now on
  // Blocks in a row, 1 to kMostLayers; none: the whole model.
  void set_layers(std::optional<std::int64_t> layers, const std::string& gesture = {});
  void end_gesture() { history_.end_gesture(); }
  RunId add_run(Run run);
  void remove_run(RunId id);
  void rename_run(RunId id, const std::string& name);
  void move_run(RunId id, std::size_t position);
  void set_baseline(RunId id);
  void pin_run(RunId id, bool pinned);  // a pinned run keeps its setup when the document's changes
  void set_measurements(const std::string& path);  // where measured runs are looked for, and judged
  void set_title(const std::string& title);

  // Fusing by hand. An edit of a run that is not custom makes a new custom run like it first, both
  // in one step; `run` says which run was edited. An illegal edit changes nothing.
  struct Edit {
    EditOutcome outcome;
    RunId run;
    std::optional<Run> like;  // as in RunEdit
  };
  // Of a run that need not be in the document; from the cache or into it.
  [[nodiscard]] std::shared_ptr<const RunResult> result_like(const Run& run) {
    return result_of(document(), run, *cache_);
  }
  Edit toggle_edge(RunId id, const OnChipEdge& edge);
  Edit fuse_all(RunId id, const std::vector<std::string>& operators);
  // Into the kernel of another operator; without one: out of its own (operator_moves.h).
  Edit move_operator(RunId id, const std::string& op, const std::optional<std::string>& beside);
  Edit toggle_rewrite(RunId id, const std::string& rewrite);
  // Takes one of the suggestions of an edit of that run.
  Edit accept(RunId id, const Suggestion& suggestion);

  // The run that graph, kernel table and waterfall show; the last one edited or chosen.
  [[nodiscard]] RunId shown_run() const;
  void show_run(RunId id) { shown_ = id; }

  [[nodiscard]] const Selection& selection() const { return selection_; }
  void select(Thing thing) { selection_.selected = std::move(thing); }
  void hover(Thing thing) { selection_.hovered = std::move(thing); }
  [[nodiscard]] Highlight highlighted() const { return highlight(results_, selection_.shown()); }

  [[nodiscard]] ResultCache& cache() { return *cache_; }

 private:
  using Worker = LatestWins<Document, Results>;
  struct Inbox {
    std::mutex mutex;
    std::optional<std::pair<Worker::Id, Results>> done;
    std::exception_ptr bug;
    std::atomic<double> progress = 0;
  };

  void change(Document next, const std::string& what, const std::string& gesture = {});
  void compute_anew();
  Edit edit(RunId id, const EditOf& of);

  History history_;
  Results results_;
  Selection selection_;
  RunId shown_;
  std::unique_ptr<ResultCache> cache_;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<Worker> worker_;  // after what it uses
  Worker::Id wanted_ = 0;
  Worker::Id taken_ = 0;
};

}  // namespace fuseline::gui
