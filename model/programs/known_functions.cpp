#include "model/programs/known_functions.h"

#include <vector>

#include "model/primitives/functions.h"

namespace fuseline {

namespace {

template <class Fn, class All>
std::vector<Fn> handles(const All& all) {
  std::vector<Fn> out;
  for (const auto* f : all) out.emplace_back(*f);
  return out;
}

std::vector<MapFn>& known_maps() {
  static std::vector<MapFn> all = handles<MapFn>(maps::kAll);
  return all;
}
std::vector<PairFn>& known_pairs() {
  static std::vector<PairFn> all = handles<PairFn>(pairs::kAll);
  return all;
}
std::vector<ReduceFn>& known_reductions() {
  static std::vector<ReduceFn> all = handles<ReduceFn>(reductions::kAll);
  return all;
}

}  // namespace

std::span<const MapFn> map_functions() { return known_maps(); }
std::span<const PairFn> pair_functions() { return known_pairs(); }
std::span<const ReduceFn> reduce_functions() { return known_reductions(); }

std::string word_of(ReduceFn fn) {
  std::string word = fn->name.value;
  if (fn->also != nullptr) word += std::string("_and_") + fn->also->name.value;
  return word;
}

AddedFunction::AddedFunction(MapFn fn) { known_maps().push_back(fn); }
AddedFunction::AddedFunction(PairFn fn) { known_pairs().push_back(fn); }
AddedFunction::AddedFunction(ReduceFn fn) { known_reductions().push_back(fn); }

}  // namespace fuseline
