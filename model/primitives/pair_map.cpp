#include "model/primitives/pair_map.h"

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "model/primitives/all_pairs.h"
#include "model/primitives/epilogue_code.h"
#include "model/primitives/shape_check.h"
#include "model/primitives/stream_code.h"
#include "model/primitives/tile_context.h"
#include "model/programs/adjoint.h"
#include "model/programs/all_lines.h"
#include "model/programs/known_functions.h"
#include "model/programs/meaning.h"

namespace fuseline {

namespace {

void swap_pairs(Matrix& m, std::int64_t distance, std::int64_t group) {
  for (std::int64_t r = 0; r < m.rows; ++r)
    for (std::int64_t g = 0; g + 2 * distance <= m.cols; g += group)
      for (std::int64_t j = 0; j < distance; ++j)
        std::swap(m.row(r)[g + j], m.row(r)[g + j + distance]);
}

// A sine of the other sign turns the other way.
Matrix negative(Matrix m) {
  for (float& v : m.data) v = -v;
  return m;
}

}  // namespace

PairForm PairMap::form() const { return fn->maths.value.form; }

void PairMap::rotate(StreamCode& code) const {
  const char* rope = fn->name;
  if (code.pairs_in_thread(distance)) {
    const std::string x = code.use(in.at(0));
    const std::string cos = code.use(in.at(1));
    const std::string sin = code.use(in.at(2));
    code.step(rope);
    code.define(out.at(0), fmt::format("{}<{}>({}, {}, {})", rope, distance == 1, x, cos, sin));
    return;
  }
  if (fn->apart == nullptr) code.refuse(fmt::format("{} of columns apart", rope));
  std::string arguments = code.place_of(in.at(0));
  for (const Value v : in) arguments += ", " + code.computed_at("there", code.cols(in[0]), v);
  code.step(rope);
  code.define(out.at(0), fmt::format(fmt::runtime(fn->apart), distance,
                                     head > 0 ? fmt::format(", {}", head) : "") +
                             "(" + arguments + ")");
}

std::vector<Value> PairMap::uses() const { return in; }

std::vector<Value> PairMap::defines() const { return out; }

std::vector<Access> PairMap::accesses() const { return {}; }

std::vector<ValueShape> PairMap::results(const ValueShapes& made, std::int64_t) const {
  const std::int64_t width = shape_of(made, in.front()).width;
  switch (form()) {
    case PairForm::rotated:
      return {shape_of(made, in.front())};
    case PairForm::joined:
      return {{Form::tile, width / 2}};
    case PairForm::gradient:
      return {{Form::tile, width}, {Form::tile, width / 2}};
  }
  FUSELINE_ASSERT(false, "unknown pair map");
}

std::vector<ColumnRelation> PairMap::relations() const {
  const auto half = [this](Value v) { return ColumnRelation{in[0], v, 1, 2, 0, true}; };
  switch (form()) {
    case PairForm::rotated:
      return {{in[0], out[0]}};
    case PairForm::joined:
      return {half(out[0])};
    case PairForm::gradient:
      return {{in[0], out[0]}, half(in[1]), half(out[1])};
  }
  FUSELINE_ASSERT(false, "unknown pair map");
}

TileDemands PairMap::demands() const {
  const std::int64_t apart = distance > 1 ? distance : 0;
  if (head > 0)
    return {.column_group = head, .column_run = std::gcd(head, distance), .other_columns = true};
  return {.column_group = 2 * distance, .column_run = apart, .pair_distance = apart};
}

bool PairMap::check(ShapeCheck& check) const {
  const std::size_t ins = rotates() ? 3 : form() == PairForm::joined ? 1 : 2;
  const std::size_t outs = form() == PairForm::gradient ? 2 : 1;
  if (in.size() != ins || out.size() != outs) {
    check.problem("a pair map of the wrong number of values");
    return false;
  }
  std::vector<ValueShape> shapes;
  for (const Value v : in) {
    const ValueShape* s = check.use(v);
    if (s == nullptr) return false;
    shapes.push_back(*s);
  }
  const std::int64_t width = shapes[0].width;
  if (shapes[0].form != Form::tile) check.problem("a pair map needs a tile");
  if (width % 2 != 0)
    check.problem("pairs of " + std::to_string(width) + " columns: the width is odd",
                  "pair-across-tiles");
  if (head > 0 && (!rotates() || distance == 1 || 2 * distance > head || width % head != 0))
    check.problem("pairs in the first columns of every " + std::to_string(head),
                  "pair-across-tiles");
  if (distance < 1 || (distance > 1 && head == 0 && width % (2 * distance) != 0))
    check.problem("pairs " + std::to_string(distance) + " columns apart do not fill " +
                      std::to_string(width) + " columns",
                  "pair-across-tiles");
  if (!check.space().tiles_of_pairs && !check.in_prologue()) {
    if (distance != 1)
      check.problem("the pairs are " + std::to_string(distance) +
                        " columns apart, not adjacent: a GEMM tile does not hold both",
                    "pair-across-tiles");
    else if (!check.space().interleaved)
      check.problem("adjacent columns are no pairs: the weight's rows are not interleaved",
                    "pair-across-tiles");
  }
  if (rotates()) {
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      if (shapes[i].form != Form::table || width % shapes[i].width != 0)
        check.problem("a rotation needs tables whose width divides " + std::to_string(width));
  } else if (form() == PairForm::gradient &&
             (shapes[1].form != Form::tile || shapes[1].width * 2 != width)) {
    check.problem("the gradient of a pair's result must be half as wide as the pairs");
  }
  return true;
}

CodeLine PairMap::text(const ProgramNames& names) const {
  std::string to;
  for (const Value v : out) to += (to.empty() ? "" : ", ") + names.name(v);
  std::string from = names.name(in.at(0)) + " pairs";
  for (std::size_t i = 1; i < in.size(); ++i) from += ", " + names.name(in[i]);
  std::string comment =
      distance == 1 ? "adjacent columns" : fmt::format("columns {} apart", distance);
  if (head > 0) comment += fmt::format(" in the first {} of every {}", 2 * distance, head);
  if (!rotates()) comment += " (gate, up)";
  return {fmt::format("{} = {}({})", to, fn->name.value, from), comment};
}

void PairMap::evaluate(TileContext& tile) const {
  Matrix& x = tile.value(in[0]);
  if (tile.fault() == EvaluationFault::swaps_pairs) swap_pairs(x, distance, group());
  const auto& apply = fn->maths.value.apply;
  Matrix& to = tile.result(out[0]);
  switch (form()) {
    case PairForm::rotated: {
      Matrix turned_cos, turned_sin, other_way;
      const Matrix* sin = &tile.operand(in[2], out[0], turned_sin);
      if (tile.fault() == EvaluationFault::wrong_sign) sin = &(other_way = negative(*sin));
      return apply({.pairs = x,
                    .second = &tile.operand(in[1], out[0], turned_cos),
                    .third = sin,
                    .distance = distance,
                    .group = group(),
                    .out = to});
    }
    case PairForm::joined:
      return apply({.pairs = x, .distance = distance, .group = group(), .out = to});
    case PairForm::gradient:
      return apply({.pairs = x,
                    .second = &tile.value(in[1]),
                    .distance = distance,
                    .group = group(),
                    .out = to,
                    .again = &tile.result(out[1])});
  }
}

void PairMap::epilogue(EpilogueCode& code) const {
  FUSELINE_ASSERT(distance == 1, "a GEMM tile has adjacent pairs only");
  if (fn->device != nullptr) code.device_function(fn->device);
  std::string arguments;
  for (const Value v : in) arguments += (arguments.empty() ? "" : ", ") + code.use(v);
  const std::string call = fmt::format("{}({})", fn->name.value, arguments);
  if (form() != PairForm::gradient) return code.define(out.at(0), call);
  const std::string both = code.variable("gradient", call);
  code.name(out.at(0), both + ".pairs");
  code.name(out.at(1), both + ".again");
}

void PairMap::stream(StreamCode& code) const {
  if (fn->device != nullptr) code.device_function(fn->device);
  if (rotates()) return rotate(code);
  if (distance != 1) code.refuse("a pair map of gate and up that are not adjacent columns");
  const char* function = fn->name;
  const std::string pairs = code.use(in.at(0));
  if (form() == PairForm::joined) {
    code.define(out.at(0), fmt::format("{}({})", function, pairs));
    return code.step(function);
  }
  const std::string d = code.use(in.at(1));
  code.step(function);
  const std::string both = code.unique("gradient");
  code.line(fmt::format("const auto {} = {}({}, {});", both, function, pairs, d));
  code.name(out.at(0), both + ".pairs");
  code.name(out.at(1), both + ".again");
}

namespace {

void syntax(PairMap& p, Syntax& line) {
  std::vector<Value*> results;
  for (Value& v : p.out) results.push_back(&v);
  line.makes(results);
  line.word(p.fn->name.value);
  line.open();
  line.value(p.in.at(0));
  line.word("pairs");
  for (std::size_t i = 1; i < p.in.size(); ++i) line.value(p.in[i]);
  line.number("distance", p.distance, 1);
  line.number("head", p.head, 0);
  line.close();
  line.remark(std::string(p.distance == 1 ? "adjacent columns" : "columns that far apart") +
              (p.rotates() ? "" : " (gate, up)"));
}

void meaning(const PairMap& p, Meaning& exact) {
  const ExactMatrix x = exact.value(p.in[0]);
  const bool again = p.form() == PairForm::gradient;
  const ValueFunction& first = meaning_of(p.fn, 0);
  const ValueFunction& other = p.form() == PairForm::joined ? first : meaning_of(p.fn, 1);
  const ValueFunction& joined = again ? meaning_of(p.fn, 2) : first;
  const ExactMatrix second = p.in.size() > 1 ? exact.value(p.in[1]) : x;
  const ExactMatrix third = p.in.size() > 2 ? exact.value(p.in[2]) : x;
  ExactMatrix to = x;  // a rotation keeps the columns behind its pairs
  ExactMatrix half{x.rows, x.cols / 2};
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t g = 0; g < x.cols; g += p.group())
      for (std::int64_t j = 0; j < p.distance; ++j) {
        const std::int64_t a = g + j, b = a + p.distance, c = g / 2 + j;
        const double of[] = {x.at(r, a), x.at(r, b), again ? second.at(r, c) : 0.0};
        if (p.rotates()) {
          const double sines[] = {third.repeated(r, a), third.repeated(r, b)};
          const double left[] = {of[0], of[1], second.repeated(r, a), sines[0], sines[1]};
          const double right[] = {of[0], of[1], second.repeated(r, b), sines[1], sines[0]};
          to.at(r, a) = first(left);
          to.at(r, b) = other(right);
          continue;
        }
        half.at(r, c) = joined(of);
        if (!again) continue;
        to.at(r, a) = first(of);
        to.at(r, b) = other(of);
      }
  if (p.form() == PairForm::joined) return exact.make(p.out[0], std::move(half));
  exact.make(p.out[0], std::move(to));
  if (again) exact.make(p.out[1], std::move(half));
}

void adjoint(const PairMap& p, ProgramAdjoint& back) {
  const auto d = back.of(p.out[0]);
  if (!d) return;
  const auto gradient_of = [](PairFn fn) -> std::optional<PairFn> {
    if (fn == PairFn(pairs::swiglu)) return pairs::swiglu_backward;
    if (fn == PairFn(pairs::geglu)) return pairs::geglu_backward;
    if (fn == PairFn(pairs::rope)) return pairs::rope_inverse;
    if (fn == PairFn(pairs::rope_inverse)) return pairs::rope;
    return std::nullopt;
  };
  const std::optional<PairFn> fn = gradient_of(p.fn);
  if (!fn || back.shape(*d).form != Form::tile) back.missing(p.fn->name.value);
  PairMap line{
      .out = {back.fresh("g")}, .fn = *fn, .in = {}, .distance = p.distance, .head = p.head};
  if (p.form() == PairForm::joined) {
    line.out.push_back(back.fresh("o"));
    line.in = {back.again(p.in[0]), *d};
  } else {
    line.in = {*d, back.again(p.in[1]), back.again(p.in[2])};
  }
  const Value made = line.out[0];
  back.emit(std::move(line));
  back.add(p.in[0], made, made);
}

}  // namespace

void lines::pair_map(LineForms& forms) {
  forms.of<PairMap>(syntax, meaning, adjoint);
  for (const PairFn fn : pair_functions()) {
    const PairForm form = fn->maths.value.form;
    const std::size_t reads = form == PairForm::rotated ? 3 : form == PairForm::joined ? 1 : 2;
    forms.makes(fn->name.value,
                PairMap{.out = std::vector<Value>(form == PairForm::gradient ? 2 : 1),
                        .fn = fn,
                        .in = std::vector<Value>(reads)});
  }
}

}  // namespace fuseline
