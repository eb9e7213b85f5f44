// One thing is selected and one is hovered, in all views together, and each view highlights what
// corresponds to them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gui/model/results.h"

namespace fuseline::gui {

enum class MemoryLevel : std::uint8_t { registers, smem, l2, hbm };
const char* name_of(MemoryLevel level);  // "HBM"

enum class ThingKind : std::uint8_t { none, op, tensor, edge, kernel, level, run };

// Something that a view shows. Only the parts that its kind names count.
struct Thing {
  ThingKind kind = ThingKind::none;
  std::string name{};      // op, tensor
  OnChipEdge edge{};       // edge
  RunId run{};             // kernel, run
  std::size_t kernel = 0;  // kernel: index of the launch in its run
  MemoryLevel level = MemoryLevel::hbm;

  [[nodiscard]] bool is_nothing() const { return kind == ThingKind::none; }
};
bool operator==(const Thing& a, const Thing& b);

Thing op_thing(std::string name);
Thing tensor_thing(std::string name);
Thing edge_thing(OnChipEdge edge);
Thing kernel_thing(RunId run, std::size_t kernel);
Thing level_thing(MemoryLevel level);
Thing run_thing(RunId run);

struct Selection {
  Thing selected;
  Thing hovered;

  // What views highlight: the hovered thing, else the selected one.
  [[nodiscard]] const Thing& shown() const { return hovered.is_nothing() ? selected : hovered; }
};

// What corresponds to a thing. Policies rewrite the block differently: an operator that a run does
// not have stands for those of the same step of the block (its site) there.
struct Highlight {
  std::set<std::string> operators;
  std::set<std::string> tensors;
  std::set<std::string> edges;                     // edge_text()
  std::map<RunId, std::set<std::size_t>> kernels;  // launches of each run
  std::set<MemoryLevel> levels;
  std::set<RunId> runs;
  friend bool operator==(const Highlight&, const Highlight&) = default;
};
Highlight highlight(const Results& results, const Thing& thing);

// Things whose name holds the text, case-insensitive: runs, operators, tensors, kernels, in this
// order, those that begin with it first. At most `limit`.
struct SearchHit {
  Thing thing;
  std::string text;  // "operator gate_up", "kernel gate_up of coda"
};
std::vector<SearchHit> search(const Results& results, const std::string& text,
                              std::size_t limit = 20);

// Whether the thing is still there: selections of things that an edit removed are dropped.
bool exists(const Results& results, const Thing& thing);

}  // namespace fuseline::gui
