#include "cuda/run/measure_gemm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fuseline::cuda {

// A rounding changes a number by up to 2^-(bits + 1) of itself, by 1/sqrt(3) of that in the mean
// square.
double rounding_tolerance(Dtype type) {
  const int bits = type == Dtype::fp16 ? 11 : 8;
  return 2 * std::ldexp(1, -bits - 1) / std::sqrt(3.0);
}

const MeasuredTile& MeasuredGemm::best() const {
  const auto slower = [](const MeasuredTile& a, const MeasuredTile& b) {
    return a.final == b.final ? a.time < b.time : a.final;
  };
  return *std::ranges::min_element(tiles, slower);
}

bool MeasuredGemm::right() const { return error <= rounding_tolerance(gemm.dtype); }
bool MeasuredGemm::right(const MeasuredVariant& v) const {
  return v.error <= rounding_tolerance(gemm.dtype);
}

}  // namespace fuseline::cuda

#if FUSELINE_HAS_CUDA

#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cuda/run/gemm_launch.h"
#include "cuda/run/instruments.h"
#include "cuda/run/tile_kernels.h"
#include "cuda/run/timing.h"
#include "sim/executor/inputs.h"

namespace fuseline::cuda {

namespace {

constexpr int kFinalists = 5;      // of our tiles, beside the chosen one
constexpr int kVariedTiles = 2;    // of those, beside the chosen one, where variants are timed
constexpr int kLooks = 3;          // replays of the first look
constexpr int kReplaysOfTurn = 3;  // of a round
constexpr std::chrono::milliseconds kTurnRest{20};
constexpr double kTurnSeconds = 5e-4;           // that a replay should last
constexpr std::int64_t kProductCapacities = 4;  // that pass between two uses of an operand
constexpr int kMostProductCopies = 16;
constexpr int kMostProductLaunches = 128;  // of a replay
constexpr std::int64_t kCheckedRows = 5;

// The library, or a tile of ours.
struct Contender {
  std::string name{};
  std::optional<TileKernel> kernel{};  // none: the library
  std::string variant{};               // of the kernel; empty: as it is shipped
  std::size_t shipped = 0;             // the same tile without it
  std::vector<Launches> launches{};    // by copy
  std::unique_ptr<LaunchGraph> graph{};
  std::vector<Seconds> times{};
  bool final = false;

  void launch(Stream& stream, std::size_t copy) {
    for (const auto& one : launches[copy % launches.size()]) one->launch(stream);
  }
  void put_away() {
    graph.reset();
    launches.clear();
  }
};

// Rows of y in fp64, of operands as they are stored.
class CheckedRows {
 public:
  CheckedRows(const executor::Storage& x, const executor::Storage& w,
              const executor::Workers& workers)
      : n_(w.rows()) {
    const std::int64_t count = std::min(kCheckedRows, x.rows());
    for (std::int64_t i = 0; i < count; ++i)
      rows_.push_back(count == 1 ? 0 : i * (x.rows() - 1) / (count - 1));
    const auto k = static_cast<std::size_t>(x.cols());
    std::vector<float> of_x(rows_.size() * k);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      x.read(rows_[i], 0, x.cols(), of_x.data() + i * k);
    want_.resize(rows_.size() * static_cast<std::size_t>(n_));
    executor::parallel_for(workers, n_, [&](std::int64_t column, int) {
      std::vector<float> of_w(k);
      w.read(column, 0, w.cols(), of_w.data());
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        double sum = 0;
        for (std::size_t at = 0; at < k; ++at)
          sum += static_cast<double>(of_x[i * k + at]) * static_cast<double>(of_w[at]);
        want_[i * static_cast<std::size_t>(n_) + static_cast<std::size_t>(column)] = sum;
      }
    });
  }

