// Numbers that an operator needs besides its operands: one struct of the operator's own, held by
// value. Which struct it is, the operator's file says.
#pragma once

#include <memory>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace fuseline {

class Attributes {
 public:
  Attributes() = default;
  template <class T>
  requires(std::is_class_v<T> && !std::is_same_v<T, Attributes>) Attributes(T value)
      : held_(std::make_shared<Held<T>>(std::move(value))) {}

  // The struct, or null when there is none or one of another kind.
  template <class T>
  [[nodiscard]] const T* get() const {
    const auto* held = dynamic_cast<const Held<T>*>(held_.get());
    return held == nullptr ? nullptr : &held->value;
  }

  // The struct; its defaults when the operator was given none. Asserts that there is no other.
  template <class T>
  [[nodiscard]] const T& as() const {
    static const T defaults{};
    if (held_ == nullptr) return defaults;
    const T* value = get<T>();
    if (value == nullptr) refuse(typeid(T));
    return *value;
  }

 private:
  struct Anything {
    Anything() = default;
    Anything(const Anything&) = delete;
    Anything& operator=(const Anything&) = delete;
    virtual ~Anything() = default;
  };
  template <class T>
  struct Held final : Anything {
    explicit Held(T given) : value(std::move(given)) {}
    T value;
  };
  [[noreturn]] void refuse(const std::type_info& wanted) const;

  std::shared_ptr<const Anything> held_;  // never changed: copies share it
};

}  // namespace fuseline
