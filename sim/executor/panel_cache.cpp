#include "sim/executor/panel_cache.h"

#include <cstddef>

#include "base/error.h"
#include "sim/executor/float_formats.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kRowsPerTask = 16;

std::int64_t elements(const PanelKey& key) {
  return (key.end - key.begin) * (key.k_end - key.k_begin);
}

}  // namespace

bool PanelCache::transposed(const PanelKey& key) const {
  return key.is_b ? mainloop_.b_is_kn : mainloop_.a_is_km;
}

// Memory row `row` of the panel, as it is stored.
void PanelCache::widen_row(const PanelKey& key, Panel& panel, std::int64_t row,
                           const Port& port) const {
  const Operand& operand = key.is_b ? mainloop_.b : mainloop_.a;
  const std::int64_t outer = key.is_b ? mainloop_.N : mainloop_.M;
  const bool k_first = transposed(key);
  const std::int64_t matrix = k_first ? mainloop_.K : mainloop_.N;
  const Corner of_group{key.is_b ? key.batch * matrix : 0, 0};
  // Parts of k lie in the one matrix that all products of the batch share.
  const bool shared = mainloop_.batch == 1 || !mainloop_.depths.empty();
  const Corner corner =
      !mainloop_.groups.empty() ? of_group
      : shared                  ? Corner{}
               : corner_of(operand, mainloop_.batch, key.batch, k_first ? mainloop_.K : outer,
                           k_first ? outer : mainloop_.K);
  const std::int64_t first_row = k_first ? key.k_begin : key.begin;
  const std::int64_t first_col = k_first ? key.begin : key.k_begin;
  float* const values = panel.data.data() + row * panel.stride;
  port.peek(operand, corner.row + first_row + row, corner.col + first_col, panel.stride, values);
  if (key.is_b && mainloop_.weight.quantised()) dequantise_row(key, first_row + row, values, port);
  if (!key.is_b && mainloop_.activation.quantised()) scale_row(key, first_row + row, values, port);
}

// A product of two codes is exact in fp32, and so is its sum but for fp32's own rounding: scales
// that multiply sums of products may as well multiply the codes.
void PanelCache::scale_row(const PanelKey& key, std::int64_t m, float* codes,
                           const Port& port) const {
  std::vector<float> scales(static_cast<std::size_t>(mainloop_.a_scale->cols));
  port.peek(*mainloop_.a_scale, m, 0, mainloop_.a_scale->cols, scales.data());
  dequantise(mainloop_.activation, {.scale = scales.data()}, key.k_begin, key.k_end - key.k_begin,
             codes);
}

// Tensor cores take what a code is worth in the type of the other operand. Scales that multiply
// sums are exact factors of these, so nothing is rounded then, nor where the other operand is codes
// too.
void PanelCache::dequantise_row(const PanelKey& key, std::int64_t n, float* codes,
                                const Port& port) const {
  const StoredWeight& weight = mainloop_.weight;
  const std::vector<ScaleTensor> beside = weight.beside(mainloop_.N, mainloop_.K);
  std::vector<std::vector<float>> numbers(beside.size());
  RowScales<float> row;
  for (std::size_t i = 0; i < beside.size(); ++i) {
    const ScaleTensor& t = beside[i];
    numbers[i].resize(static_cast<std::size_t>(t.cols));
    const std::int64_t at =
        t.kind == ScaleKind::tensor_scale ? 0 : key.batch * t.rows + weight.scale_row(n);
    port.peek(mainloop_.beside_b[i], at, 0, t.cols, numbers[i].data());
    if (t.kind == ScaleKind::scale) row.scale = numbers[i].data();
    if (t.kind == ScaleKind::zero_point) row.zero_point = numbers[i].data();
    if (t.kind == ScaleKind::tensor_scale) row.tensor_scale = numbers[i][0];
  }
  const std::int64_t count = key.k_end - key.k_begin;
  dequantise(weight, row, key.k_begin, count, codes);
  if (weight.scales_sums() || mainloop_.activation.quantised()) return;
  const Dtype type = port.type(mainloop_.a);
  if (type == Dtype::fp32) return;
  std::vector<std::byte> rounded(static_cast<std::size_t>(count * size_of(type)));
  narrow(type, codes, rounded.data(), count);
  widen(type, rounded.data(), codes, count);
}

void PanelCache::evict(std::int64_t coming_bytes) {
  for (auto it = panels_.begin();
       it != panels_.end() && held_bytes_ + coming_bytes > kBudgetBytes;) {
    if (it->second.last_use == call_) {
      ++it;
      continue;
    }
    held_bytes_ -= elements(it->first) * 4;
    it = panels_.erase(it);
  }
}

void PanelCache::prepare(const std::vector<PanelKey>& keys, const Workers& workers) {
  ++call_;
  std::int64_t coming = 0;
  std::vector<PanelKey> missing;
  for (const PanelKey& key : keys) {
    const auto found = panels_.find(key);
    if (found != panels_.end()) {
      found->second.last_use = call_;
    } else {
      missing.push_back(key);
      coming += elements(key) * 4;
    }
  }
  evict(coming);
  held_bytes_ += coming;

  struct Task {
    const PanelKey* key;
    Panel* panel;
    std::int64_t row_begin, row_end;
  };
  std::vector<Task> tasks;
  for (const PanelKey& key : missing) {
    Panel& panel = panels_[key];
    const std::int64_t rows = transposed(key) ? key.k_end - key.k_begin : key.end - key.begin;
    if (elements(key) == 0) continue;  // of a product that sums nothing
    panel.stride = elements(key) / rows;
    panel.last_use = call_;
    panel.data.resize(static_cast<std::size_t>(elements(key)));
    for (std::int64_t row = 0; row < rows; row += kRowsPerTask)
      tasks.push_back({&key, &panel, row, std::min(rows, row + kRowsPerTask)});
  }
  const Loop loop{std::ssize(tasks), static_cast<double>(coming)};
  parallel_for(workers, loop, [&](std::int64_t index, int thread) {
    const Task& task = tasks[static_cast<std::size_t>(index)];
    for (std::int64_t row = task.row_begin; row < task.row_end; ++row)
      widen_row(*task.key, *task.panel, row, ports_[static_cast<std::size_t>(thread)]);
  });
}

BlasPanel<float> PanelCache::at(const PanelKey& key) const {
  const auto found = panels_.find(key);
  FUSELINE_ASSERT(found != panels_.end(), "a panel that was not prepared");
  return {found->second.data.data(), found->second.stride, transposed(key)};
}

}  // namespace fuseline::executor
