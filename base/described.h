// What things that describe themselves are made of: facts that a description must state, and
// handles by which descriptions are compared and asked.
#pragma once

#include <type_traits>

#include "base/error.h"

namespace fuseline {

// A fact that every description states: one without it does not compile.
template <class T>
struct Fact {
  T value;

  constexpr Fact(T given) : value(given) {}
  template <class Lambda>
  requires(std::is_class_v<Lambda>&& std::is_convertible_v<Lambda, T>) constexpr Fact(Lambda given)
      : value(given) {}
  constexpr operator const T&() const { return value; }
};

// Which of the things of one kind it is. Descriptions are constants; two of them are never the
// same thing.
template <class Description>
class Handle {
 public:
  constexpr Handle() = default;
  constexpr Handle(const Description& description) : description_(&description) {}

  const Description& operator*() const { return *operator->(); }
  const Description* operator->() const {
    FUSELINE_ASSERT(description_ != nullptr, "a handle on nothing");
    return description_;
  }
  friend constexpr bool operator==(Handle, Handle) = default;

 private:
  const Description* description_ = nullptr;
};

}  // namespace fuseline
