// Graphs of one scan or one convolution along rows, and the mixer block that is made of both.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"
#include "model/operators/all_operators.h"
#include "model/reference.h"
#include "tests/model/tiny_models.h"

namespace fuseline::test {

struct ScanCase {
  ScanShape shape;
  bool state = false;        // it begins with a given state
  bool state_after = false;  // it stores the state behind its last token
  Dtype dtype = Dtype::fp32;
};

inline std::string describe(const ScanCase& c) {
  const ScanShape& s = c.shape;
  return "B " + std::to_string(s.batch) + " T " + std::to_string(s.tokens) + " H " +
         std::to_string(s.heads) + " G " + std::to_string(s.groups) + " P " +
         std::to_string(s.head_width) + " N " + std::to_string(s.state_width) + " chunk " +
         std::to_string(s.chunk) + (c.state ? " from a state" : "") +
         (c.state_after ? " to a state" : "");
}

// Odd sizes; a chunk seldom divides the tokens, and is now and then longer than all of them.
inline ScanCase random_scan(std::mt19937& random) {
  ScanShape s;
  s.groups = pick(random, 1, 3);
  s.heads = s.groups * pick(random, 1, 3);
  s.head_width = pick(random, 1, 13);
  s.state_width = pick(random, 1, 17);
  s.batch = pick(random, 1, 3);
  s.tokens = random() % 5 == 0 ? 1 : pick(random, 2, 40);
  s.chunk = random() % 4 == 0 ? 1 : pick(random, 2, 24);
  return {s, random() % 2 == 0, random() % 2 == 0, random() % 3 == 0 ? Dtype::bf16 : Dtype::fp32};
}

class GraphMaker {
 public:
  Operand add(const std::string& name, Role role, std::int64_t rows, std::int64_t cols,
              Dtype dtype) {
    return graph.whole(
        graph.add_tensor({.name = name, .role = role, .dtype = dtype, .rows = rows, .cols = cols}));
  }
  // An operator whose result is the activation of its name.
  Operand step(const std::string& name, OpKind kind, std::vector<Operand> reads, std::int64_t cols,
               Dtype dtype, const Attributes& attributes = {}, Role role = Role::activation) {
    const Operand made = add(name, role, reads[0].rows, cols, dtype);
    graph.add_op({.name = name + "_op",
                  .kind = kind,
                  .reads = std::move(reads),
                  .writes = {made},
                  .attributes = attributes,
                  .site = name});
    return made;
  }
  Operand columns(const Operand& of, std::int64_t begin, std::int64_t count) const {
    return graph.columns(of.tensor, of.col_begin + begin, count);
  }
  Graph graph;
};

inline Graph scan_graph(const ScanCase& c) {
  GraphMaker g;
  const ScanShape& s = c.shape;
  const std::int64_t rows = s.batch * s.tokens;
  const std::int64_t state_rows = s.batch * s.heads * s.head_width;
  Op op{.name = "scan", .kind = operators::state_scan, .attributes = s, .site = "mixer"};
  op.reads = {g.add("x", Role::input, rows, s.heads * s.head_width, c.dtype),
              g.add("log_decay", Role::input, rows, s.heads, Dtype::fp32),
              g.add("k", Role::input, rows, s.groups * s.state_width, c.dtype),
              g.add("q", Role::input, rows, s.groups * s.state_width, c.dtype)};
  op.writes = {g.add("y", Role::output, rows, s.heads * s.head_width, c.dtype)};
  if (c.state)
    op.reads.push_back(g.add("state", Role::cache, state_rows, s.state_width, Dtype::fp32));
  if (c.state_after)
    op.writes.push_back(g.add("state_after", Role::output, state_rows, s.state_width, Dtype::fp32));
  g.graph.add_op(op);
  return std::move(g.graph);
}

// The same recurrence by steps and rates: one rate a head, or one a column of its state.
inline Graph selective_graph(const ScanCase& c, bool rates_of_columns) {
  const ScanShape& s = c.shape;
  const std::int64_t rows = s.batch * s.tokens;
  GraphMaker g;
  Op op{.name = "scan", .kind = operators::selective_scan, .attributes = s, .site = "mixer"};
  op.reads = {
      g.add("x", Role::input, rows, s.heads * s.head_width, c.dtype),
      g.add("dt", Role::input, rows, s.heads, Dtype::fp32),
      g.add("k", Role::input, rows, s.groups * s.state_width, c.dtype),
      g.add("q", Role::input, rows, s.groups * s.state_width, c.dtype),
      g.add("rates", Role::weight, s.heads, rates_of_columns ? s.state_width : 1, Dtype::fp32)};
  op.writes = {g.add("y", Role::output, rows, s.heads * s.head_width, c.dtype)};
  if (c.state) {
    op.reads.push_back(
        g.add("state", Role::cache, s.batch * s.heads * s.head_width, s.state_width, Dtype::fp32));
    op.writes.push_back(op.reads.back());
  }
  g.graph.add_op(op);
  return std::move(g.graph);
}

// The steps are softplus of what is given, as in Mamba.
inline Graph scan_of_steps(const ScanCase& c, bool rates_of_columns) {
  const ScanShape& s = c.shape;
  const std::int64_t rows = s.batch * s.tokens;
  GraphMaker g;
  const Operand raw = g.add("raw", Role::input, rows, s.heads, c.dtype);
  const Operand dt = g.step("dt", operators::softplus, {raw}, s.heads, Dtype::fp32);
  const Operand x = g.add("x", Role::input, rows, s.heads * s.head_width, c.dtype);
  const Operand k = g.add("k", Role::input, rows, s.groups * s.state_width, c.dtype);
  const Operand q = g.add("q", Role::input, rows, s.groups * s.state_width, c.dtype);
  const Operand rates =
      g.add("rates", Role::weight, s.heads, rates_of_columns ? s.state_width : 1, Dtype::fp32);
  g.step("y", operators::selective_scan, {x, dt, k, q, rates}, x.cols, c.dtype, s, Role::output);
  return std::move(g.graph);
}

// Normal numbers; decays from none at all to one that forgets everything.
inline NamedTensors scan_inputs(const Graph& graph, std::mt19937& random) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> decay(-1.5, 0.0);
  NamedTensors values;
  for (const Tensor& t : graph.tensors()) {
    if (t.role == Role::output || t.role == Role::activation) continue;
    std::vector<double>& v = values[t.name];
    v.resize(static_cast<std::size_t>(t.rows * t.cols));
    for (double& e : v) {
      if (t.name == "dt")
        e = -decay(random);
      else if (t.name == "rates")
        e = 2 * decay(random);
      else if (t.name != "log_decay")
        e = random() % 23 == 0 ? 7 * normal(random) : normal(random);
      else
        e = random() % 11 == 0 ? 0.0 : random() % 13 == 0 ? -60.0 : decay(random);
    }
  }
  return values;
}