  // Relative L2 error; infinite where an element is not finite.
  [[nodiscard]] double error(const executor::Storage& y) const {
    double difference = 0, whole = 0;
    std::vector<float> row(static_cast<std::size_t>(n_));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      y.read(rows_[i], 0, n_, row.data());
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (!std::isfinite(row[c])) return std::numeric_limits<double>::infinity();
        const double want = want_[i * row.size() + c];
        difference += (static_cast<double>(row[c]) - want) * (static_cast<double>(row[c]) - want);
        whole += want * want;
      }
    }
    return std::sqrt(difference / whole);
  }

 private:
  std::int64_t n_;
  std::vector<std::int64_t> rows_{};
  std::vector<double> want_{};
};

TensorId named(const Plan& plan, const std::string& name) {
  for (std::size_t i = 0; i < plan.graph.tensors().size(); ++i)
    if (plan.graph.tensors()[i].name == name) return TensorId{static_cast<std::int32_t>(i)};
  throw InternalError("a plan of one product without " + name);
}

// Operands of the product, several times where they are small.
class ProductCopies {
 public:
  ProductCopies(const Device& device, const Plan& plan, int copies) {
    const Bytes need = gpu_bytes(plan) + gpu_bytes_per_layer(plan) * (copies - 1);
    if (const Bytes free = device.free_memory(); need > free)
      throw MissingError(fmt::format("out of GPU memory: the product needs {} bytes, {} are free",
                                     need.value(), free.value()));
    for (int i = 0; i < copies; ++i)
      copies_.push_back(i == 0 ? std::make_unique<GpuTensors>(device, plan)
                               : std::make_unique<GpuTensors>(device, plan, *copies_.front()));
  }
  void give(const Plan& plan, const executor::Inputs& inputs) {
    for (const auto& copy : copies_)
      for (const auto& [name, values] : inputs)
        if (name != "y") copy->upload(named(plan, name), *values);
  }
  [[nodiscard]] std::size_t count() const { return copies_.size(); }
  [[nodiscard]] GpuTensors& operator[](std::size_t i) { return *copies_[i]; }

 private:
  std::vector<std::unique_ptr<GpuTensors>> copies_{};
};

int copies_of(const Plan& plan, Bytes l2) {
  const std::int64_t each = std::max<std::int64_t>(gpu_bytes_per_layer(plan).value(), 1);
  return static_cast<int>(std::clamp<std::int64_t>(
      (kProductCapacities * l2.value() + each - 1) / each, 1, kMostProductCopies));
}

// Without the program's name in front.
std::string tile_name(const TileKernel& kernel) {
  const std::size_t comma = kernel.name.find(", ");
  return kernel.name.substr(comma + 2);
}

}  // namespace

struct GemmMeasurer::State {
  State(const Gpu& gpu, const GemmMeasureOptions& o)
      : described(gpu),
        options(o),
        store(device, CubinCache::standard()),
        stream(device.stream()),
        instruments(device, {.library = true}) {
    if (instruments.library() == nullptr)
      throw MissingError(
          fmt::format("the vendor's library is what a product is measured against: "
                      "{}",
                      fmt::join(instruments.notes(), "; ")));
  }

  // Launches for every copy, and the graph of a replay. Parts of tiles have memory of their own in
  // every launch, so only those are ready that are to be timed.
  void get_ready(Contender& c, const Plan& plan, ProductCopies& copies, std::size_t of_replay) {
    const Program& program = plan.kernels.front().phases.front();
    for (std::size_t copy = 0; copy < copies.count(); ++copy) {
      const LaunchContext context{device, store, plan, copies[copy]};
      c.launches.push_back(c.kernel
                               ? prepare_gemm(context, c.kernel->source, program)
                               : prepare_library_gemm(context, *instruments.library(), program));
      if (c.launches.back().empty())
        throw MissingError("the vendor's library has no algorithm for this product");
      c.launch(stream, copy);
    }
    if (!c.kernel) c.name = c.launches.front().front()->code();
    stream.synchronize(c.name);
    c.graph = std::make_unique<LaunchGraph>(capture(stream, [&](Stream& s) {
      for (std::size_t i = 0; i < of_replay; ++i) c.launch(s, i);
    }));
  }

