// Writes lines of programs: the walk of a primitive's syntax that prints.
#pragma once

#include <string>
#include <utility>

#include "model/programs/mainloop_syntax.h"

namespace fuseline {

// "qkv[M,3D]", "qkv[M, 4096:8192]", "kv[0:64 of every 128, 256]": as it is read.
std::string operand_text(const Graph& graph, const Operand& operand);
// The name as it is, or in quotes where it is no word.
std::string name_text(const std::string& name);

// Writes one line, with names of values and of tensors.
class LineWriter final : public MainloopSyntax {
 public:
  // Both must outlive it.
  LineWriter(const Graph& graph, const ProgramNames& names) : graph_(graph), names_(names) {}

  // What was written since the last call.
  CodeLine take() { return std::exchange(line_, {}); }
  void put(const std::string& text) { line_.code += text; }

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
  void remark(const std::string& words) override { line_.comment = words; }
  void transposed(bool& on) override { line_.code += on ? "ᵀ" : ""; }
  void times() override {
    line_.code += " · ";
    first_ = true;
  }
  void space(std::int64_t& rows, std::int64_t& cols) override;
  void named_value_of(Value& v, Operand& o) override;
  void makes_some(Value& first, Value& second) override;
  using Syntax::makes;
  using Syntax::number;

 private:
  void item(const std::string& text);  // behind a comma, where it is not the first
  void argument(std::string_view name, const std::string& text);

  const Graph& graph_;
  const ProgramNames& names_;
  CodeLine line_;
  bool first_ = true;    // nothing stands in the bracket, or behind the word, yet
  bool spaced_ = false;  // a space is due before what follows
};

}  // namespace fuseline
