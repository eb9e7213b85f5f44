#include "model/import/widths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace fuseline {

std::string Letters::word(const Letter& letter) {
  const auto key = std::pair(letter.name, letter.number);
  if (const auto found = words_.find(key); found != words_.end()) return found->second;
  std::string word = letter.name;
  for (int n = 2; number(word) != 0; ++n) word = letter.name + std::to_string(n);
  all_.push_back({word, letter.number});
  words_[key] = word;
  return word;
}

std::int64_t Letters::number(const std::string& word) const {
  for (const Letter& letter : all_)
    if (letter.name == word) return letter.number;
  return 0;
}

Widths::Widths(const Draft& draft, Letters& letters) : draft_(draft), letters_(letters) {
  collect_parts();
  collect_spans();
  bool first = true;
  for (std::size_t i = 0; i < draft_.matrices.size(); ++i) {
    const DraftMatrix& matrix = draft_.matrices[i];
    if (matrix.kind != MatrixKind::input) continue;
    if (first) known_[draft_.all_of(i)] = {{"D", matrix.columns}};
    first = false;
  }
  for (const DraftStep& step : draft_.steps)
    if (step.live)
      for (const auto& [range, width] : step.widths) known_.emplace(range, width);
  propagate();
  name_the_rest();
}

void Widths::collect_parts() {
  std::map<std::size_t, std::set<std::pair<std::int64_t, std::int64_t>>> used;
  const auto take = [&](const MatrixColumns& range) {
    const DraftMatrix& matrix = draft_.matrices[range.matrix];
    if (matrix.kind != MatrixKind::weight && range != draft_.all_of(range.matrix))
      used[range.matrix].emplace(range.first, range.count);
  };
  for (const DraftStep& step : draft_.steps) {
    if (!step.live) continue;
    for (const MatrixColumns& read : step.reads) take(read);
  }
  for (const MatrixColumns& output : draft_.outputs) take(output);
  for (const auto& [matrix, ranges] : used) {
    std::vector<MatrixColumns>& parts = parts_[matrix];
    std::int64_t at = 0;
    for (const auto& [first, count] : ranges) {
      if (first < at)
        throw InputError(
            {.message =
                 fmt::format("columns {} to {} of one tensor overlap with others that are taken of "
                             "it",
                             first, first + count - 1),
             .allowed = "parts of a product that stand side by side"});
      if (first > at) parts.push_back({matrix, at, first - at});
      parts.push_back({matrix, first, count});
      at = first + count;
    }
    const std::int64_t all = draft_.matrices[matrix].columns;
    if (at < all) parts.push_back({matrix, at, all - at});
  }
}

// Gate and up within what SwiGLU reads.
void Widths::collect_spans() {
  std::map<std::size_t, std::set<MatrixColumns>> told;
  for (const DraftStep& step : draft_.steps) {
    if (!step.live) continue;
    for (const auto& [a, b] : step.equal)
      for (const MatrixColumns& range : {a, b})
        if (range != draft_.all_of(range.matrix)) told[range.matrix].insert(range);
  }
  for (const auto& [matrix, ranges] : told) {
    std::int64_t at = 0;
    for (const MatrixColumns& range : ranges) at = range.first == at ? at + range.count : -1;
    if (at == draft_.matrices[matrix].columns) spans_[matrix].assign(ranges.begin(), ranges.end());
  }
}

const std::vector<MatrixColumns>& Widths::tiles(std::size_t matrix) const {
  static const std::vector<MatrixColumns> none;
  if (const auto found = parts_.find(matrix); found != parts_.end()) return found->second;
  const auto found = spans_.find(matrix);
  return found == spans_.end() ? none : found->second;
}

// Forward and backward until nothing more follows.
void Widths::propagate() {
  const auto equal = [&](const DraftStep& step) {
    bool changed = false;
    if (!step.live) return changed;
    for (const auto& [a, b] : step.equal) {
      const auto x = known_.find(a);
      const auto y = known_.find(b);
      if ((x == known_.end()) == (y == known_.end())) continue;
      if (x == known_.end()) {
        known_[a] = y->second;
      } else {
        known_[b] = x->second;
      }
      changed = true;
    }
    return changed;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const DraftStep& step : draft_.steps) changed |= equal(step);
    for (auto step = draft_.steps.rbegin(); step != draft_.steps.rend(); ++step)
      changed |= equal(*step);
  }
}

// What no attention and no stream says is a feed-forward width.
void Widths::name_the_rest() {
  const auto name = [&](const MatrixColumns& range) {
    if (known_.contains(range)) return;
    known_[range] = {{"F", range.count}};
    propagate();
  };
  for (std::size_t i = 0; i < draft_.matrices.size(); ++i) {
    const DraftMatrix& matrix = draft_.matrices[i];
    const bool inner = matrix.made_by && draft_.steps[*matrix.made_by].live &&
                       draft_.steps[*matrix.made_by].writes.front() == i;
    if (!inner && matrix.kind != MatrixKind::input) continue;
    if (!tiles(i).empty() && !known_.contains(draft_.all_of(i))) {
      for (const MatrixColumns& part : tiles(i)) name(part);
    } else {
      name(draft_.all_of(i));
    }
  }
}

std::vector<MatrixColumns> Widths::parts(std::size_t matrix) const {
  const auto found = parts_.find(matrix);
  return found == parts_.end() ? std::vector<MatrixColumns>() : found->second;
}

std::string Widths::words(const MatrixColumns& range) const {
  const auto product = [&](const Width& width) {
    std::vector<std::string> words;
    for (const Letter& letter : width) words.push_back(letters_.word(letter));
    return fmt::format("{}", fmt::join(words, " "));
  };
  if (const auto found = known_.find(range); found != known_.end()) return product(found->second);
  // Equal ones are counted, and a letter that all end with stands behind the sum.
  std::vector<std::pair<Width, int>> sum;
  std::int64_t columns = 0;
  for (const MatrixColumns& part : tiles(range.matrix)) {
    const auto found = known_.find(part);
    if (found == known_.end()) return std::to_string(range.count);
    columns += part.count;
    const auto same = std::find_if(sum.begin(), sum.end(),
                                   [&](const auto& term) { return term.first == found->second; });
    if (same == sum.end()) {
      sum.emplace_back(found->second, 1);
    } else {
      ++same->second;
    }
  }
  if (columns != range.count || sum.empty()) return std::to_string(range.count);
  const Letter last = sum.front().first.back();
  const bool factored = sum.size() > 1 && std::all_of(sum.begin(), sum.end(), [&](const auto& t) {
                          return t.first.size() > 1 && t.first.back() == last;
                        });
  std::vector<std::string> terms;
  for (auto& [width, count] : sum) {
    if (factored) width.pop_back();
    terms.push_back((count > 1 ? std::to_string(count) + " " : "") + product(width));
  }
  const std::string text = fmt::format("{}", fmt::join(terms, " + "));
  return factored ? "(" + text + ") " + letters_.word(last) : text;
}

}  // namespace fuseline
