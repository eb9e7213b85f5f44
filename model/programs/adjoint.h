// How a program's lines hand the gradient back, from what they made to what they read. A primitive
// states it in its own file, as it states its meaning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/primitives/load_tile.h"
#include "model/primitives/map_function.h"
#include "model/primitives/values.h"
#include "model/program.h"

namespace fuseline {

// The gradients that a program finds in memory, and where its own go.
class GradientHomes {
 public:
  virtual ~GradientHomes() = default;
  // The gradient of what was stored there; nothing: no result depends on it.
  virtual std::optional<Operand> of_stored(const Operand& to) = 0;
  // Where the gradient of what was loaded goes; nothing: nobody asks for it. `add`: to what other
  // programs left there.
  virtual std::optional<Operand> of_loaded(const Operand& from, bool& add) = 0;
  // fp32 partials that a program of their own sums up: one row for each number of the vector.
  virtual Operand partials_of(const Operand& vector, std::int64_t rows, std::int64_t cols) = 0;
  // The tensor as the gradient's programs see it.
  virtual Operand again(const Operand& forward) = 0;
};

class ProgramAdjoint {
 public:
  ProgramAdjoint(const Program& program, GradientHomes& homes);

  // The gradient of a value. That of a number of a row or column may be a tile, whose sum along
  // the row or column is meant. Nothing: no result depends on the value.
  [[nodiscard]] std::optional<Value> of(Value v);
  // Adds to it what the line that made `out` hands back to `v`: of out's shape, or of v's.
  void add(Value v, Value part, Value out);

  // A value of the forward pass, made again.
  Value again(Value v);
  // A further line.
  Value map(MapFn fn, std::vector<Value> in, double constant = 0);
  // The derivative by one of the map's values, times d.
  Value times_derivative(const Primitive& map, std::size_t by, Value d);
  Value fresh(const std::string& name);
  void emit(Primitive line);
  [[nodiscard]] const ValueShape& shape(Value v) const { return shape_of(shapes_, v); }
  [[nodiscard]] bool rows_resident() const;
  [[nodiscard]] std::int64_t rows() const;  // of the index space
  // One number for each row, of a tile of a row loop.
  Value summed_along_row(Value tile);

  [[nodiscard]] GradientHomes& homes() { return homes_; }
  // MissingError: a line that states no gradient.
  [[noreturn]] void missing(const std::string& what) const;

  // Runs the lines backwards. Then: the lines of the program that does it, and whether they need
  // the product again. The product's own gradient is of(0).
  void run();
  [[nodiscard]] std::vector<Primitive> lines() const;
  [[nodiscard]] bool product_again() const { return product_again_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Tiles of the forward pass from each of which all that is made again follows without the
  // product, the last first. The product itself is the last of them.
  [[nodiscard]] std::vector<Value> in_place_of_product() const;
  // Loads such a tile, so that the product is not needed again.
  void load_again(Value v, const Operand& from);
  // Where the gradient of the product lies already, where no line makes it anew.
  [[nodiscard]] std::optional<Operand> product_in_memory() const;

 private:
  const Program& program_;
  GradientHomes& homes_;
  ValueShapes shapes_;
  std::vector<std::string> names_;
  // Lines that make what the gradient's lines read again, where `loaded` is there already (-1:
  // nothing is); nothing: they need the product.
  [[nodiscard]] std::optional<std::vector<bool>> made_again(Value loaded) const;

  std::map<Value, std::vector<Value>> parts_;
  std::optional<LoadTile> loaded_;
  std::vector<bool> needed_;  // lines of the body, made again
  std::vector<Primitive> lines_;
  bool product_again_ = false;
};

}  // namespace fuseline
