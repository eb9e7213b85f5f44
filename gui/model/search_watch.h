// A search for the best fusion while it runs: what it has tried, the front of time and HBM bytes,
// and the edits that could come next.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/compute.h"
#include "gui/model/document.h"
#include "gui/model/geometry.h"
#include "gui/model/roles.h"
#include "gui/model/table.h"

namespace fuseline::gui {

// A plan that was tried.
struct SearchPoint {
  Seconds time;
  Bytes hbm{};
  std::optional<CustomFusion>
      custom{};  // of those that were the best when they came: each is a run
};

struct SearchState {
  std::vector<SearchPoint> points;  // in the order in which they came
  std::vector<std::size_t> front;   // of points: none is better in both, by time
  std::optional<std::size_t> best;  // of points, by time
  std::size_t tried = 0;            // more than the points, where there are very many
  bool running = false;
  std::string text;  // "1,120.3 µs is the best of 420 plans"
  Subject about{};
};

// Filled on the search's thread, read on the window's.
class SearchWatch {
 public:
  void begin(const Subject& about);
  void tried(Seconds time, Bytes hbm);
  // The point that was tried last is the best so far.
  void better(const CustomFusion& custom);
  void end();
  [[nodiscard]] SearchState state() const;
  [[nodiscard]] std::size_t count() const;  // of tried(): whether there is anything new

 private:
  mutable std::mutex mutex_;
  SearchState state_;
};

// An edit that is legal from the best plan so far.
struct NextEdit {
  OnChipEdge edge;
  bool splits = false;
  Seconds time;  // of the whole block with it
  Bytes hbm{};
  std::string text;       // "fuse down → residual2: time −12.1 µs (−1.0 %)"
  std::string caption{};  // the same for narrow places: "fuse down → residual2 −12.1 µs −42.5 MB"
  Colour colour{};
};

struct NextQuestion {
  Document document;
  Run run;  // whose edits they are
};
// Those that save most time first; 10 to 20 ms each. Cancelled.
std::vector<NextEdit> next_edits(const NextQuestion& question, ResultCache& cache,
                                 const std::stop_token& stop = {});

Table to_table(const SearchState& state);

}  // namespace fuseline::gui
