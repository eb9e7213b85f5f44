// Builds one program, value by value: the vocabulary in which lower.cpp writes down each operator.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "model/program.h"

namespace fuseline {

class Emitter {
 public:
  // `ops` are the operators of the kernel; what others read of their results gets stored.
  Emitter(const Graph& graph, std::string name, std::vector<OpId> ops);

  [[nodiscard]] const Graph& graph() const { return graph_; }
  void set_mainloop(Mainloop mainloop, std::int64_t cols);  // cols: width of the index space
  // What follows goes into the prologue (true) or the body of the program.
  void in_prologue(bool prologue) { to_prologue_ = prologue; }

  // The operand as a value: the one that an earlier operator of the kernel made (or columns of it),
  // else loaded once. tile_or_row: width 1 in a wider index space is a vector along the rows.
  Value tile(const Operand& operand);
  Value tile_or_row(const Operand& operand);
  Value per_row(const Operand& operand, const std::string& name);
  Value per_col(const Operand& operand, const std::string& name);
  // period, rest: of a table that is narrower than the columns after which it begins again.
  Value table(const Operand& operand, std::int64_t period = 0, double rest = 0);
  Value halves(const Operand& operand, std::int64_t group, bool upper, const std::string& name);
  Value part(const Operand& operand, const ColumnPart& part, const std::string& name);
  [[nodiscard]] bool made_here(const Operand& operand) const;

  // The value that an equal map already made, or a new one.
  Value map(MapFn fn, std::vector<Value> in, const std::string& name, double constant = 0);
  Value pairs(PairFn fn, std::vector<Value> in, const std::string& name, std::int64_t distance);
  Value row_reduce(ReduceFn fn, Value in, const std::string& name);
  // The sum of each row of the operand, or of every second column of it: of resident rows, or
  // loaded by each tile.
  Value row_sum(const Operand& operand, std::int64_t every, std::int64_t first,
                const std::string& name);
  Value column_sum(Value in, const std::string& name);
  Value group_reduce(ReduceFn fn, Value in, std::int64_t group, const std::string& name);
  // Row m is row m / tokens of the operand.
  Value sequence(const Operand& operand, std::int64_t tokens, const std::string& name);
  Value one_hot(const Operand& ids, std::int64_t cols);
  Value fresh(const std::string& name);  // the next free value, with a unique name
  void emit(Primitive primitive);

  // `value` is the operator's result `written`. Stores the columns that other kernels read, or all
  // of an output or cache. `vector`: the value comes from a row reduction, one number a row, or
  // from a column reduction, one a column.
  void produce(const Operand& written, Value value, bool vector = false, Axis axis = Axis::rows);
  // The mainloop's result, value 0.
  void produce_result(const Operand& written, const std::string& name = "y");

  Program finish();

 private:
  struct Known {
    Operand operand;
    Value value;
    bool vector;
    Axis axis = Axis::rows;
  };
  Value find(const Operand& operand);
  void store(const Operand& to, const Known& known);
  [[nodiscard]] std::vector<Operand> wanted_elsewhere(const Operand& written) const;

  const Graph& graph_;
  std::vector<OpId> ops_;
  Program program_;
  std::vector<Known> made_;    // results of operators of this kernel
  std::vector<Known> loaded_;  // operands and columns already at hand
  std::set<std::string> taken_;
  std::int64_t cols_ = 0;
  Value next_ = 1;  // 0 is the mainloop's
  bool to_prologue_ = false;
};

}  // namespace fuseline
