#include "model/programs/file_words.h"

#include <algorithm>

namespace fuseline::words {

namespace {

// All values of an enumeration that ends with `last`, in order.
template <class E>
std::vector<E> all(E last) {
  std::vector<E> values;
  for (int i = 0; i <= static_cast<int>(last); ++i) values.push_back(static_cast<E>(i));
  return values;
}

template <class E, class Name>
std::optional<E> named(const std::vector<E>& values, const std::string& word, Name name) {
  for (const E value : values)
    if (word == name(value)) return value;
  return std::nullopt;
}

}  // namespace

std::string of(Implementation implementation) {
  std::string word = name_of(implementation);
  std::ranges::replace(word, ' ', '_');
  return word;
}

std::string of(Relation relation) {
  switch (relation) {
    case Relation::gradient_of:
      return "gradient_of";
    case Relation::carried_to_next_layer:
      return "carried_to";
    case Relation::recomputed_from:
      return "recomputed_from";
  }
  return "";
}

std::optional<Implementation> implementation(const std::string& word) {
  return named(all(Implementation::persistent_block), word, [](Implementation i) { return of(i); });
}
std::optional<KernelKind> kernel_kind(const std::string& word) {
  return named(all(KernelKind::collective), word, [](KernelKind k) { return name_of(k); });
}
std::optional<Relation> relation(const std::string& word) {
  return named(all(Relation::recomputed_from), word, [](Relation r) { return of(r); });
}
std::optional<Role> role(const std::string& word) {
  return named(all(Role::output), word, [](Role r) { return name_of(r); });
}
std::optional<Dtype> dtype(const std::string& word) {
  return named(all(Dtype::e8m0), word, [](Dtype d) { return name_of(d); });
}
std::vector<std::string> implementations() {
  std::vector<std::string> words;
  for (const Implementation i : all(Implementation::persistent_block)) words.push_back(of(i));
  return words;
}
std::vector<std::string> dtypes() {
  std::vector<std::string> words;
  for (const Dtype d : all(Dtype::e8m0)) words.emplace_back(name_of(d));
  return words;
}

}  // namespace fuseline::words
