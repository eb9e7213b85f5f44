// Operand panels of a GEMM in fp32, widened once and kept while tiles of nearby waves use them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "model/program.h"
#include "sim/executor/blas.h"
#include "sim/executor/memory.h"
#include "sim/executor/parallel.h"

namespace fuseline::executor {

// Rows [begin, end) of operand a or b of one matrix of the batch, over a range of k.
struct PanelKey {
  bool is_b = false;
  std::int64_t batch = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t k_begin = 0, k_end = 0;
  friend auto operator<=>(const PanelKey&, const PanelKey&) = default;
};

class PanelCache {
 public:
  PanelCache(const GemmMainloop& mainloop, const std::vector<Port>& ports)
      : mainloop_(mainloop), ports_(ports) {}

  // Makes the panels available; those of earlier calls go once more than kBudget is held.
  void prepare(const std::vector<PanelKey>& keys, const Workers& workers);
  [[nodiscard]] BlasPanel<float> at(const PanelKey& key) const;

  static constexpr std::int64_t kBudgetBytes = std::int64_t{512} << 20;

 private:
  struct Panel {
    std::vector<float> data;
    std::int64_t stride = 0;
    std::int64_t last_use = 0;
  };
  void evict(std::int64_t coming_bytes);
  void widen_row(const PanelKey& key, Panel& panel, std::int64_t row, const Port& port) const;
  void dequantise_row(const PanelKey& key, std::int64_t n, float* codes, const Port& port) const;
  void scale_row(const PanelKey& key, std::int64_t m, float* codes, const Port& port) const;
  [[nodiscard]] bool transposed(const PanelKey& key) const;

  const GemmMainloop& mainloop_;
  const std::vector<Port>& ports_;
  std::map<PanelKey, Panel> panels_;
  std::int64_t held_bytes_ = 0;
  std::int64_t call_ = 0;
};

}  // namespace fuseline::executor
