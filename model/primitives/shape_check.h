// What a primitive's check may ask and say: shapes of the values before it, the index space, and
// problems in words.
#pragma once

#include <string>
#include <vector>

#include "model/primitives/shapes.h"
#include "model/program.h"
#include "model/program_space.h"
#include "model/programs/problem.h"

namespace fuseline {

class ShapeCheck {
 public:
  ShapeCheck(const Graph& graph, const Program& program) : graph_(graph), program_(program) {}

  // Of all primitives and the mainloop, in program order.
  std::vector<ProgramProblem> run();

  // `rule`: its name in model/programs/rules.h.
  void problem(const std::string& text, const char* rule = "shape");
  [[nodiscard]] std::string name(const Operand& o) const { return graph_.tensor(o.tensor).name; }
  static std::string text(Value v) { return "value " + std::to_string(v); }

  // The value's shape; null, with a problem, when nothing before makes it.
  const ValueShape* use(Value v);
  // A problem where the operand is not [rows, cols].
  void expect(const Operand& o, std::int64_t rows, std::int64_t cols, const char* what);
  // The same of a tile of `cols` columns; heads may lie side by side in it.
  void tile_operand(const Operand& o, std::int64_t cols);
  // Widths that tiles of this program can have: the index space, one of a pair, a slice.
  [[nodiscard]] bool width_known(std::int64_t cols) const;
  // What a tile reduction leaves: fp32, stored once.
  void partials(const Operand& o, std::int64_t rows, std::int64_t cols);
  void stored(const Operand& o);

  [[nodiscard]] const IndexSpace& space() const { return space_; }
  // In an attention prologue K and V have rows of their own.
  [[nodiscard]] bool in_prologue() const;
  // Whether the operand has a number for each row side by side, as a matrix of one row. Loops over
  // rows read and write such vectors; epilogues take the distance between rows from the matrix.
  [[nodiscard]] bool lies_flat(const Operand& o) const;
  // Rows of the scores of all heads of the attention mainloop.
  [[nodiscard]] std::int64_t score_rows() const;

 private:
  void check(const Primitive& primitive);
  void prologue_values(const AttentionMainloop& m);
  void attention_results(const AttentionMainloop& m);
  void define(Value v, const ValueShape& shape);

  const Graph& graph_;
  const Program& program_;
  std::vector<ProgramProblem> problems_;
  bool in_prologue_ = false;  // where it is
  int current_ = -1;
  ValueShapes values_;
  std::vector<Operand> stored_;
  IndexSpace space_;
};

}  // namespace fuseline
