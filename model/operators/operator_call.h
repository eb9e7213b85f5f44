// How the text of a block calls an operator: its operands in their order, then values by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/attributes.h"
#include "model/graph.h"

namespace fuseline {

struct Workload;  // model/config/config.h

// What a call gives. Every function that asks for a value says its name, what it is where the call
// is silent, and what is allowed; a call that gives other names is refused with those that were
// asked for. InputError with the call's line and column.
class OperatorCall {
 public:
  OperatorCall() = default;
  OperatorCall(const OperatorCall&) = delete;
  OperatorCall& operator=(const OperatorCall&) = delete;
  virtual ~OperatorCall() = default;

  [[nodiscard]] virtual const Workload& workload() const = 0;
  [[nodiscard]] virtual std::size_t reads() const = 0;
  [[nodiscard]] virtual const Operand& read(std::size_t i) const = 0;

  virtual std::int64_t whole(const char* name, std::int64_t least, std::int64_t most) = 0;
  virtual std::int64_t whole_or(const char* name, std::int64_t absent, std::int64_t least,
                                std::int64_t most) = 0;
  virtual double number_or(const char* name, double absent, double least, double most) = 0;
  virtual bool flag_or(const char* name, bool absent) = 0;
  // One of the words; the first where the call is silent.
  virtual std::string word_or(const char* name, const std::vector<std::string>& words) = 0;

  // The result's shape, where the letters of its description do not follow from the operands'.
  virtual void result(std::int64_t rows, std::int64_t cols) = 0;
  // The call gives a second result, the operator's `also_writes`.
  virtual void also_result(std::int64_t rows, std::int64_t cols, Dtype type) = 0;
  // The second result overwrites the operand, which has its shape: a state.
  virtual void overwrites(std::size_t read) = 0;
  // The type that the result is kept in, where it is not the workload's.
  virtual void result_in(Dtype type) = 0;
  [[noreturn]] virtual void refuse(const std::string& message,
                                   const std::string& allowed) const = 0;
};

// Of an operator without attributes.
inline Attributes no_attributes(OperatorCall&) { return {}; }

}  // namespace fuseline
