// A grid of requests, and their predictions in parallel.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/config/scenario.h"
#include "sim/report/json_output.h"
#include "sim/selection/selection.h"

namespace fuseline {

class KnownFiles;

// Every combination of lists: names between commas, sizes also as ranges
// (sim/selection/size_list.h). A cell is checked when it is asked for, so that a large grid begins
// at once.
class SweepGrid {
 public:
  // `scenario_path`: a scenario for what the lists leave open. `price`: an hour of the GPU.
  // InputError: lists that are none, more than 1,000,000 predictions.
  SweepGrid(const std::optional<std::string>& scenario_path, SelectionWords lists,
            std::optional<std::string> price);

  [[nodiscard]] std::size_t cells() const;
  // InputError: as resolve_selection.
  [[nodiscard]] Selection cell(std::size_t number) const;

 private:
  [[nodiscard]] std::size_t policies_of_a_cell() const;
  struct Dimension {
    std::optional<std::string> SelectionWords::*word;
    std::vector<std::optional<std::string>> values;
  };
  // Cells that vary in the same dimensions; where decode stands beside other phases, each phase.
  struct Part {
    std::vector<Dimension> dimensions;
    [[nodiscard]] std::size_t cells() const;
  };
  std::optional<std::string> scenario_path_, price_;
  std::optional<Scenario> scenario_;
  SelectionWords lists_;
  std::vector<Part> parts_;  // in the order of their cells
  std::shared_ptr<KnownFiles> known_;
};

// All cells of such a grid. InputError: as resolve_selection, or more than 20,000 cells.
std::vector<Selection> resolve_grid(const std::optional<std::string>& scenario_path,
                                    const SelectionWords& lists,
                                    const std::optional<std::string>& price);

// One cell's predictions, of its policies in order.
SweptCase predict_cell(const Selection& cell);

// All predictions of the cells, in their order; empty when `stop` was set. `stop` may be null, and
// `progress` empty. InputError: more than 20,000 predictions.
std::optional<std::vector<SweptCase>> predict_grid(
    const std::vector<Selection>& cells, const std::atomic<bool>* stop = nullptr,
    const std::function<void(std::size_t done, std::size_t count)>& progress = {});

}  // namespace fuseline
