#include "sim/programs/spot_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/primitives/basics.h"
#include "model/programs/meaning.h"
#include "sim/executor/tensor_error.h"
#include "sim/programs/some_rows.h"

namespace fuseline {

namespace {

// Of one program: what fp64 does in about two seconds on one core. Whole blocks of rows may take
// eight times as long, because no smaller sample of them exists.
constexpr std::int64_t kMostOfRows = std::int64_t{1} << 30, kMostOfBlocks = std::int64_t{1} << 33;
// Elements of a program's index space that are looked at; a check has a handful of steps for each.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
constexpr std::int64_t kFewestSampled = 2;

std::int64_t columns_of(const Program& p) {
  if (const auto* gemm = std::get_if<GemmMainloop>(&p.mainloop)) return gemm->N;
  if (const auto* stream = std::get_if<StreamMainloop>(&p.mainloop)) return stream->cols;
  if (const auto* row = std::get_if<RowMainloop>(&p.mainloop)) return row->cols;
  return 1;
}

// The rows that are looked at, in order; none: there are too few.
std::vector<std::int64_t> sample_of(const Program& p, std::uint64_t seed) {
  const std::int64_t all = rows_of(p), products = products_of(p) / std::max<std::int64_t>(1, all);
  const std::int64_t by_elements =
      std::max(kFewestSampled, kMostElements / std::max<std::int64_t>(1, columns_of(p)));
  if (!sums_down_columns(p)) {
    const std::int64_t count =
        std::min({all, by_elements, products == 0 ? all : kMostOfRows / products});
    if (count < std::min(all, kFewestSampled)) return {};
    return sample_of_rows(all, count, seed);
  }
  if (std::min(all, partial_tile) * products > kMostOfBlocks) return {};
  const std::int64_t by_products = products == 0 ? by_elements : kMostOfRows / products;
  const std::int64_t blocks = std::min(by_elements, by_products) / partial_tile;
  return sample_of_blocks(all, std::clamp<std::int64_t>(blocks, 1, ceil_div(all, partial_tile)),
                          seed);
}

class Spots {
 public:
  Spots(const Plan& plan, const executor::Inputs& inputs,
        const std::function<const executor::Storage&(TensorId)>& stored, std::uint64_t seed,
        int threads)
      : plan_(plan), inputs_(inputs), stored_(stored), seed_(seed), threads_(threads) {}

  CheckedResults run() {
    std::vector<Operand> made;
    for (const Kernel& k : plan_.kernels)
      for (const Program& p : k.phases) {
        for (const Operand& o : stores(p)) {
          if (std::ranges::any_of(made, [&](const Operand& m) { return overlap(m, o); }))
            return refused(p,
                           "it stores where another program has stored before, so that nothing "
                           "tells what each of them stored");
          made.push_back(o);
        }
        if (const std::string why = program(p); !why.empty()) return refused(p, why);
      }
    return std::move(out_);
  }

 private:
  static CheckedResults refused(const Program& p, const std::string& why) {
    CheckedResults out;
    out.why_not = fmt::format("program {}: {}: check smaller sizes with --size", p.name, why);
    return out;
  }

  [[nodiscard]] const executor::Storage& contents(std::size_t tensor) const {
    const auto given = inputs_.find(plan_.graph.tensors()[tensor].name);
    return given != inputs_.end() ? *given->second : stored_(TensorId{static_cast<int>(tensor)});
  }

  // Empty: it was looked at.
  std::string program(const Program& p) {
    const std::int64_t all = rows_of(p);
    if (all == 0) return "its rows need other rows";
    const std::vector<std::int64_t> rows = sample_of(p, seed_);
    if (rows.empty())
      return fmt::format(
          "{} multiplications are too many for fp64, and its sums down columns need "
          "whole blocks of rows",
          products_of(p));
    const auto some = program_of_rows(plan_, p, static_cast<std::int64_t>(rows.size()));
    if (!some) return "its rows need other rows";
    const auto part = [&](std::size_t tensor) {
      return take_part(contents(tensor), some->cut[tensor], rows, all);
    };
    const Program& cut = some->plan.kernels.front().phases.front();
    ExactTensors exact(plan_.graph.tensors().size());
    const auto fill = [&](const Operand& o) {
      // Also what it stores: of a tensor that it stores a part of, the rest is as it is.
      const auto i = static_cast<std::size_t>(o.tensor.index);
      if (!exact[i].empty()) return;
      exact[i] = some->cut[i] == Cut::whole ? executor::to_doubles(contents(i))
                                            : executor::to_doubles(part(i));
    };
    for (const Operand& o : loads(cut)) fill(o);
    for (const Operand& o : stores(cut)) fill(o);
    try {
      run_meaning(some->plan.graph, cut, exact, nullptr, threads_);
    } catch (const MissingError& error) {
      return error.what();
    }
    if (std::string why = why_not_finite(some->plan.graph, cut, exact); !why.empty()) return why;
    for (const AllowedError& allowed : allowed_errors(some->plan)) {
      const auto i = static_cast<std::size_t>(allowed.stored.tensor.index);
      const auto compare = [&](const executor::Storage& got) {
        return executor::compare(got, exact[i], allowed.stored.col_begin, allowed.stored.cols);
      };
      const executor::TensorError error =
          some->cut[i] == Cut::whole ? compare(contents(i)) : compare(part(i));
      const bool nothing = error.nothing_wanted && error.largest == 0;
      out_.tensors.push_back({.name = plan_.graph.tensor(allowed.stored.tensor).name,
                              .program = p.name,
                              .error = nothing ? 0 : error.relative_l2,
                              .allowed = allowed.error,
                              .rows = static_cast<std::int64_t>(rows.size()),
                              .of_rows = all});
    }
    return {};
  }

  const Plan& plan_;
  const executor::Inputs& inputs_;
  const std::function<const executor::Storage&(TensorId)>& stored_;
  std::uint64_t seed_;
  int threads_;
  CheckedResults out_{.tensors = {}, .rows = 0, .alone = true, .why_not = {}};
};

}  // namespace

CheckedResults spot_check(const Plan& plan, const executor::Inputs& inputs,
                          const std::function<const executor::Storage&(TensorId)>& stored,
                          std::uint64_t seed, int threads) {
  return Spots(plan, inputs, stored, seed, threads).run();
}

}  // namespace fuseline
