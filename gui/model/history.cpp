#include "gui/model/history.h"

#include <utility>

namespace fuseline::gui {

void History::change(Document next, const std::string& what, const std::string& gesture) {
  if (next == document_) return;
  const bool goes_on = !gesture.empty() && gesture == gesture_ && !past_.empty();
  if (!goes_on) {
    past_.push_back({document_, what});
    if (past_.size() > kDeepest) past_.erase(past_.begin());
  }
  document_ = std::move(next);
  future_.clear();
  gesture_ = gesture;
}

bool History::undo() {
  if (past_.empty()) return false;
  Step step = std::move(past_.back());
  past_.pop_back();
  future_.push_back({std::exchange(document_, std::move(step.document)), std::move(step.what)});
  gesture_.clear();
  return true;
}

bool History::redo() {
  if (future_.empty()) return false;
  Step step = std::move(future_.back());
  future_.pop_back();
  past_.push_back({std::exchange(document_, std::move(step.document)), std::move(step.what)});
  gesture_.clear();
  return true;
}

std::string History::undo_text() const { return past_.empty() ? "" : "Undo " + past_.back().what; }
std::string History::redo_text() const {
  return future_.empty() ? "" : "Redo " + future_.back().what;
}

}  // namespace fuseline::gui
