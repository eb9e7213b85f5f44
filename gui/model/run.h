// What is compared: predictions and measurements, named, with exactly one baseline among them.
#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/setup.h"
#include "model/custom_fusion.h"

namespace fuseline::gui {

struct RunId {
  int value = -1;
  friend constexpr auto operator<=>(RunId, RunId) = default;
};

struct Run {
  RunId id{};
  std::string name{};            // unique in its list
  std::string policy{};          // or `custom`; of a measurement, its execution
  std::string measurements{};    // folder or file of a measurement; empty: a prediction
  std::string plan{};            // of a prediction: the file with its plan; empty: the policy's
  std::string plan_text{};       // of a prediction: its plan as it was edited, and is predicted
  std::string plan_draft{};      // what stands in the editor where that is not predicted: it is
                                 // wrong, or not checked yet
  CustomFusion custom{};         // of a prediction under `custom`
  std::optional<Setup> setup{};  // a pinned run's own; empty: it follows the document's

  [[nodiscard]] bool is_measurement() const { return !measurements.empty(); }
  [[nodiscard]] bool has_plan() const { return !plan.empty() || !plan_text.empty(); }
  [[nodiscard]] bool is_custom() const {
    return !is_measurement() && !has_plan() && policy == kCustomPolicy;
  }
  friend bool operator==(const Run&, const Run&) = default;
};

class RunList {
 public:
  static constexpr std::size_t kLongestName = 100;  // bytes

  // Gives the run an id and, when its name is empty or taken, a name of its own ("eager 2"). The
  // first run becomes the baseline.
  RunId add(Run run);
  void remove(RunId id);  // the next one becomes baseline. InputError: the last run
  void rename(RunId id, const std::string& name);  // InputError: empty, too long, taken
  void set_baseline(RunId id);
  void move(RunId id, std::size_t position);
  void set_custom(RunId id, CustomFusion custom);        // asserts is_custom()
  void set_setup(RunId id, std::optional<Setup> setup);  // pins and unpins
  // What it predicts and what stands in its editor, by the names of its fields.
  struct PlanText {
    std::string policy, file, text, draft;
  };
  void set_plan(RunId id, PlanText plan);  // asserts has_plan()
  void drop_drafts();                      // of all plans

  [[nodiscard]] const std::vector<Run>& all() const { return runs_; }
  [[nodiscard]] const Run* find(RunId id) const;  // null when there is none
  [[nodiscard]] const Run* find(const std::string& name) const;
  [[nodiscard]] const Run& at(RunId id) const;                // asserts that it is there
  [[nodiscard]] RunId baseline() const { return baseline_; }  // invalid only when empty
  friend bool operator==(const RunList&, const RunList&) = default;

 private:
  Run& mutable_at(RunId id);

  std::vector<Run> runs_;
  RunId baseline_;
  int next_id_ = 0;
};

}  // namespace fuseline::gui
