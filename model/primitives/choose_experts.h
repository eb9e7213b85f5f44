// The experts of every row and their gates, from the row's scores (model/expert_routing.h).
#pragma once

#include "model/operators/attributes.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct ChooseExperts {
  static constexpr const char* name = "choose_experts";
  Value gates;   // [M, k]
  Value chosen;  // [M, k], numbers of columns of `scores`
  Value scores;  // [M, E]
  ExpertChoice choice{};

  [[nodiscard]] std::vector<Value> uses() const;
  [[nodiscard]] std::vector<Value> defines() const;
  [[nodiscard]] std::vector<Access> accesses() const;
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t heads) const;
  [[nodiscard]] std::vector<ColumnRelation> relations() const;
  [[nodiscard]] TileDemands demands() const;
  bool check(ShapeCheck& check) const;
  [[nodiscard]] CodeLine text(const ProgramNames& names) const;
  void evaluate(TileContext& tile) const;
  void epilogue(EpilogueCode& code) const;
  void stream(StreamCode& code) const;
  friend bool operator==(const ChooseExperts&, const ChooseExperts&) = default;
};

}  // namespace fuseline
