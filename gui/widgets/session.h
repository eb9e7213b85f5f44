// The workbench on Qt's thread: what a person does goes through here, and signals say what is to be
// drawn again. Knows the session's file, and keeps unsaved work on disk.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gui/model/choices.h"
#include "gui/model/edge_preview.h"
#include "gui/model/latest_wins.h"
#include "gui/model/session_file.h"
#include "gui/model/workbench.h"

namespace fuseline::gui {

// What became of an edit of the fusion.
struct EditNotice {
  bool legal = false;
  std::string text;  // what was done and saves, or the reason against it
  RunId run;
  std::vector<Suggestion> suggestions;
  Colour colour{ColourRole::neutral, 0};  // of a legal one: better or worse, once that is known
};

class Session : public QObject {
  Q_OBJECT
 public:
  // `state_folder`: for autosave and recent files.
  Session(Document document, const std::filesystem::path& state_folder, QObject* parent = nullptr);
  ~Session() override;

  [[nodiscard]] Workbench& bench() { return bench_; }
  [[nodiscard]] RecentFiles& recent() { return recent_; }
  [[nodiscard]] Autosave& autosave() { return autosave_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }  // empty: no file yet
  [[nodiscard]] bool is_dirty() const { return bench_.history().is_dirty(); }

  // Does it, then tells who draws. False, and failed(), for wrong input: nothing has changed then.
  bool act(const std::function<void(Workbench&)>& what);

  void hover(const Thing& thing);
  void select(const Thing& thing);
  void show_run(RunId run);

  // What a click on the edge would do to the shown run; null until preview_changed(). It is looked
  // for when an edge is hovered or selected.
  [[nodiscard]] const EdgePreview* preview(const OnChipEdge& edge) const;

  // Edits of the shown run; edit_judged() tells the outcome.
  void toggle_edge(const OnChipEdge& edge);
  void fuse_all(const std::vector<std::string>& operators);
  void move_operator(const std::string& op, const std::optional<std::string>& beside);
  void toggle_rewrite(const std::string& rewrite);
  void accept(const Suggestion& suggestion);

  // Wrong files: failed(), and the session stays.
  bool open(const std::filesystem::path& path);
  bool save(const std::filesystem::path& path);
  void start_anew(Document document);  // with the run shown that an opened file would show
  bool recover(const Autosave::Left& left);
  // A model, a block, a plan, a GPU, measurements: put into the session; a trace: shown beside it.
  // What it is was found by kind_of_file().
  bool take_in(const std::filesystem::path& path, FileKind kind);

  void wait();                  // until results are those of the document, and drawn
  void end_without_autosave();  // a proper end: nothing is to be recovered

 signals:
  void document_changed();   // names, setup, undo, title
  void results_changed();    // numbers, or the run that is shown
  void highlight_changed();  // selection or hovering
  void progress_changed();   // is_computing(), progress()
  void preview_changed(const fuseline::OnChipEdge& edge);
  void edit_judged(const fuseline::gui::EditNotice& notice);
  void edit_outdated();  // the document is not the one that the last edit_judged() was about
  void failed(const QString& title, const QString& text);
  void trace_given(const QString& file);  // a profiler's trace, for the view of traces
  void noted(const QString& text);        // what was left out when a file was opened

 private:
  void poll();
  void tell_results();
  void changed();
  void judge(const Workbench::Edit& edit, std::optional<PlanEstimate> before, std::string policy);
  [[nodiscard]] std::optional<PlanEstimate> estimate_of(RunId run) const;
  void show_first_run();
  void make_previewer();
  void ask_preview();
  void take_preview();

  struct PreviewRequest {
    Document document;
    RunView run;
    OnChipEdge edge;
  };
  struct Previewed {
    std::shared_ptr<const RunResult> of;
    OnChipEdge edge;
    EdgePreview preview;
  };
  struct PreviewInbox;
  using Previewer = LatestWins<PreviewRequest, Previewed>;

  std::filesystem::path path_;
  RecentFiles recent_;
  Autosave autosave_;
  QTimer autosave_timer_;
  QElapsedTimer autosaved_;  // since then
  Workbench bench_;
  // An edit whose results are awaited, to say what it saves.
  struct Pending {
    EditNotice notice;
    std::optional<PlanEstimate> before;
    std::optional<Run> like;  // of an edit of a policy's run
    std::string policy;
  };
  [[nodiscard]] Saving saving_of(const Pending& pending, const PlanEstimate& after);
  std::optional<Pending> pending_;
  std::optional<Document> judged_;  // after the last edit
  bool busy_ = false;
  std::shared_ptr<const RunResult> previewed_;   // what the previews are of
  std::map<std::string, EdgePreview> previews_;  // by edge_text()
  std::shared_ptr<PreviewInbox> preview_inbox_;
  std::unique_ptr<Previewer> previewer_;  // after what it uses
};

// An InputError as people read it: the file and line, the field and value, what is allowed.
QString message_of(const std::exception& error);

}  // namespace fuseline::gui
