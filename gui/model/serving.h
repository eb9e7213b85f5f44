// What one GPU serves: a decode step of the whole model for every batch and context, as a map.
#pragma once

#include "gui/model/whole_model.h"

namespace fuseline::gui {

struct ServingRequest {
  Setup setup;
  Run run;                                      // a prediction
  std::vector<std::int64_t> batches, contexts;  // ascending
  std::optional<MoneyPerHour> price{};

  friend bool operator==(const ServingRequest&, const ServingRequest&) = default;
};

// 1 to 256 sequences, each four times the one before; 1,024 to 131,072 tokens, each twice.
std::vector<std::int64_t> usual_batches();
std::vector<std::int64_t> usual_contexts();

struct ServingCell {
  Seconds step;                  // where it fits: until every sequence has its next token
  double tokens_per_second = 0;  // of all sequences together
  std::optional<Money> cost{};   // of a million of them
  Bytes memory{}, capacity{};
  bool fits = false;
  std::string problem{};  // in place of the numbers
  Subject about{};
};

struct ServingMap {
  std::string title;
  std::vector<std::int64_t> batches, contexts;
  std::vector<ServingCell> cells;  // by batch, then context
  [[nodiscard]] const ServingCell& at(std::size_t batch, std::size_t context) const {
    return cells[batch * contexts.size() + context];
  }
};

// One whole model a cell, 20 to 60 ms, in parallel, where it fits. Cancelled.
ServingMap serving_map(const ServingRequest& request, const std::stop_token& stop = {},
                       const Progress& progress = {});

enum class ServingQuantity : std::uint8_t { tokens_per_second, step_time, cost, memory };
// The cell's number: tokens/s, ms, money, bytes. Empty where there is none.
std::optional<double> number_of(const ServingCell& cell, ServingQuantity quantity);
// Short, for a cell: "12.4k", "8.21 ms", "0.31", "96 GB".
std::string cell_text(const ServingCell& cell, ServingQuantity quantity);
// Whether larger numbers are the good ones.
bool more_is_better(ServingQuantity quantity);

Table to_table(const ServingMap& map, const std::string& run);

}  // namespace fuseline::gui
