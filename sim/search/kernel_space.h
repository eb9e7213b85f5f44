// The kernels among which a search chooses for one rewritten block, and the ways of covering the
// block with them.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/grouping.h"
#include "model/target.h"
#include "sim/search/constraints.h"
#include "sim/search/rewrite_space.h"

namespace fuseline {

inline constexpr std::size_t kMostUnits = 256;
using UnitSet = std::bitset<kMostUnits>;

// A way of covering the block: for every unit the number of its kernel, counted in the order in
// which kernels first appear. Equal groupings are equal texts.
using Grouping = std::basic_string<std::uint8_t>;

// The units of a rewritten block: its operators in dependency order, those of attention's core
// together. A kernel is a set of units that are connected, by edges or as operators that `coda` or
// `per-operator` put side by side, and for which why_no_program() has no reason: the legality that
// policy `custom` obeys. Among our own kernels attention's core is alone, as in `coda`: RoPE and
// the cache's new rows are a launch ahead of our attention (cuda/kernels/attention/prologue.cuh),
// which a prediction of one kernel leaves out, and nothing but stores follows it.
enum class Allowed : std::uint8_t {
  own_kernels,
  with_chains,  // and chains of two products (model/chain.h), slower than two wherever measured
  any_kernels
};

const char* name_of(Allowed);  // the word of --kernels

class KernelSpace {
 public:
  // `block` must outlive it.
  KernelSpace(const RewrittenBlock& block, const Target& target,
              const std::vector<Constraint>& constraints, Allowed allowed);

  [[nodiscard]] const RewrittenBlock& block() const { return *block_; }
  [[nodiscard]] std::size_t units() const { return units_.size(); }
  // False where there are more operators than a search can hold.
  [[nodiscard]] bool searchable() const { return units_.size() <= kMostUnits; }

  // Whether the operators can be one kernel that leaves no cycle; `legal`: and the constraints are
  // fulfilled.
  [[nodiscard]] bool possible(const UnitSet& kernel);
  [[nodiscard]] bool legal(const UnitSet& kernel) { return possible(kernel) && fulfils(kernel); }
  // Whether the two may be neighbours of one kernel.
  [[nodiscard]] bool adjacent(const UnitSet& a, const UnitSet& b) const;
  [[nodiscard]] std::vector<OpId> operators(const UnitSet& kernel) const;
  [[nodiscard]] UnitSet only(std::size_t unit) const { return UnitSet().set(unit); }

  // Every kernel of the space, or the first `at_most` of them; `all` says which.
  struct Kernels {
    std::vector<UnitSet> sets;
    bool all = true;
  };
  [[nodiscard]] Kernels kernels(std::size_t at_most);

  [[nodiscard]] Grouping grouping_of(const std::vector<UnitSet>& kernels) const;
  [[nodiscard]] std::vector<UnitSet> kernels_of(const Grouping& grouping) const;
  // Empty where a unit's operators lie in several groups.
  [[nodiscard]] std::optional<Grouping> grouping_of(const Groups& groups) const;
  // Every kernel is legal and fulfils the constraints.
  [[nodiscard]] bool legal(const Grouping& grouping);
  [[nodiscard]] Groups groups(const Grouping& grouping) const;
  // Every operator alone but for those that a constraint holds together; empty where these cannot
  // be one kernel.
  [[nodiscard]] std::optional<Grouping> least_fused();
  // As much as goes along edges and side by side, in dependency order. Without attention's
  // neighbours where `attention_alone`.
  [[nodiscard]] std::optional<Grouping> most_fused(bool attention_alone);

 private:
  [[nodiscard]] std::size_t most_contractions() const {
    return allowed_ == Allowed::with_chains ? 2 : 1;
  }
  [[nodiscard]] bool fulfils(const UnitSet& kernel) const;

  const RewrittenBlock* block_;
  Target target_;
  Allowed allowed_;
  Groups units_;
  std::vector<UnitSet> neighbours_;        // by unit
  std::vector<UnitSet> together_, apart_;  // pairs of units
  UnitSet contractions_, backward_, attentions_;
  std::unordered_map<UnitSet, bool> known_;
};

}  // namespace fuseline
