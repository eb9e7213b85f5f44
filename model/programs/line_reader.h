// Reads lines of programs: the walk of a primitive's syntax that fills it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/programs/diagnosis.h"
#include "model/programs/mainloop_syntax.h"
#include "model/programs/operand_reader.h"
#include "model/programs/sizes.h"
#include "model/text/token_cursor.h"

namespace fuseline {

// The values of the program that is being read.
struct ValueNames {
  std::map<std::string, Value> known{};
  std::set<std::string> spoilt{};  // whose line could not be read
  std::vector<std::string> names = {""};
};

// What stands ahead of the word: "o =", or "store h[M,D] =".
struct LineHead {
  std::vector<std::pair<std::string, Position>> results{};
  std::string keyword{};
  Operand stored{};
  bool add = false;
  Position at{};
};

class LineReader final : public MainloopSyntax {
 public:
  // All must outlive it.
  LineReader(TokenCursor& cursor, const Graph& graph, const Sizes& sizes, ValueNames& values)
      : cursor_(cursor), graph_(graph), sizes_(sizes), values_(values) {}

  // The cursor stands behind the head. `mainloop`: its first result is value 0.
  void begin(LineHead head, bool mainloop);
  // Nothing else stands in the line; its results are known from here on.
  void finish();
  // The same for arguments of an operator, whose line goes on.
  void end_arguments();

  void makes(std::span<Value* const> results) override;
  void stores(std::string_view keyword, Operand& to, bool* add) override;
  void word(std::string_view word) override;
  void open() override;
  void close() override;
  void value(Value& v) override;
  void operand(Operand& o) override;
  void slice(Value& in, std::int64_t& begin, std::int64_t& count) override;
  void pattern(std::string_view text, std::vector<Value>& in, double* constant) override;
  void more(std::vector<Operand>& operands) override;
  void more(std::vector<Value>& values) override;
  void number(std::string_view name, std::int64_t& n, std::int64_t usual) override;
  void real(std::string_view name, double& x, double usual) override;
  void numbers(std::string_view name, std::vector<std::int64_t>& all) override;
  void flag(std::string_view name, bool& on) override;
  void named(std::string_view name, std::optional<Operand>& o) override;
  void named(std::string_view name, std::vector<Operand>& all) override;
  void named(std::string_view name, Value& v) override;
  void choice(std::string_view name, int& which, std::span<const std::string_view> words) override;
  void text(std::string_view name, const std::string& now,
            const std::function<void(const std::string&)>& set) override;
  void remark(const std::string&) override {}
  void transposed(bool& on) override;
  void times() override;
  void space(std::int64_t& rows, std::int64_t& cols) override;
  void named_value_of(Value& v, Operand& o) override;
  void makes_some(Value& first, Value& second) override;
  using Syntax::makes;
  using Syntax::number;

 private:
  struct Argument {
    std::size_t begin = 0, end = 0;  // places of its value; the same for a flag
    Position at{};
    bool used = false;
    bool flag = false;
  };
  void separate();
  void index_arguments();
  void refuse_unused();
  Argument* argument(std::string_view name);  // the cursor stands on its value; null: not given
  void end_of(const Argument& a) const;       // the cursor has read all of it
  Value read_value();
  double read_real();
  Value fresh(std::size_t result);
  [[noreturn]] void refuse(Position at, const char* rule, InputProblem problem) const;

  TokenCursor& cursor_;
  const Graph& graph_;
  const Sizes& sizes_;
  ValueNames& values_;
  LineHead head_;
  std::vector<Value> made_;
  bool mainloop_ = false;
  bool first_ = true;
  bool indexed_ = false;
  std::size_t end_ = 0;
  std::map<std::string, Argument, std::less<>> arguments_;
  std::vector<std::string> asked_;
};

}  // namespace fuseline