  // The library first, then our tiles, the chosen one ahead of the others.
  std::vector<Contender> contenders(const Plan& plan) {
    const Program& program = plan.kernels.front().phases.front();
    std::vector<Contender> all(1);
    std::vector<Source> sources;
    for (TileKernel& k : tile_kernels(plan, program, described, store.target())) {
      sources.push_back(k.source.source);
      std::string name = tile_name(k);
      all.push_back({.name = std::move(name), .kernel = std::move(k)});
    }
    store.compile_ahead(sources, options.workers.threads);
    return all;
  }

  // Variants of the tiles that are left, behind all.
  void add_variants(std::vector<Contender>& all, const std::vector<std::size_t>& tiles,
                    const Plan& plan) {
    const Program& program = plan.kernels.front().phases.front();
    std::vector<Source> sources;
    for (const std::size_t i : tiles)
      for (const GemmVariant& v : options.variants) {
        const GemmTile tile = all[i].kernel->tile;
        auto source =
            gemm_variant_source(plan.graph, program, tile, store.target(), plan.policy, v);
        if (!source) continue;
        sources.push_back(source->source);
        std::string name = all[i].name + ", " + v.name;
        TileKernel kernel{.tile = tile,
                          .source = *std::move(source),
                          .name = name,
                          .predicted = all[i].kernel->predicted};
        all.push_back({.name = std::move(name),
                       .kernel = std::move(kernel),
                       .variant = v.name,
                       .shipped = i});
      }
    store.compile_ahead(sources, options.workers.threads);
  }

  void look_at(Contender& c, int replays) {
    if (options.workers.stop != nullptr && *options.workers.stop) throw executor::Cancelled("");
    const auto times = replay_times(device, stream, *c.graph, 1, replays, "timing " + c.name);
    c.times.insert(c.times.end(), times.begin(), times.end());
  }

  double checked(Contender& c, ProductCopies& copies, TensorId y, const CheckedRows& rows) {
    copies[0].poison(y);
    c.launch(stream, 0);
    stream.synchronize(c.name);
    return rows.error(copies[0].download(y));
  }

  const Gpu described;
  const GemmMeasureOptions options;
  Device device;
  KernelStore store;
  Stream stream;
  GpuMonitor monitor;
  Instruments instruments;
};

GemmMeasurer::GemmMeasurer(const Gpu& described, const GemmMeasureOptions& options)
    : state_(std::make_unique<State>(described, options)) {}
GemmMeasurer::~GemmMeasurer() = default;
GemmMeasurer::GemmMeasurer(GemmMeasurer&&) noexcept = default;
GemmMeasurer& GemmMeasurer::operator=(GemmMeasurer&&) noexcept = default;

std::string GemmMeasurer::device() const {
  const DeviceInfo& info = state_->device.info();
  return fmt::format("{}, {} SMs, {} MiB L2", info.name, info.multiprocessors,
                     info.l2.value() >> 20);
}
std::string GemmMeasurer::driver() const { return state_->monitor.driver_version(); }
std::string GemmMeasurer::libraries() const {
  const ToolkitVersion toolkit = Compiler().version();
  return fmt::format("CUDA {}.{}, {}", toolkit.major, toolkit.minor, state_->instruments.names());
}

