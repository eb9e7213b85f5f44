#include "model/import/translator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "model/import/all_patterns.h"

namespace fuseline {

namespace {

// "aten.mul" of "aten.mul_.Tensor".
std::string without_overload(const std::string& target) {
  const std::size_t space = target.find('.');
  const std::size_t name = space == std::string::npos ? 0 : space + 1;
  std::string call = target.substr(0, target.find('.', name));
  if (call.size() > name + 1 && call.ends_with("_") && !call.ends_with("__")) call.pop_back();
  return call;
}

bool works_in_place(const std::string& target) {
  const std::size_t space = target.find('.');
  const std::size_t name = space == std::string::npos ? 0 : space + 1;
  const std::size_t end = std::min(target.find('.', name), target.size());
  return end > name + 1 && target[end - 1] == '_' && target[end - 2] != '_';
}

void each_node(const SavedArgument& argument, const std::function<void(std::size_t)>& visit) {
  if (const auto* node = argument.get<NodeRef>()) visit(node->index);
  if (const auto* list = argument.get<SavedList>())
    for (const SavedArgument& item : *list) each_node(item, visit);
}

const std::vector<const ImportPattern*>& patterns_by_size() {
  static const std::vector<const ImportPattern*> sorted = [] {
    std::vector<const ImportPattern*> all(std::begin(patterns::kAll), std::end(patterns::kAll));
    std::stable_sort(all.begin(), all.end(), [](const ImportPattern* a, const ImportPattern* b) {
      return a->size > b->size;
    });
    return all;
  }();
  return sorted;
}

bool holds(std::span<const char* const> calls, std::string_view call) {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

bool is_float(const std::string& dtype) {
  return dtype.find("float") != std::string::npos || dtype.empty();
}

}  // namespace

Translator::Translator(const SavedGraph& graph, const ImportOptions& options)
    : graph_(graph),
      options_(options),
      calls_(graph.nodes.size()),
      readers_(graph.nodes.size(), 0),
      views_(graph.nodes.size()) {
  std::vector<std::size_t> last_reader(graph.nodes.size(), 0);
  for (std::size_t at = 0; at < graph_.nodes.size(); ++at) {
    const SavedNode& n = graph_.nodes[at];
    if (n.kind == SavedKind::call) calls_[at] = without_overload(n.target);
    if (calls_[at] == "aten._assert_tensor_metadata") continue;  // uses no number of what it checks
    for (const std::size_t read : read_by(at)) {
      ++readers_[read];
      last_reader[read] = at;
    }
  }
  for (const std::size_t output : graph_.outputs) {
    ++readers_[output];
    last_reader[output] = graph_.nodes.size();
  }
  // A call that changes its operand is as one that gives a new tensor only where nobody reads the
  // operand later.
  for (std::size_t at = 0; at < graph_.nodes.size(); ++at) {
    const SavedNode& n = graph_.nodes[at];
    if (n.kind != SavedKind::call || !works_in_place(n.target)) continue;
    const std::vector<std::size_t> reads = read_by(at);
    if (!reads.empty() && last_reader[reads.front()] > at) calls_[at] = n.target;
  }
}

std::vector<std::size_t> Translator::read_by(std::size_t at) const {
  std::vector<std::size_t> reads;
  const auto take = [&](std::size_t node) { reads.push_back(node); };
  for (const SavedArgument& a : graph_.nodes[at].args) each_node(a, take);
  for (const char* first : {"self", "input"}) {
    const auto found = graph_.nodes[at].named.find(first);
    if (found != graph_.nodes[at].named.end()) each_node(found->second, take);
  }
  for (const auto& [name, a] : graph_.nodes[at].named)
    if (name != "self" && name != "input") each_node(a, take);
  return reads;
}

Draft Translator::translate() {
  for (std::size_t at = 0; at < graph_.nodes.size(); ++at) {
    const SavedKind kind = graph_.nodes[at].kind;
    if (kind == SavedKind::call || kind == SavedKind::part) {
      take_call(at);
    } else {
      take_input(at);
    }
  }
  take_outputs();
  return std::move(draft_);
}

// The first tensor of numbers is the stream: [B, T, D], or [T, D] of one sequence.
void Translator::take_input(std::size_t at) {
  const SavedNode& n = graph_.nodes[at];
  if (!n.has_shape || !is_float(n.dtype)) return;
  if (n.kind == SavedKind::parameter) {
    if (n.shape.empty() || n.shape.size() > 3) return;
    std::int64_t rows = n.shape.size() >= 2 ? n.shape[0] : 1;
    if (n.shape.size() == 3) rows *= n.shape[1];  // a matrix of each expert
    views_[at] = view_of_matrix(draft_.add(DraftMatrix{.kind = MatrixKind::weight,
                                                       .rows = rows,
                                                       .columns = n.shape.back(),
                                                       .name = n.owner.empty() ? n.name : n.owner}),
                                n.shape);
    return;
  }
  if (n.kind != SavedKind::input || n.shape.size() < 2 || n.shape.size() > 3) return;
  std::int64_t rows = n.shape[0];
  if (n.shape.size() == 3) rows *= n.shape[1];
  if (!main_input_) {
    main_input_ = at;
    draft_.batch = n.shape.size() == 3 ? n.shape[0] : 1;
    draft_.tokens = rows / draft_.batch;
  }
  views_[at] = view_of_matrix(draft_.add(DraftMatrix{.kind = MatrixKind::input,
                                                     .rows = rows,
                                                     .columns = n.shape.back(),
                                                     .name = at == main_input_ ? "x" : n.name}),
                              n.shape);
}

void Translator::take_call(std::size_t at) {
  const SavedNode& n = graph_.nodes[at];
  if (!n.has_shape) return;  // its parts say what they are
  std::size_t call = at;
  std::int64_t part = 0;
  if (n.kind == SavedKind::part) {
    call = n.args[0].get<NodeRef>()->index;
    part = *n.args[1].get<std::int64_t>();
    if (calls_[call].empty()) return;
  }
  for (const ImportPattern* pattern : patterns_by_size()) {
    if (!holds(pattern->calls, calls_[call])) continue;
    std::optional<TensorView> view = pattern->match(*this, call, part);
    if (!view) continue;
    if (sizes_of(*view) == n.shape) {
      views_[at] = std::move(view);
      return;
    }
  }
}

// Whether a call that has a meaning reads it, though it has none itself.
bool Translator::is_within_a_step(std::size_t at) const {
  for (std::size_t reader = at + 1; reader < graph_.nodes.size(); ++reader) {
    if (!views_[reader]) continue;
    const std::vector<std::size_t> reads = read_by(reader);
    if (std::find(reads.begin(), reads.end(), at) != reads.end()) return true;
  }
  return false;
}

// Heads of keys and values, which a layer may give beside its result, are no stream.
void Translator::take_outputs() {
  std::vector<std::size_t> unknown;
  for (const std::size_t at : graph_.outputs) {
    const SavedNode& n = graph_.nodes[at];
    if (!views_[at] && is_within_a_step(at)) {
      draft_.remarks.push_back(fmt::format(
          "The output {} is left out: it is a tensor within a step, such as the probabilities of "
          "attention",
          n.name));
      continue;
    }
    if (!views_[at]) {
      unknown.push_back(at);
      continue;
    }
    const TensorView& view = *views_[at];
    const auto range = in_order(view, rows_of(view));
    if (range && draft_.matrices[range->matrix].made_by) {
      draft_.outputs.push_back(*range);
    } else {
      draft_.remarks.push_back(
          fmt::format("The output {} is left out: it is {}", n.name,
                      range ? "an input as it came"
                            : "a tensor of this layer's inside, such as keys of heads"));
    }
  }
  if (!unknown.empty()) refuse(unknown);
  if (draft_.outputs.empty())
    throw InputError({.file = graph_.path,
                      .message = "no output of the graph is a result of rows and columns",
                      .allowed = "a layer's hidden states [B, T, D]"});
}

// Those to blame are nodes that mean nothing although all that they read means something.
void Translator::refuse(const std::vector<std::size_t>& outputs) const {
  std::set<std::size_t> blamed, seen;
  std::vector<std::size_t> left = outputs;
  while (!left.empty()) {
    const std::size_t at = left.back();
    left.pop_back();
    if (views_[at] || !seen.insert(at).second) continue;
    bool deeper = false;
    for (const std::size_t read : read_by(at)) {
      const bool is_call =
          graph_.nodes[read].kind == SavedKind::call || graph_.nodes[read].kind == SavedKind::part;
      if (views_[read] || !is_call) continue;
      deeper = true;
      left.push_back(read);
    }
    if (!deeper) blamed.insert(at);
  }
  std::set<std::string> known;
  for (const ImportPattern* pattern : patterns_by_size()) {
    known.insert(pattern->calls.begin(), pattern->calls.end());
    known.insert(pattern->within.begin(), pattern->within.end());
  }
  std::vector<std::string> unknown, other_form;
  // Calls that nobody knows say most, also behind one that is blamed: the top k behind a softmax.
  for (const std::size_t at : seen)
    if (graph_.nodes[at].kind == SavedKind::call && !known.contains(calls_[at])) blamed.insert(at);
  for (const std::size_t at : blamed) {
    const SavedNode& n = graph_.nodes[at];
    std::string words = n.kind == SavedKind::call ? n.target : n.name;
    if (!n.file.empty()) words += fmt::format(" ({}, line {})", n.file, n.line);
    const bool is_known = known.contains(calls_[at]) || n.kind != SavedKind::call;
    std::vector<std::string>& list = is_known ? other_form : unknown;
    if (std::find(list.begin(), list.end(), words) == list.end()) list.push_back(words);
  }
  std::vector<std::string> messages;
  if (!unknown.empty())
    messages.push_back(
        fmt::format("the graph calls what no block has: {}", fmt::join(unknown, ", ")));
  if (!other_form.empty())
    messages.push_back(
        fmt::format("a call that is known stands in a form that is not, or between tensors whose "
                    "shapes are not: {}",
                    fmt::join(other_form, ", ")));
  throw InputError({.file = graph_.path,
                    .message = fmt::format("{}", fmt::join(messages, "; and ")),
                    .allowed = fmt::format("{}", fmt::join(known, ", "))});
}

}  // namespace fuseline
