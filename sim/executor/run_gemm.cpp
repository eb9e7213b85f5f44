#include <algorithm>
#include <set>

#include "sim/executor/panel_cache.h"
#include "sim/executor/run_context.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::executor {

namespace {

// One output tile over one part of k. Of products that add up, the panels of the first.
struct GemmTask {
  TileArea area;
  PanelKey a, b;
  std::int64_t split = 0;
};

// The tiles of a cluster's unit, in order.
void add_tiles(const GemmMainloop& m, const PhaseSchedule& s, const GemmUnit& unit,
               std::vector<GemmTask>& tasks) {
  const TileShape tile = s.tile;
  const bool grouped = !m.groups.empty();
  if (unit.batch % m.summed != 0) return;  // added by the tile of the first product of the sum
  // All parts of k but the last are equally long; those of `depths` are no parts of one product.
  const std::int64_t split = s.splits == 1 ? 0
                             : unit.k_end == m.K && unit.k_begin > 0
                                 ? s.splits - 1
                                 : unit.k_begin / (unit.k_end - unit.k_begin);
  for (std::int64_t row = unit.m_begin; row < unit.m_end; row += tile.m) {
    for (std::int64_t col = unit.n_begin; col < unit.n_end; col += tile.n) {
      GemmTask t;
      t.area.row_begin = row;
      t.area.row_end = std::min(unit.m_end, row + tile.m);
      t.area.columns = {col, std::min(unit.n_end, col + tile.n)};
      t.area.row_tile = grouped ? unit.row_tile(row, tile.m) : row / tile.m;
      t.area.col_tile = col / tile.n;
      t.area.batch = m.batch / m.summed;
      t.area.batch_index = grouped ? 0 : unit.batch / m.summed;
      t.area.height = m.M;
      t.a = {false, unit.batch, row, t.area.row_end, unit.k_begin, unit.k_end};
      t.b = {true, unit.batch, col, t.area.columns.end, unit.k_begin, unit.k_end};
      t.split = split;
      tasks.push_back(t);
    }
  }
}

// Tiles beside or below each other whose products are one call of OpenBLAS, which copies its
// operands anew in every call: four tiles of 128 × 256 a call run at 1.2 times the rate of one.
struct Product {
  std::size_t first = 0;  // of the tasks
  std::size_t count = 0;
  PanelKey a, b;

  [[nodiscard]] std::int64_t rows() const { return a.end - a.begin; }
  [[nodiscard]] std::int64_t cols() const { return b.end - b.begin; }
};

constexpr std::int64_t kProductElements = 512 * 256;

bool same_but_rows(const PanelKey& x, const PanelKey& y) {
  return x.batch == y.batch && x.k_begin == y.k_begin && x.k_end == y.k_end;
}

// Adds the task to the product when it continues it.
bool join(Product& product, const GemmTask& task) {
  if (!same_but_rows(product.a, task.a)) return false;
  const std::int64_t grown = (task.a.end - task.a.begin) * (task.b.end - task.b.begin);
  if (product.rows() * product.cols() + grown > kProductElements) return false;
  const bool below = product.b == task.b && product.a.end == task.a.begin;
  const bool beside = product.a == task.a && product.b.end == task.b.begin;
  if (!below && !beside) return false;
  product.a.end = task.a.end;
  product.b.end = task.b.end;
  ++product.count;
  return true;
}

class GemmRun {
 public:
  GemmRun(const RunContext& context, const GemmMainloop& mainloop)
      : context_(context),
        mainloop_(mainloop),
        layout_(context.program.body, 0, mainloop.N, false),
        panels_(mainloop, context.ports) {
    for (int t = 0; t < context.workers.threads; ++t)
      interpreters_.emplace_back(context.program.body, layout_, partials_, context.fault_in(false));
    results_.resize(interpreters_.size());
    for (const GemmUnit& unit : context.schedule.gemm.units)
      add_tiles(mainloop, context.schedule, unit, tasks_);
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (products_.empty() || !join(products_.back(), tasks_[i]))
        products_.push_back({i, 1, tasks_[i].a, tasks_[i].b});
    if (context.schedule.splits > 1)
      workspace_.resize(static_cast<std::size_t>(context.schedule.splits * mainloop.batch /
                                                 mainloop.summed * mainloop.M * mainloop.N));
  }

  // Wave by wave: as many tiles as the GPU holds at once, so that panels are shared by tiles that
  // run together there.
  void run() {
    const std::size_t units = context_.schedule.gemm.units.size();
    const std::size_t tiles_per_wave = std::max<std::size_t>(
        1, tasks_.size() * static_cast<std::size_t>(context_.schedule.gemm.units_per_wave) / units);
    for (std::size_t begin = 0; begin < products_.size();) {
      std::size_t end = begin;
      for (std::size_t tiles = 0; end < products_.size() && tiles < tiles_per_wave; ++end)
        tiles += products_[end].count;
      run_wave(begin, end);
      begin = end;
      if (context_.progress)
        context_.progress(static_cast<double>(end) / static_cast<double>(products_.size()));
    }
    if (context_.schedule.splits > 1) join_splits();
    partials_.finish(context_.port(0));
  }

 private:
  // The same panel of a product that comes `count` places later in the batch.
  static PanelKey later(PanelKey key, std::int64_t count) {
    key.batch += count;
    return key;
  }

