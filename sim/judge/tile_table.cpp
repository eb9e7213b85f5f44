#include "sim/judge/tile_table.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/csv.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/gemm_time.h"

namespace fuseline {
namespace {

// "turned tile 96 x 128, cluster 2, 1 parts".
struct TileName {
  bool turned = false;
  std::int64_t m = 0, n = 0, cluster = 0, parts = 0;
  friend auto operator<=>(const TileName&, const TileName&) = default;
  [[nodiscard]] bool is_of(const GemmTile& tile) const {
    return tile.turned() == turned && tile.m == m && tile.n == n && tile.cluster() == cluster;
  }
};

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take(std::string_view& text, std::int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<TileName> parse_name(std::string_view text) {
  TileName name;
  name.turned = take(text, "turned ");
  if (take(text, "tile ") && take(text, name.m) && take(text, " x ") && take(text, name.n) &&
      take(text, ", cluster ") && take(text, name.cluster) && take(text, ", ") &&
      take(text, name.parts) && take(text, " parts") && text.empty())
    return name;
  return std::nullopt;
}

}  // namespace

GemmProblem own_plain_gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem problem = plain_gemm(m, n, k, 1, 2, 3, 4);
  problem.library = false;
  problem.needs.only_stores = true;
  return problem;
}

std::vector<MeasuredTileTime> read_tile_table(const std::string& path, const Gpu& gpu) {
  const CsvTable table(path);
  std::vector<MeasuredTileTime> times;
  // Rows of one size and name, of which there may be as many as tiles have that name.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, TileName>, std::vector<std::size_t>>
      alike;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.text(row, "dtype") != "bf16") continue;
    const std::string& text = table.text(row, "tile");
    const std::optional<TileName> name = parse_name(text);
    if (!name)
      table.fail(row, "tile", "is not the name of a tile",
                 "such as tile 128 x 256, cluster 2, 1 parts");
    MeasuredTileTime time{.m = table.whole(row, "m", 1),
                          .n = table.whole(row, "n", 1),
                          .k = table.whole(row, "k", 1),
                          .name = text,
                          .tile = {},
                          .time = Seconds(table.positive(row, "us") * 1e-6),
                          .estimate = Seconds(table.positive(row, "predicted_us") * 1e-6),
                          .library = Seconds(table.positive(row, "library_us") * 1e-6),
                          .in_turns = table.text(row, "final") == "yes"};
    std::vector<std::size_t>& same = alike[{time.m, time.n, time.k, *name}];
    same.push_back(times.size());
    const auto& own = gpu.architecture->tiles.own;
    if (std::ranges::count_if(own, [&](const GemmTile& tile) { return name->is_of(tile); }) <
        std::ssize(same))
      table.fail(row, "tile", "is of no tile in the menu of " + gpu.architecture->name,
                 "a tile of its section tiles.own, once for each size");
    times.push_back(std::move(time));
  }
  for (auto& of_one_name : alike) {
    const auto& [m, n, k, name] = of_one_name.first;
    std::vector<std::size_t>& rows = of_one_name.second;
    const GemmProblem problem = own_plain_gemm(m, n, k);
    struct Candidate {
      GemmTile tile;
      Seconds estimate;
    };
    std::vector<Candidate> candidates;
    for (GemmTile tile : gpu.architecture->tiles.own) {
      if (!name.is_of(tile)) continue;
      tile.tail_parts = name.parts;
      candidates.push_back({tile, quick_gemm_time(problem, tile, gpu)});
    }
    std::ranges::sort(candidates, {}, &Candidate::estimate);
    std::ranges::sort(rows, {}, [&](std::size_t i) { return times[i].estimate; });
    if (rows.size() == 1) {
      const auto nearest = std::ranges::min_element(candidates, {}, [&](const Candidate& c) {
        const double ratio = c.estimate / times[rows.front()].estimate;
        return std::max(ratio, 1 / ratio);
      });
      times[rows.front()].tile = nearest->tile;
      continue;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) times[rows[i]].tile = candidates[i].tile;
  }
  return times;
}

}  // namespace fuseline
