#include "model/programs/defined_map.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

namespace {

struct Defined {
  std::string name, device_name, text, device, source;
  ValueFunction function;
  std::unique_ptr<const MapFunction> map;
};

// A map computes through a plain pointer, which knows its place in the table.
std::array<const ValueFunction*, kMostDefinedMaps> appliers_functions{};

template <std::size_t I>
void apply(const MapTiles& t) {
  const ValueFunction& f = *appliers_functions[I];
  if (f.parameters().size() == 2)
    return each_two_elements(t.a, *t.b, t.out, [&](float x, float z) {
      const float of[] = {x, z};
      return f.in_fp32(of);
    });
  each_element(t.a, t.out, [&](float x) { return f.in_fp32(std::span(&x, 1)); });
}

template <std::size_t... I>
constexpr std::array<void (*)(const MapTiles&), kMostDefinedMaps> appliers(
    std::index_sequence<I...>) {
  return {apply<I>...};
}
constexpr auto kAppliers = appliers(std::make_index_sequence<kMostDefinedMaps>());

std::deque<Defined>& defined_functions() {
  static std::deque<Defined> all;
  return all;
}
std::mutex& defined_guard() {
  static std::mutex one;
  return one;
}

std::string device_of(const std::string& name, const ValueFunction& f) {
  const bool two = f.parameters().size() == 2;
  std::string numbers;
  for (const std::string& p : f.parameters())
    numbers += (numbers.empty() ? "float " : ", float ") + p;
  return fmt::format(
      R"(template <class A{}>
FUSELINE_DEVICE auto {}(const A& a{}) {{
  return {}(a{}, []({}) {{ return {}; }});
}}
)",
      two ? ", class B" : "", name, two ? ", const B& b" : "", two ? "map_2" : "map_1",
      two ? ", b" : "", numbers, f.device_text());
}

}  // namespace

MapFn defined_map(const std::string& name, const ValueFunction& function) {
  const std::scoped_lock lock(defined_guard());
  const std::string source = fmt::format("{}({})", function.text(), function.parameters().size());
  for (const Defined& d : defined_functions())
    if (d.name == name && d.source == source) return *d.map;
  if (defined_functions().size() == kMostDefinedMaps)
    throw InputError({.field = "let " + name,
                      .message = "too many different functions of values",
                      .allowed = fmt::format("at most {}", kMostDefinedMaps)});
  const std::size_t place = defined_functions().size();
  const bool two = function.parameters().size() == 2;
  Defined& d = defined_functions().emplace_back(Defined{name, fmt::format("let_{}_{}", name, place),
                                                        name + (two ? "({}, {})" : "({})"), "",
                                                        source, function, nullptr});
  d.device = device_of(d.device_name, d.function);
  appliers_functions[place] = &d.function;
  d.map = std::make_unique<const MapFunction>(
      MapFunction{.name = d.device_name.c_str(),
                  .maths = MapMaths{.operands = static_cast<int>(function.parameters().size()),
                                    .apply = kAppliers[place]},
                  .text = d.text.c_str(),
                  .device = d.device.c_str()});
  return *d.map;
}

std::string defined_name(MapFn fn) {
  const std::scoped_lock lock(defined_guard());
  for (const Defined& d : defined_functions())
    if (MapFn(*d.map) == fn) return d.name;
  FUSELINE_ASSERT(false, "no defined map");
}

const ValueFunction* definition_of(MapFn fn) {
  const std::scoped_lock lock(defined_guard());
  for (const Defined& d : defined_functions())
    if (MapFn(*d.map) == fn) return &d.function;
  return nullptr;
}

}  // namespace fuseline