  void run_wave(std::size_t begin, std::size_t end) {
    std::set<PanelKey> keys;
    for (std::size_t i = begin; i < end; ++i) {
      for (std::int64_t s = 0; s < mainloop_.summed; ++s) {
        keys.insert(later(products_[i].a, s));
        keys.insert(later(products_[i].b, s));
      }
    }
    panels_.prepare({keys.begin(), keys.end()}, context_.workers);
    double operations = 0;
    for (std::size_t i = begin; i < end; ++i)
      operations += 2.0 * static_cast<double>(products_[i].rows() * products_[i].cols()) *
                    static_cast<double>(mainloop_.K);
    parallel_for(context_.workers, Loop{static_cast<std::int64_t>(end - begin), operations},
                 [&](std::int64_t i, int thread) {
                   run_product(products_[begin + static_cast<std::size_t>(i)], thread);
                 });
  }

  void run_product(const Product& product, int thread) {
    const std::int64_t k = product.a.k_end - product.a.k_begin;
    Matrix& result = results_[static_cast<std::size_t>(thread)];
    result.resize(product.rows(), product.cols());
    if (k == 0) std::fill(result.data.begin(), result.data.end(), 0.0F);
    for (std::int64_t s = 0; s < mainloop_.summed && k > 0; ++s)
      multiply(panels_.at(later(product.a, s)), panels_.at(later(product.b, s)), result.rows,
               result.cols, k, s == 0 ? 0.0F : 1.0F, result.data.data(), result.cols);
    for (std::size_t i = 0; i < product.count; ++i)
      run_tile(product.first + i, product, result, thread);
  }

  void run_tile(std::size_t index, const Product& product, const Matrix& result, int thread) {
    const GemmTask& task = tasks_[index];
    const std::int64_t cols = task.area.columns.count();
    const std::int64_t k = task.a.k_end - task.a.k_begin;
    Port& port = context_.port(thread);
    port.count_load(mainloop_.a, task.area.rows() * k * mainloop_.summed);
    port.count_load(mainloop_.b, cols * k * mainloop_.summed);
    count_scales(task, port);
    const bool split = context_.schedule.splits > 1;
    const bool stale = index + 1 == tasks_.size() && context_.has_fault(FaultKind::stale_tile);
    TileInterpreter& interpreter = interpreters_[static_cast<std::size_t>(thread)];
    Matrix& tile = interpreter.value(0);
    if (!split) tile.resize(task.area.rows(), cols);
    float* to = split ? part(task, task.split) : tile.data.data();
    const std::int64_t stride = split ? mainloop_.N : cols;
    for (std::int64_t r = 0; r < task.area.rows(); ++r) {
      const float* from =
          result.row(task.a.begin - product.a.begin + r) + task.b.begin - product.b.begin;
      if (stale) {
        std::fill_n(to + r * stride, cols, 0.0F);
      } else {
        std::copy_n(from, cols, to + r * stride);
      }
    }
    if (split) return;
    interpreter.begin(task.area);
    interpreter.run(port, {}, true);
  }

  void count_scales(const GemmTask& task, Port& port) const {
    const std::vector<ScaleTensor> beside = mainloop_.weight.beside(mainloop_.N, mainloop_.K);
    for (std::size_t i = 0; i < beside.size(); ++i)
      port.count_load(mainloop_.beside_b[i], mainloop_.weight
                                                 .beside(beside[i].kind, task.b.begin, task.b.end,
                                                         task.b.k_begin, task.b.k_end)
                                                 .elements());
    if (!mainloop_.a_scale) return;
    const ScaleRange of_rows = mainloop_.activation.beside(
        ScaleKind::scale, task.a.begin, task.a.end, task.a.k_begin, task.a.k_end);
    port.count_load(*mainloop_.a_scale, of_rows.elements());
  }

  // Where the tile's partial result of one part of k begins in the workspace.
  float* part(const GemmTask& task, std::int64_t split) {
    const std::int64_t matrix = split * task.area.batch + task.area.batch_index;
    return workspace_.data() + (matrix * mainloop_.M + task.area.row_begin) * mainloop_.N +
           task.area.columns.begin;
  }

  // The second launch: sums the parts in their order and runs the epilogue.
  void join_splits() {
    std::vector<const GemmTask*> tiles;
    for (const GemmTask& task : tasks_)
      if (task.split == 0) tiles.push_back(&task);
    const Loop loop{std::ssize(tiles), static_cast<double>(std::ssize(workspace_))};
    parallel_for(context_.workers, loop, [&](std::int64_t i, int thread) {
      const GemmTask& task = *tiles[static_cast<std::size_t>(i)];
      TileInterpreter& interpreter = interpreters_[static_cast<std::size_t>(thread)];
      Matrix& result = interpreter.value(0);
      result.resize(task.area.rows(), task.area.columns.count());
      for (std::int64_t r = 0; r < result.rows; ++r) {
        for (std::int64_t c = 0; c < result.cols; ++c) {
          float sum = 0;
          for (std::int64_t s = 0; s < context_.schedule.splits; ++s)
            sum += part(task, s)[r * mainloop_.N + c];
          result.row(r)[c] = sum;
        }
      }
      interpreter.begin(task.area);
      interpreter.run(context_.port(thread), {}, true);
    });
  }

  const RunContext& context_;
  const GemmMainloop& mainloop_;
  ValueAnalysis layout_;
  PartialSums partials_;
  PanelCache panels_;
  std::vector<TileInterpreter> interpreters_;  // one a thread, as are the results
  std::vector<Matrix> results_;
  std::vector<GemmTask> tasks_;
  std::vector<Product> products_;
  std::vector<float> workspace_;  // fp32 [splits, batch / summed, M, N]
};

}  // namespace

void run_gemm(const RunContext& context, const GemmMainloop& mainloop) {
  GemmRun(context, mainloop).run();
}

}  // namespace fuseline::executor
