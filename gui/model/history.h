// Undo and redo over the whole document.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gui/model/document.h"

namespace fuseline::gui {

class History {
 public:
  static constexpr std::size_t kDeepest = 500;  // steps that can be undone

  explicit History(Document document) : document_(std::move(document)) {}

  [[nodiscard]] const Document& document() const { return document_; }

  // Makes `next` the document. `what`: for the menu, "fuse gate_up → swiglu". A document equal to
  // the present one changes nothing. Changes in a row with the same `gesture` (a slider that is
  // being dragged) are one step; an empty gesture is never joined.
  void change(Document next, const std::string& what, const std::string& gesture = {});
  void end_gesture() { gesture_.clear(); }

  // The document as it was before, or after. False when there is nothing to undo or redo.
  bool undo();
  bool redo();
  [[nodiscard]] bool can_undo() const { return !past_.empty(); }
  [[nodiscard]] bool can_redo() const { return !future_.empty(); }
  [[nodiscard]] std::string undo_text() const;  // "Undo fuse gate_up → swiglu"; "" when it cannot
  [[nodiscard]] std::string redo_text() const;

  // Whether the document differs from the one last marked as saved.
  [[nodiscard]] bool is_dirty() const { return !(document_ == saved_); }
  void mark_saved() { saved_ = document_; }
  void mark_unsaved() { saved_ = Document{}; }  // of a recovered session

 private:
  struct Step {
    Document document;
    std::string what;
  };
  Document document_;
  Document saved_ = document_;
  std::vector<Step> past_;    // what was changed, from which document
  std::vector<Step> future_;  // what is done again, to which document
  std::string gesture_;
};

}  // namespace fuseline::gui
