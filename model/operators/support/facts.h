// Facts that many operators share: operands, extents, launches, reasons for having no gradient.
#pragma once

#include <algorithm>

#include "model/operators/operator.h"
#include "model/plan.h"

namespace fuseline {

inline constexpr OperandSpec kX{"x", "M", "N"};
inline constexpr OperandSpec kY{"y", "M", "N"};
inline constexpr OperandSpec kDy{"dy", "M", "N"};
inline constexpr OperandSpec kDx{"dx", "M", "N"};
inline constexpr OperandSpec kStats{"stats", "M", "C"};

inline constexpr const char* kOfAGradient = "it is a step of a gradient itself";
inline constexpr const char* kMadeLater = "rewrites make it when the graph is differentiated";
inline constexpr const char* kGathers = "gathers rows by token";

// Columns of the wider one of the first operand and the result.
inline Extent widest(const Op& op) {
  return {op.writes[0].rows, std::max(op.reads[0].cols, op.writes[0].cols)};
}
inline Extent of_operand(const Op& op) { return {op.reads[0].rows, op.reads[0].cols}; }
inline Extent of_result(const Op& op) { return {op.writes[0].rows, op.writes[0].cols}; }

template <Implementation implementation>
Implementation always(const Graph&, const Op&) {
  return implementation;
}

// A slice of several rows has gaps between them in memory, which cost index arithmetic for each
// element.
Implementation by_layout(const Graph& graph, const Op& op);

// Of contractions, whose kernels are GEMMs or attention. Asserts.
Implementation never_alone(const Graph& graph, const Op& op);

}  // namespace fuseline
