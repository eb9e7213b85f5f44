// A primitive that the project does not have, written as anybody would add one: this file alone.
// Row m of a tile is limited to [-limits[m], limits[m]].
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/primitives/epilogue_code.h"
#include "model/primitives/primitive.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"

namespace fuseline::test {

struct Clip {
  static constexpr const char* name = "clip";
  Value out;
  Value in;
  Operand limits;

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
  bool check(ShapeCheck& check) const {
    const ValueShape* s = check.use(in);
    if (s == nullptr) return false;
    if (s->form != Form::tile) check.problem("only tiles are clipped");
    check.expect(limits, check.space().rows, 1, "limits");
    return true;
  }
  [[nodiscard]] CodeLine text(const ProgramNames& names) const {
    return {fmt::format("{} = clip({})", names.name(out), names.name(in)),
            "to " + names.text(limits)};
  }
  void evaluate(TileContext& tile) const {
    const Matrix& x = tile.value(in);
    Matrix& to = tile.result(out);
    for (std::int64_t r = 0; r < to.rows; ++r) {
      float limit = 0;
      tile.memory().load(limits, tile.area().row_begin + r, 0, 1, &limit);
      for (std::int64_t c = 0; c < to.cols; ++c)
        to.row(r)[c] = std::clamp(x.row(r)[c], -limit, limit);
    }
  }
  void epilogue(EpilogueCode& code) const {
    const std::string x = code.use(in);
    const std::string f = code.parameter(accesses().front());
    code.define(out, fmt::format("clip(p.{}, {}, {})", f, code.place(), x));
  }
  void stream(StreamCode& code) const {
    const std::string x = code.use(in);
    const std::string f = code.parameter(out, "row", accesses().front());
    code.step(name);
    code.define(out, fmt::format("clip(p.{}, {}, {})", f, code.here(), x));
  }
  friend bool operator==(const Clip&, const Clip&) = default;
};

}  // namespace fuseline::test
