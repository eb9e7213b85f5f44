// How PyTorch sends tokens to experts: numbers of experts are sorted, and rows are taken in the
// order of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "model/import/translator.h"

namespace fuseline {

// A part of what a call gives, as sort() gives values and places.
struct PartOfCall {
  std::size_t call = 0;
  std::int64_t part = 0;
};
std::optional<PartOfCall> part_of_call(const Translator& t, std::size_t at);

// A step of the draft that routes: how many experts every row goes to, and among how many.
struct ExpertRoute {
  std::size_t step = 0;  // choose_experts
  Letter each{}, experts{};
  std::int64_t rows = 0;
};
// Of the numbers of the chosen experts, in any shape.
std::optional<ExpertRoute> route_of_chosen(Translator& t, std::size_t at);
// Of these numbers sorted.
std::optional<ExpertRoute> route_of_sorted(Translator& t, std::size_t at);
// Of the places that sort() gives, which are the order of rows by their experts.
std::optional<ExpertRoute> route_of_order(Translator& t, std::size_t at);

}  // namespace fuseline
