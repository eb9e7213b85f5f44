// Small functions of values: "0.5 * x * (1 + erf(x / sqrt(2)))". One text gives the fp64 reference,
// the fp32 function of the CPU, the device function and the derivative.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/text/token_cursor.h"

namespace fuseline {

struct ValueNode;
using ValueNodePtr = std::shared_ptr<const ValueNode>;

// What a formula of another function may call.
struct NamedFunction {
  std::string name;
  std::size_t parameters = 1;
  ValueNodePtr body;
};

class ValueFunction {
 public:
  ValueFunction(std::vector<std::string> parameters, ValueNodePtr body);

  // InputError at its place: what is no formula, a name that is no parameter, a call of an unknown
  // function (with the nearest name).
  static ValueFunction parse(TokenCursor& cursor, std::vector<std::string> parameters,
                             std::span<const NamedFunction> known = {});
  static ValueFunction of_text(const std::string& text, std::vector<std::string> parameters);

  [[nodiscard]] const std::vector<std::string>& parameters() const { return parameters_; }
  [[nodiscard]] const ValueNodePtr& body() const { return body_; }
  [[nodiscard]] double operator()(std::span<const double> values) const;
  [[nodiscard]] float in_fp32(std::span<const float> values) const;
  // By that parameter, found symbolically. At a kink (abs, max, min, step) it is the right side's.
  [[nodiscard]] ValueFunction derivative(std::size_t parameter) const;
  // Its value where it depends on no parameter.
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] bool reads(std::size_t parameter) const;
  // With that parameter a number: a function of the others.
  [[nodiscard]] ValueFunction with_number(std::size_t parameter, double number) const;
  [[nodiscard]] std::string text() const;  // reads back as the same function
  // As an expression of CUDA C++ in fp32, with the parameters as its variables.
  [[nodiscard]] std::string device_text() const;

 private:
  std::vector<std::string> parameters_;
  ValueNodePtr body_;
};

// The functions that formulas may call: exp, tanh, erf, max, ...
std::vector<std::string> value_function_names();

}  // namespace fuseline
