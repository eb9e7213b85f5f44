#include "model/import/draft.h"

#include <algorithm>
#include <map>
#include <set>

namespace fuseline {

std::size_t Draft::add(DraftMatrix matrix) {
  matrices.push_back(std::move(matrix));
  return matrices.size() - 1;
}

std::size_t Draft::add(DraftStep step) {
  for (const std::size_t matrix : step.writes) matrices[matrix].made_by = steps.size();
  steps.push_back(std::move(step));
  return steps.back().writes.front();
}

MatrixColumns Draft::all_of(std::size_t matrix) const {
  return {matrix, 0, matrices[matrix].columns};
}

// Steps stand behind those that they read, so none before the maker of `from` follows from it.
bool Draft::follows(const MatrixColumns& range, const MatrixColumns& from) const {
  const std::size_t first = matrices[from.matrix].made_by.value_or(0);
  std::vector<bool> seen(matrices.size(), false);
  std::vector<std::size_t> left{range.matrix};
  while (!left.empty()) {
    const std::size_t matrix = left.back();
    left.pop_back();
    if (matrix == from.matrix) return true;
    const auto maker = matrices[matrix].made_by;
    if (seen[matrix] || !maker || *maker < first) continue;
    seen[matrix] = true;
    for (const MatrixColumns& read : steps[*maker].reads) left.push_back(read.matrix);
  }
  return false;
}

void Draft::mark_live() {
  for (DraftStep& step : steps) step.live = false;
  std::vector<std::size_t> left;
  for (const MatrixColumns& output : outputs) left.push_back(output.matrix);
  while (!left.empty()) {
    const auto maker = matrices[left.back()].made_by;
    left.pop_back();
    if (!maker || steps[*maker].live) continue;
    steps[*maker].live = true;
    for (const MatrixColumns& read : steps[*maker].reads) left.push_back(read.matrix);
  }
}

void Draft::put_in_order_of_need() {
  std::vector<DraftStep> ordered;
  std::vector<bool> done(steps.size(), false);
  // A step and how many of its reads were asked for.
  std::vector<std::pair<std::size_t, std::size_t>> open;
  const auto ask = [&](std::size_t matrix) {
    const auto maker = matrices[matrix].made_by;
    if (maker && !done[*maker]) open.emplace_back(*maker, 0);
  };
  for (const MatrixColumns& output : outputs) {
    ask(output.matrix);
    while (!open.empty()) {
      auto& [step, read] = open.back();
      if (done[step]) {
        open.pop_back();
      } else if (read < steps[step].reads.size()) {
        ask(steps[step].reads[read++].matrix);
      } else {
        done[step] = true;
        ordered.push_back(steps[step]);
        open.pop_back();
      }
    }
  }
  steps = std::move(ordered);
  number_makers();
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].joint) put_side_by_side(i);
}

void Draft::number_makers() {
  for (DraftMatrix& matrix : matrices) matrix.made_by.reset();
  for (std::size_t i = 0; i < steps.size(); ++i)
    for (const std::size_t matrix : steps[i].writes) matrices[matrix].made_by = i;
}

// Where the products read one tensor, all of them may stand in the place of the first.
void Draft::put_side_by_side(std::size_t meeting) {
  std::set<std::size_t> places;
  std::set<MatrixColumns> read_by_products;
  std::vector<std::size_t> left{meeting};
  while (!left.empty()) {
    const std::size_t at = left.back();
    left.pop_back();
    for (const MatrixColumns& read : steps[at].reads) {
      const auto maker = matrices[read.matrix].made_by;
      if (!maker || (steps[*maker].call != "linear" && !steps[*maker].hands_on)) continue;
      if (!places.insert(*maker).second) continue;
      if (steps[*maker].call == "linear") {
        read_by_products.insert(steps[*maker].reads.front());
      } else {
        left.push_back(*maker);
      }
    }
  }
  if (read_by_products.size() != 1) return;
  // How far behind a product each stands.
  std::map<std::size_t, int> distance;
  for (const std::size_t at : places) {
    int& own = distance[at];
    for (const MatrixColumns& read : steps[at].reads)
      if (const auto maker = matrices[read.matrix].made_by; maker && places.contains(*maker))
        own = std::max(own, distance[*maker] + 1);
  }
  std::vector<std::size_t> sorted(places.begin(), places.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](std::size_t a, std::size_t b) { return distance.at(a) < distance.at(b); });
  std::vector<DraftStep> moved;
  for (const std::size_t at : sorted) moved.push_back(steps[at]);
  auto next = moved.begin();
  for (const std::size_t at : places) steps[at] = std::move(*next++);
  number_makers();
}

}  // namespace fuseline