inline Graph conv_graph(const ConvolutionShape& shape, std::int64_t cols, bool before,
                        Dtype dtype = Dtype::fp32) {
  GraphMaker g;
  std::vector<Operand> reads{g.add("x", Role::input, shape.batch * shape.tokens, cols, dtype),
                             g.add("w", Role::weight, shape.taps, cols, dtype)};
  if (before)
    reads.push_back(g.add("before", Role::cache, shape.batch * (shape.taps - 1), cols, dtype));
  g.step("y", operators::conv_rows, reads, cols, dtype, shape, Role::output);
  return std::move(g.graph);
}

// A mixer in the manner of Mamba-2: in_proj -> z, x | k | q, dt; a short convolution and SiLU of
// the middle columns; the scan; D·x added; gate with SiLU(z); norm; out_proj.
inline Graph mixer_graph(const ScanShape& s, std::int64_t D, std::int64_t taps, Dtype dtype) {
  GraphMaker g;
  const std::int64_t rows = s.batch * s.tokens;
  const std::int64_t inner = s.heads * s.head_width;
  const std::int64_t keys = s.groups * s.state_width;
  const std::int64_t middle = inner + 2 * keys;
  const std::int64_t wide = inner + middle + s.heads;
  const Operand input = g.add("input", Role::input, rows, D, dtype);
  const Operand w_in = g.add("w_in", Role::weight, wide, D, dtype);
  const Operand w_conv = g.add("w_conv", Role::weight, taps, middle, dtype);
  const Operand b_conv = g.add("b_conv", Role::weight, 1, middle, dtype);
  const Operand skip_weight = g.add("d_skip", Role::weight, 1, inner, dtype);
  const Operand norm_weight = g.add("norm_weight", Role::weight, 1, inner, dtype);
  const Operand w_out = g.add("w_out", Role::weight, D, inner, dtype);

  const Operand all =
      g.step("projected", operators::gemm, {input, w_in}, wide, dtype, GemmLayout{});
  const Operand z = g.columns(all, 0, inner);
  const Operand dt = g.columns(all, inner + middle, s.heads);
  const Operand conv = g.step("conv", operators::conv_rows, {g.columns(all, inner, middle), w_conv},
                              middle, dtype, ConvolutionShape{s.batch, s.tokens, taps});
  const Operand biased = g.step("biased", operators::bias_add, {conv, b_conv}, middle, dtype);
  const Operand mixed = g.step("mixed", operators::silu, {biased}, middle, dtype);
  const Operand dt2 = g.step("dt2", operators::square, {dt}, s.heads, Dtype::fp32);
  const Operand log_decay =
      g.step("log_decay", operators::scale, {dt2}, s.heads, Dtype::fp32, Scalar{-0.5});
  const Operand x = g.columns(mixed, 0, inner);
  const Operand y =
      g.step("y", operators::state_scan,
             {x, log_decay, g.columns(mixed, inner, keys), g.columns(mixed, inner + keys, keys)},
             inner, dtype, s);
  const Operand skip = g.step("skip", operators::mul_cols, {x, skip_weight}, inner, dtype);
  const Operand with_skip = g.step("with_skip", operators::residual_add, {y, skip}, inner, dtype);
  const Operand gate = g.step("gate", operators::silu, {z}, inner, dtype);
  const Operand gated = g.step("gated", operators::mul, {with_skip, gate}, inner, dtype);
  const Operand normed =
      g.step("normed", operators::rms_norm, {gated, norm_weight}, inner, dtype, NormEps{1e-5});
  g.step("output", operators::gemm, {normed, w_out}, D, dtype, GemmLayout{}, Role::output);
  return std::move(g.graph);
}

}  // namespace fuseline::test
