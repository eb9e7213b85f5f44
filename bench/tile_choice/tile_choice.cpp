// How well the quick estimate chooses among our own tiles, on a table of measured tiles:
//   build/release/bench/tile_choice cuda/bench/results/tiles-h200.csv h200
// Prints for every size what the choice loses and how the estimates agree with the times, and the
// agreement by class of tile. Constants are fitted on the sizes with an even number, in the order
// of the table, and checked on those with an odd one; both halves are printed.
//   ... --rows    also every row, as CSV
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "sim/gpu/gpu.h"
#include "sim/judge/tile_table.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"

namespace {

using namespace fuseline;

constexpr double kNear = 1.3;  // times of the fastest tile: among these the choice is made

struct Row {
  MeasuredTileTime of;
  Seconds estimate;
  int size = 0;  // its number in the table
  bool near = false;
};

double error_of(const Row& row) { return row.estimate / row.of.time - 1; }

struct Agreement {
  double mean = 0, bias = 0;  // of the errors, their sizes and themselves
};

Agreement agreement(const std::vector<const Row*>& rows) {
  Agreement a;
  for (const Row* row : rows) {
    a.mean += std::abs(error_of(*row)) / static_cast<double>(rows.size());
    a.bias += error_of(*row) / static_cast<double>(rows.size());
  }
  return a;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> rank(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<double>(i);
  return rank;
}

// Spearman's, of estimates and times.
double rank_correlation(const std::vector<const Row*>& rows) {
  std::vector<double> estimates, times;
  for (const Row* row : rows) {
    estimates.push_back(row->estimate.value());
    times.push_back(row->of.time.value());
  }
  const std::vector<double> a = ranks(estimates), b = ranks(times);
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  const auto n = static_cast<double>(rows.size());
  return n < 2 ? 1 : 1 - 6 * squares / (n * (n * n - 1));
}

// The row of the tile that is chosen. With another number of parts than was measured: that tile
// with the nearest number. Nothing of it was measured: the row with the least estimate.
const Row& chosen_of(const std::vector<const Row*>& rows, const Gpu& gpu) {
  const MeasuredTileTime& any = rows.front()->of;
  const GemmTile tile = choose_tile(own_plain_gemm(any.m, any.n, any.k), gpu);
  const Row* found = nullptr;
  for (const Row* row : rows) {
    GemmTile alike = row->of.tile;
    alike.tail_parts = tile.tail_parts;
    const auto away = [&](const Row* r) {
      return std::abs(r->of.tile.tail_parts - tile.tail_parts);
    };
    if (alike == tile && (found == nullptr || away(row) < away(found))) found = row;
  }
  return found != nullptr
             ? *found
             : **std::ranges::min_element(rows, {}, [](const Row* r) { return r->estimate; });
}

void print_classes(const std::vector<Row>& rows, const char* title,
                   const std::function<std::string(const Row&)>& name) {
  std::map<std::string, std::vector<const Row*>> classes;
  for (const Row& row : rows)
    if (row.near) classes[name(row)].push_back(&row);
  fmt::print("\n{:<28} {:>6} {:>9} {:>8}\n", title, "rows", "|error|", "bias");
  for (const auto& [what, members] : classes) {
    const Agreement a = agreement(members);
    fmt::print("  {:<26} {:>6} {:>7.1f} % {:>+6.1f} %\n", what, members.size(), 100 * a.mean,
               100 * a.bias);
  }
}

void print_sizes(const std::vector<Row>& rows, const Gpu& gpu) {
  std::map<int, std::vector<const Row*>> sizes;
  for (const Row& row : rows) sizes[row.size].push_back(&row);
  struct Half {
    double log_sum = 0, worst = 1;
    int count = 0;
    std::vector<const Row*> near{};
  };
  Half halves[2];
  fmt::print("{:<22} {:>6} {:>12} {:>6} {:>9} {:>8}  {}\n", "size", "tiles", "best/chosen", "ranks",
             "|error|", "bias", "chosen, and the best");
  for (const auto& [number, members] : sizes) {
    const Row& best =
        **std::ranges::min_element(members, {}, [](const Row* r) { return r->of.time; });
    const Row& chosen = chosen_of(members, gpu);
    std::vector<const Row*> near;
    std::ranges::copy_if(members, std::back_inserter(near), [](const Row* r) { return r->near; });
    const Agreement a = agreement(near);
    const double ratio = best.of.time / chosen.of.time;
    Half& half = halves[number % 2];
    half.log_sum += std::log(ratio);
    half.worst = std::min(half.worst, ratio);
    ++half.count;
    half.near.insert(half.near.end(), near.begin(), near.end());
    fmt::print("{:<22} {:>6} {:>12.3f} {:>6.2f} {:>7.1f} % {:>+6.1f} %  {}{}{}\n",
               fmt::format("{}x{}x{}", best.of.m, best.of.n, best.of.k), members.size(), ratio,
               rank_correlation(members), 100 * a.mean, 100 * a.bias, chosen.of.name,
               &best == &chosen ? "" : "; ", &best == &chosen ? "" : best.of.name);
  }
  for (const int i : {0, 1}) {
    if (halves[i].count == 0) continue;
    const Agreement a = agreement(halves[i].near);
    fmt::print(
        "{}: {} sizes, best over chosen {:.4f} (worst {:.3f}); tiles within {:.1f} of the best: "
        "|error| {:.2f} %, bias {:+.2f} %\n",
        i == 0 ? "even half, fitted" : "odd half, checked", halves[i].count,
        std::exp(halves[i].log_sum / halves[i].count), halves[i].worst, kNear, 100 * a.mean,
        100 * a.bias);
  }
}

void print_rows(const std::vector<Row>& rows) {
  fmt::print(
      "m,n,k,tile_m,tile_n,stages,cluster_m,cluster_n,cluster_k,parts,us,then_us,estimate_us,"
      "library_us,in_turns\n");
  for (const Row& row : rows) {
    const GemmTile& t = row.of.tile;
    fmt::print("{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{}\n", row.of.m, row.of.n,
               row.of.k, t.m, t.n, t.stages, t.cluster_m, t.cluster_n, t.cluster_k, t.tail_parts,
               row.of.time.value() * 1e6, row.of.estimate.value() * 1e6, row.estimate.value() * 1e6,
               row.of.library.value() * 1e6, row.of.in_turns ? 1 : 0);
  }
}

void report(const std::string& path, const Gpu& gpu, bool with_rows) {
  std::vector<Row> rows;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int> numbers;
  std::map<int, Seconds> fastest;
  for (MeasuredTileTime& time : read_tile_table(path, gpu)) {
    const int size = numbers.try_emplace({time.m, time.n, time.k}, static_cast<int>(numbers.size()))
                         .first->second;
    const Seconds estimate =
        quick_gemm_time(own_plain_gemm(time.m, time.n, time.k), time.tile, gpu);
    const auto best = fastest.try_emplace(size, time.time).first;
    best->second = std::min(best->second, time.time);
    rows.push_back({std::move(time), estimate, size});
  }
  for (Row& row : rows) row.near = row.of.time <= fastest.at(row.size) * kNear;
  if (with_rows) return print_rows(rows);
  print_sizes(rows, gpu);
  print_classes(rows, "cluster", [](const Row& r) {
    const GemmTile& t = r.of.tile;
    return fmt::format("{} {}{}", t.turned() ? "turned" : "upright", t.cluster(),
                       t.cluster_k > 1 ? " along K" : "");
  });
  print_classes(rows, "tile", [](const Row& r) {
    const GemmTile& t = r.of.tile;
    return fmt::format("{} {:>3} x {:>3}", t.turned() ? "turned" : "upright", t.m, t.n);
  });
  print_classes(rows, "K, at least", [](const Row& r) {
    std::int64_t power = 512;
    while (2 * power <= r.of.k) power *= 2;
    return fmt::format("{:>6}", power);
  });
  print_classes(rows, "parts",
                [](const Row& r) { return fmt::format("{:>2}", r.of.tile.tail_parts); });
  print_classes(rows, "stages in the menu",
                [](const Row& r) { return fmt::format("{:>2}", r.of.tile.stages); });
}

}  // namespace

int main(int argc, char** argv) {
  const bool with_rows = argc == 4 && std::strcmp(argv[3], "--rows") == 0;
  if (argc != 3 && !with_rows) {
    std::fputs("usage: tile_choice TABLE.csv GPU [--rows]\n", stderr);
    return 2;
  }
  try {
    report(argv[1], load_gpu(argv[2]), with_rows);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
