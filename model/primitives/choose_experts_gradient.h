// The gradient of a row's scores by that of its gates (model/expert_routing.h). Which experts the
// row chose is given.
#pragma once

#include "model/operators/attributes.h"
#include "model/primitives/primitive.h"

namespace fuseline {

struct ChooseExpertsGradient {
  static constexpr const char* name = "choose_experts_gradient";
  Value d_scores;  // [M, E]
  Value d_gates;   // [M, k]
  Value scores;    // [M, E]
  Value chosen;    // [M, k], numbers of columns of `scores`
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
  friend bool operator==(const ChooseExpertsGradient&, const ChooseExpertsGradient&) = default;
};

}  // namespace fuseline
