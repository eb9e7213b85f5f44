// A primitive from outside the layers, in one file: row m of a tile is limited to
// [-limits[m], limits[m]]. Nothing else in the project names it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/primitive.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"

namespace fuseline::extension {

struct Clip {
  static constexpr const char* name = "clip";
  Value out;
  Value in;
  Operand limits;      // [M, 1]
  bool slope = false;  // its derivative instead: 1 between the limits, else 0

  [[nodiscard]] float of(float x, float limit) const {
    if (slope) return x > -limit && x < limit ? 1.0F : 0.0F;
    return std::min(std::max(x, -limit), limit);
  }

  // What it reads, makes and moves: passes ask for this and need not know what it is.
  [[nodiscard]] std::vector<Value> uses() const { return {in}; }
  [[nodiscard]] std::vector<Value> defines() const { return {out}; }
  [[nodiscard]] std::vector<Access> accesses() const {
    return {{.operand = limits, .reach = Reach::row_numbers}};
  }
  [[nodiscard]] std::vector<ValueShape> results(const ValueShapes& made, std::int64_t) const {
    return {shape_of(made, in)};
  }
  [[nodiscard]] std::vector<ColumnRelation> relations() const { return {{in, out}}; }
  [[nodiscard]] TileDemands demands() const { return {.elementwise = true}; }

  // What would be a mistake in a program, and how a program shows it.
  bool check(ShapeCheck& check) const {
    const ValueShape* s = check.use(in);
    if (s == nullptr) return false;
    if (s->form != Form::tile) check.problem("only tiles are clipped");
    check.expect(limits, check.space().rows, 1, "limits");
    return true;
  }
  [[nodiscard]] CodeLine text(const ProgramNames& names) const {
    return {fmt::format("{} = {}({})", names.name(out), function(), names.name(in)),
            "to " + names.text(limits)};
  }

  // On the CPU: one tile in fp32, its loads counted.
  void evaluate(TileContext& tile) const {
    const Matrix& x = tile.value(in);
    Matrix& to = tile.result(out);
    for (std::int64_t r = 0; r < to.rows; ++r) {
      float limit = 0;
      tile.memory().load(limits, tile.area().row_begin + r, 0, 1, &limit);
      for (std::int64_t c = 0; c < to.cols; ++c) to.row(r)[c] = of(x.row(r)[c], limit);
    }
  }

  // On the GPU: a device function of its own, and the call of it.
  void epilogue(EpilogueCode& code) const {
    code.device_function(device());
    const std::string x = code.use(in);
    const std::string f = code.parameter(accesses().front());
    code.define(out, fmt::format("{}(p.{}, {}, {})", function(), f, code.place(), x));
  }
  void stream(StreamCode& code) const {
    code.device_function(device());
    const std::string x = code.use(in);
    const std::string f = code.parameter(out, "row", accesses().front());
    code.step(function());
    code.define(out, fmt::format("{}(p.{}, {}, {})", function(), f, code.here(), x));
  }
  friend bool operator==(const Clip&, const Clip&) = default;

 private:
  [[nodiscard]] const char* function() const { return slope ? "clip_slope" : "clip"; }
  // For both kinds of kernels: each has its own load_rows and map_2.
  [[nodiscard]] std::string device() const {
    return fmt::format(
        R"(template <class Limits, class Place, class Tile>
FUSELINE_DEVICE Tile {}(const Limits& limits, const Place& place, const Tile& tile) {{
  return map_2(tile, load_rows(limits, place),
               [](float x, float limit) {{ return {}; }});
}}
)",
        function(),
        slope ? "x > -limit && x < limit ? 1.0F : 0.0F" : "fminf(fmaxf(x, -limit), limit)");
  }
};

}  // namespace fuseline::extension
