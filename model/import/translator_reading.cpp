// How patterns read a call.
#include <algorithm>
#include <cmath>

#include "model/import/copy_calls.h"
#include "model/import/translator.h"

namespace fuseline {

namespace {

bool is_copy(const Translator& t, std::size_t at) {
  if (t.is_call(at, kDropout) && t.flag_or(at, 2, "train", true) && t.number(at, 1, "p") != 0.0)
    return false;
  return std::any_of(std::begin(kCopyCalls), std::end(kCopyCalls),
                     [&](const char* copy) { return t.is_call(at, copy); });
}

// The tensor of a cat() whose others have no elements.
const NodeRef* only_part(const Translator& t, std::size_t at) {
  const SavedArgument* found = t.argument(at, 0, "tensors");
  const SavedList* parts = found == nullptr ? nullptr : found->get<SavedList>();
  const NodeRef* only = nullptr;
  if (parts == nullptr) return nullptr;
  for (const SavedArgument& part : *parts) {
    const auto* node = part.get<NodeRef>();
    if (node == nullptr) return nullptr;
    const std::vector<std::int64_t>& shape = t.node(node->index).shape;
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) continue;
    if (only != nullptr) return nullptr;
    only = node;
  }
  return only;
}

std::optional<double> as_number(const SavedArgument* argument) {
  if (argument == nullptr) return std::nullopt;
  if (const auto* whole = argument->get<std::int64_t>()) return static_cast<double>(*whole);
  if (const auto* number = argument->get<double>()) return *number;
  return std::nullopt;
}

}  // namespace

std::size_t Translator::behind(std::size_t at) const {
  while (is_copy(*this, at)) {
    const SavedArgument* read = argument(at, 0, "self");
    if (read == nullptr) read = argument(at, 0, "input");
    const NodeRef* node = is_call(at, kCat) ? only_part(*this, at)
                          : read == nullptr ? nullptr
                                            : read->get<NodeRef>();
    if (node == nullptr) break;
    at = node->index;
  }
  return at;
}

const SavedArgument* Translator::argument(std::size_t at, std::size_t place,
                                          const char* name) const {
  const SavedNode& n = graph_.nodes[at];
  if (const auto found = n.named.find(name); found != n.named.end()) return &found->second;
  return place < n.args.size() ? &n.args[place] : nullptr;
}

std::optional<std::size_t> Translator::tensor(std::size_t at, std::size_t place,
                                              const char* name) const {
  const SavedArgument* found = argument(at, place, name);
  const NodeRef* node = found == nullptr ? nullptr : found->get<NodeRef>();
  if (node == nullptr) return std::nullopt;
  return behind(node->index);
}

std::optional<double> Translator::number(std::size_t at, std::size_t place,
                                         const char* name) const {
  const auto number = as_number(argument(at, place, name));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::int64_t Translator::whole_or(std::size_t at, std::size_t place, const char* name,
                                  std::int64_t absent) const {
  const SavedArgument* found = argument(at, place, name);
  const auto* whole = found == nullptr ? nullptr : found->get<std::int64_t>();
  return whole == nullptr ? absent : *whole;
}

bool Translator::flag_or(std::size_t at, std::size_t place, const char* name, bool absent) const {
  const SavedArgument* found = argument(at, place, name);
  const auto* flag = found == nullptr ? nullptr : found->get<bool>();
  return flag == nullptr ? absent : *flag;
}

std::vector<std::int64_t> Translator::wholes(std::size_t at, std::size_t place,
                                             const char* name) const {
  std::vector<std::int64_t> out;
  const SavedArgument* found = argument(at, place, name);
  if (found == nullptr) return out;
  if (const auto* one = found->get<std::int64_t>()) return {*one};
  if (const auto* list = found->get<SavedList>())
    for (const SavedArgument& item : *list)
      if (const auto* whole = item.get<std::int64_t>()) out.push_back(*whole);
  return out;
}

std::vector<std::size_t> Translator::tensors(std::size_t at, std::size_t place,
                                             const char* name) const {
  std::vector<std::size_t> out;
  const SavedArgument* found = argument(at, place, name);
  const SavedList* list = found == nullptr ? nullptr : found->get<SavedList>();
  if (list == nullptr) return out;
  for (const SavedArgument& item : *list)
    if (const auto* ref = item.get<NodeRef>()) out.push_back(behind(ref->index));
  return out;
}

std::optional<std::pair<std::size_t, std::size_t>> Translator::both(std::size_t at) const {
  const auto a = tensor(at, 0, "self");
  const auto b = tensor(at, 1, "other");
  if (!a || !b) return std::nullopt;
  return std::pair(*a, *b);
}

std::optional<std::pair<std::size_t, double>> Translator::scaled(std::size_t at) const {
  if (const auto a = tensor(at, 0, "self"))
    if (const auto factor = number(at, 1, "other")) return std::pair(*a, *factor);
  if (const auto b = tensor(at, 1, "other"))
    if (const auto factor = number(at, 0, "self")) return std::pair(*b, *factor);
  return std::nullopt;
}

std::optional<MatrixColumns> Translator::vector(std::size_t at) const {
  const std::optional<TensorView>& v = views_[behind(at)];
  if (!v || draft_.matrices[v->matrix].kind != MatrixKind::weight ||
      draft_.matrices[v->matrix].rows != 1 || v->dims.size() != 1)
    return std::nullopt;
  const auto range = in_order(*v, 1);
  return range == draft_.all_of(v->matrix) ? range : std::nullopt;
}

std::optional<TensorView> Translator::pointwise(DraftStep step,
                                                const std::vector<std::size_t>& reads) {
  std::optional<TensorView> first;
  for (const std::size_t read : reads) {
    const std::optional<TensorView>& view = views_[behind(read)];
    if (!view || draft_.matrices[view->matrix].kind == MatrixKind::weight) return std::nullopt;
    if (!first) first = view;
    const auto range = in_any_order(*view, rows_of(*view));
    if (!range || view->dims != first->dims || rows_of(*view) != rows_of(*first))
      return std::nullopt;
    step.reads.push_back(*range);
  }
  const std::size_t result =
      draft_.add(DraftMatrix{.rows = rows_of(*first), .columns = step.reads.front().count});
  for (const MatrixColumns& read : step.reads) step.equal.emplace_back(read, draft_.all_of(result));
  step.writes = {result};
  draft_.add(std::move(step));
  return same_dimensions(*first, result);
}

}  // namespace fuseline
