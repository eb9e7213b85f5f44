#include "sim/kernels/row_instructions.h"

#include <algorithm>

#include "model/primitives/functions.h"
#include "model/primitives/primitives.h"
#include "model/primitives/values.h"
#include "sim/kernels/row_threads.h"

namespace fuseline {
namespace {

// From the size of machine code for sm_90a (CUDA 13.0), 16 bytes an instruction. An element: the
// difference between code for 32 and for 64 elements of a thread, of programs that differ in one
// step. A thread: what is left of the code.
constexpr double kTileLoad = 6.75;    // a vector of 8 with its guard and address, and conversions
constexpr double kVectorLoad = 2.25;  // the same of numbers per column
constexpr double kTileStore = 7.5;
constexpr double kThread = 100;    // start, end, and one reduction's way through the row's threads
constexpr double kReduction = 20;  // each further one's way

bool loads(const Primitive& p) {
  return std::ranges::any_of(p.accesses(), [](const Access& a) { return !a.store; });
}
bool stores_tile(const Primitive& p) {
  return std::ranges::any_of(p.accesses(), [](const Access& a) {
    return a.store && a.reach != Reach::row_numbers && a.reach != Reach::col_numbers &&
           a.reach != Reach::partials;
  });
}

bool sums(const Primitive& p, Value v) {
  if (const auto* map = p.as<Map>(); map != nullptr)
    return map->fn == MapFn(maps::add) || map->fn == MapFn(maps::sub);
  const auto* reduce = p.as<RowReduce>();
  return reduce != nullptr && reduce->in == v &&
         (reduce->fn == ReduceFn(reductions::sum) || reduce->fn == ReduceFn(reductions::mean));
}

// Whether `made`, a product, is part of the one sum that uses it.
bool joins_a_sum(const Program& program, const Map& product) {
  if (product.fn != MapFn(maps::mul)) return false;
  std::int64_t uses = 0, sum = 0;
  for (const Primitive& p : program.body) {
    const std::vector<Value> used = p.uses();
    const auto times = std::ranges::count(used, product.out);
    uses += times;
    if (times == 1 && sums(p, product.out)) ++sum;
  }
  return uses == 1 && sum == 1;
}

}  // namespace

bool leaves_only_sums(const Program& program) {
  return std::ranges::none_of(program.body, stores_tile);
}

double row_instructions(const Program& program, std::int64_t rows, std::int64_t cols) {
  const ValueAnalysis values = analyse(program);
  double element = 0, thread = kThread - kReduction;
  for (const Primitive& p : program.body) {
    if (stores_tile(p)) element += kTileStore;
    if (p.demands().whole_rows) {
      element += 1;
      thread += kReduction;
      continue;
    }
    if (p.defines().empty()) continue;
    const Form form = values.form(p.defines().back());
    if (form == Form::per_row) continue;
    if (loads(p)) {
      element += form == Form::per_col ? kVectorLoad : kTileLoad;
      continue;
    }
    const auto* map = p.as<Map>();
    if (map == nullptr || !joins_a_sum(program, *map)) element += p.instructions();
  }
  const RowThreads shared = row_threads(program, rows, cols, false);
  return element + thread / static_cast<double>(kUnitCols * shared.units);
}

}  // namespace fuseline
