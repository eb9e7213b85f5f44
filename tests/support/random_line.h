// One random line of a program.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/primitives/values.h"
#include "model/programs/mainloop_syntax.h"
#include "tests/support/dice.h"

namespace fuseline::test {

using Sample = std::array<double, 8>;  // a few numbers that the value may have

// What the programs of a file share.
struct FileState {
  Graph graph;
  std::map<std::int64_t, std::string> letters{};
  std::vector<TensorId> stored{};   // as a whole, by programs above
  std::vector<TensorId> waiting{};  // partials and activations that nothing has read yet
  std::set<TensorId> partials{};
  std::set<std::string> called{};  // by the names of their device functions
};

struct ProgramState {
  Program program;
  std::int64_t rows = 1, cols = 1;
  ValueShapes shapes{};
  std::map<Value, Sample> samples{};
  Value next = 1;
  std::vector<TensorId> made{};  // stores of this program
};

// Fills a line's places by chance.
class RandomLine final : public MainloopSyntax {
 public:
  RandomLine(Dice& dice, FileState& file, ProgramState& program)
      : dice_(dice), file_(file), program_(program), next_(program.next) {}

  std::optional<TensorId> first_operand{};  // what the line's first operand is to be
  [[nodiscard]] Value next_value() const { return next_; }
  [[nodiscard]] const std::vector<TensorId>& stored() const { return stored_; }

  void makes(std::span<Value* const> results) override;
  void stores(std::string_view, Operand& to, bool* add) override;
  void word(std::string_view) override {}
  void open() override {}
  void close() override {}
  void value(Value& v) override;
  void operand(Operand& o) override;
  void slice(Value& in, std::int64_t& begin, std::int64_t& count) override;
  void pattern(std::string_view, std::vector<Value>& in, double* constant) override;
  void more(std::vector<Operand>& operands) override;
  void more(std::vector<Value>& values) override;
  void number(std::string_view, std::int64_t& n, std::int64_t usual) override;
  void real(std::string_view, double& x, double usual) override;
  void numbers(std::string_view, std::vector<std::int64_t>& all) override;
  void flag(std::string_view, bool& on) override;
  void named(std::string_view, std::optional<Operand>& o) override;
  void named(std::string_view, std::vector<Operand>& all) override;
  void named(std::string_view, Value& v) override;
  void choice(std::string_view, int& which, std::span<const std::string_view> words) override;
  void text(std::string_view, const std::string&,
            const std::function<void(const std::string&)>&) override;
  void remark(const std::string&) override {}
  void transposed(bool& on) override;
  void times() override {}
  void space(std::int64_t& rows, std::int64_t& cols) override;
  void named_value_of(Value& v, Operand& o) override;
  void makes_some(Value& first, Value& second) override;
  using Syntax::makes;
  using Syntax::number;

  TensorId add_tensor(std::int64_t rows, std::int64_t cols, Role role);

 private:
  // A width that something of the program has.
  std::int64_t columns();

  Dice& dice_;
  FileState& file_;
  ProgramState& program_;
  Value next_;
  std::vector<TensorId> stored_;
};

}  // namespace fuseline::test