MeasuredGemm GemmMeasurer::measure(LibraryGemm gemm) {
  State& s = *state_;
  gemm.operands = Operands::cold;
  gemm.run = Run::burst;
  const Plan plan = library_gemm_plan(gemm);
  Plan own = plan;
  own.kernels.front().implementation = Implementation::epilogue_gemm;
  MeasuredGemm result;
  result.gemm = gemm;
  result.library_predicted = estimate_library_gemm(gemm, s.described).time;
  result.chosen_predicted = simulate(own, s.described, Fidelity::hierarchy, {.repeats = 0}).time;
  result.copies = copies_of(plan, s.device.info().l2);

  const executor::Inputs inputs =
      executor::random_storage(plan.graph, s.options.seed, s.options.workers);
  const CheckedRows rows(*inputs.at("x"), *inputs.at("w"), s.options.workers);
  ProductCopies copies(s.device, plan, result.copies);
  copies.give(plan, inputs);
  const TensorId y = named(plan, "y");
  std::vector<Contender> all = s.contenders(plan);
  const int launches =
      std::clamp(static_cast<int>(std::ceil(kTurnSeconds / result.library_predicted.value())), 1,
                 kMostProductLaunches);
  const auto of_replay = static_cast<std::size_t>(std::max(launches, result.copies));
  for (Contender& c : all) {
    s.get_ready(c, plan, copies, of_replay);
    s.look_at(c, kLooks);
    c.put_away();
  }
  result.library = all[0].name;

  // The chosen tile, the fastest of the first look, and the library.
  std::vector<std::size_t> order;
  for (std::size_t i = 1; i < all.size(); ++i) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return spread_of(all[i].times).median; });
  order.resize(std::min<std::size_t>(order.size(), kFinalists));
  order.insert(order.begin(), 0);
  if (std::ranges::find(order, std::size_t{1}) == order.end()) order.push_back(1);
  const std::size_t shipped = all.size();
  std::vector<std::size_t> varied;
  for (std::size_t at = 1; at < order.size(); ++at)
    if (order[at] == 1 || at <= kVariedTiles) varied.push_back(order[at]);
  s.add_variants(all, varied, plan);
  for (std::size_t i = shipped; i < all.size(); ++i) order.push_back(i);
  std::vector<double> errors(all.size(), 0.0);
  for (const std::size_t i : order) {
    all[i].final = true;
    all[i].times.clear();
    s.get_ready(all[i], plan, copies, of_replay);
    errors[i] = s.checked(all[i], copies, y, rows);
    if (i < shipped) result.error = std::max(result.error, errors[i]);
  }
  s.monitor.start();
  for (int round = 0; round < s.options.rounds; ++round) {
    for (const std::size_t i : order) {
      std::this_thread::sleep_for(kTurnRest);
      s.look_at(all[i], kReplaysOfTurn);
    }
    std::ranges::reverse(order);
  }
  result.state = s.monitor.stop();

  const auto time_of = [&](const Contender& c) {
    return spread_of(c.times).median * (1.0 / static_cast<double>(of_replay));
  };
  result.library_time = time_of(all[0]);
  for (std::size_t i = shipped; i < all.size(); ++i)
    result.variants.push_back({.variant = all[i].variant,
                               .tile = all[all[i].shipped].name,
                               .time = time_of(all[i]),
                               .shipped_time = time_of(all[all[i].shipped]),
                               .error = errors[i]});
  for (std::size_t i = 1; i < shipped; ++i)
    result.tiles.push_back({.tile = all[i].kernel->tile,
                            .name = all[i].name,
                            .time = time_of(all[i]),
                            .predicted = all[i].kernel->predicted,
                            .final = all[i].final});
  return result;
}

}  // namespace fuseline::cuda

#else

#include "cuda/run/known_gpu.h"

namespace fuseline::cuda {

struct GemmMeasurer::State {};
GemmMeasurer::GemmMeasurer(const Gpu&, const GemmMeasureOptions&) { (void)device_here(); }
GemmMeasurer::~GemmMeasurer() = default;
GemmMeasurer::GemmMeasurer(GemmMeasurer&&) noexcept = default;
GemmMeasurer& GemmMeasurer::operator=(GemmMeasurer&&) noexcept = default;
std::string GemmMeasurer::device() const { return ""; }
std::string GemmMeasurer::driver() const { return ""; }
std::string GemmMeasurer::libraries() const { return ""; }
MeasuredGemm GemmMeasurer::measure(LibraryGemm) { return {}; }

}  // namespace fuseline::cuda

#endif
