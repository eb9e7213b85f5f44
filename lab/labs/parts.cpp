#include "lab/labs/parts.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/programs/legality.h"
#include "model/reference.h"
#include "sim/block/limits.h"
#include "sim/executor/float_formats.h"

namespace fuseline::lab {

Graph attention_graph(const AttentionShape& s) {
  Graph graph;
  const auto add = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return graph.whole(graph.add_tensor(
        {.name = name, .role = role, .dtype = s.dtype, .rows = rows, .cols = cols}));
  };
  const Operand q = add("q", Role::input, s.B * s.T, s.H * s.d);
  const Operand k = add("k", Role::input, s.B * s.S, s.H * s.d);
  const Operand v = add("v", Role::input, s.B * s.S, s.H * s.d);
  const Operand scores = add("scores", Role::activation, s.B * s.H * s.T, s.S);
  const Operand probs = add("probs", Role::activation, s.B * s.H * s.T, s.S);
  const Operand y = add("y", Role::output, s.B * s.T, s.H * s.d);
  fuseline::AttentionShape a;
  a.heads = a.kv_heads = s.H;
  a.head_width = s.d;
  a.batch = s.B;
  a.q_tokens = s.T;
  a.kv_tokens = s.S;
  a.causal = s.causal;
  a.scale = s.scale == 0 ? 1 / std::sqrt(static_cast<double>(s.d)) : s.scale;
  const auto op = [&](const char* name, OpKind kind, std::vector<Operand> reads, Operand write) {
    graph.add_op({.name = name,
                  .kind = kind,
                  .reads = std::move(reads),
                  .writes = {write},
                  .attributes = a,
                  .site = "attention"});
  };
  op("scores", operators::attention_scores, {q, k}, scores);
  op("softmax", operators::softmax, {scores}, probs);
  op("context", operators::attention_context, {probs, v}, y);
  return graph;
}

AttentionWork attention_work(const AttentionShape& shape) {
  const Graph graph = attention_graph(shape);
  AttentionWork work;
  work.one_operand = graph.tensor(*graph.find_tensor("q")).bytes();
  work.one_matrix = graph.tensor(*graph.find_tensor("scores")).bytes();
  for (const Op& op : graph.ops()) {
    work.unfused += bytes_read(graph, op) + bytes_written(graph, op);
    if (op.kind != operators::softmax) work.products += flops(graph, op);
  }
  const CompulsoryBytes compulsory = compulsory_bytes(graph);
  work.fused = compulsory.read + compulsory.written;
  return work;
}

Bytes bytes_of_role(const Graph& graph, Role role) {
  Bytes sum;
  for (const Tensor& t : graph.tensors()) {
    if (t.role == role) sum += t.bytes();
  }
  return sum;
}

Graph gemm_graph(std::int64_t M, std::int64_t N, std::int64_t K, Dtype dtype) {
  Graph graph;
  const auto add = [&](const char* name, Role role, std::int64_t rows, std::int64_t cols) {
    return graph.whole(
        graph.add_tensor({.name = name, .role = role, .dtype = dtype, .rows = rows, .cols = cols}));
  };
  const Operand x = add("x", Role::input, M, K);
  const Operand w = add("w", Role::weight, N, K);
  const Operand y = add("y", Role::output, M, N);
  graph.add_op(
      {.name = "gemm", .kind = operators::gemm, .reads = {x, w}, .writes = {y}, .site = "gemm"});
  return graph;
}

GemmWork gemm_work(std::int64_t M, std::int64_t N, std::int64_t K) {
  const Graph graph = gemm_graph(M, N, K);
  const CompulsoryBytes bytes = compulsory_bytes(graph);
  return {bytes.read + bytes.written, flops(graph)};
}

Seconds roofline_time(Flops flops, Bytes bytes, const Gpu& gpu) {
  return std::max(flops / tensor_peak(gpu, Dtype::bf16), bytes / gpu.hbm_bandwidth);
}

double ridge_point(const Gpu& gpu) {
  return tensor_peak(gpu, Dtype::bf16).value() / gpu.hbm_bandwidth.value();
}

std::string describe_ceilings(const Gpu& gpu) {
  return fmt::format("**{}** ({:g} TFLOP/s dense bf16 and fp16, HBM {:g} GB/s by datasheet)",
                     gpu.title, gpu.tensor_bf16.value() / 1e12, gpu.hbm_bandwidth.value() / 1e9);
}

NumberKey byte_key(double bytes, std::vector<Mistake> mistakes, const std::string& unit) {
  return {bytes, Dimension::bytes, unit, 3, std::move(mistakes)};
}

NumberKey time_key(double seconds, std::vector<Mistake> mistakes, const std::string& unit) {
  return {seconds, Dimension::time, unit, 3, std::move(mistakes)};
}

NumberKey ratio_key(double ratio, std::vector<Mistake> mistakes, const std::string& unit) {
  return {ratio, Dimension::ratio, unit, 3, std::move(mistakes)};
}

NumberKey whole_key(std::int64_t number, std::vector<Mistake> mistakes) {
  return {static_cast<double>(number), Dimension::plain, {}, 0, std::move(mistakes)};
}

ProgramFile own_programs(const std::string& text) {
  ProgramFile file = read_program_text(text, "the lab's own program");
  const std::vector<Diagnosis> mistakes = check_programs(file);
  FUSELINE_ASSERT(mistakes.empty(), mistakes.front().problem.message + "\n" + text);
  return file;
}

std::vector<double> bf16_values(const std::string& name, std::int64_t rows, std::int64_t cols,
                                std::uint64_t seed) {
  // An input of a graph of its own, as the executor's checks draw it. The copy makes it an input.
  Graph graph;
  const Operand in = graph.whole(graph.add_tensor(
      {.name = name, .role = Role::input, .dtype = Dtype::fp32, .rows = rows, .cols = cols}));
  const Operand out = graph.whole(graph.add_tensor({.name = name + "_squared",
                                                    .role = Role::output,
                                                    .dtype = Dtype::fp32,
                                                    .rows = rows,
                                                    .cols = cols}));
  graph.add_op({.name = "square", .kind = operators::square, .reads = {in}, .writes = {out}});
  std::vector<double> values = random_inputs(graph, seed).at(name);
  for (double& v : values) {
    v = executor::bf16_to_float(executor::float_to_bf16(executor::round_to_odd(v)));
  }
  return values;
}

double stored_tolerance(std::int64_t sum_length) {
  const double u_store = std::ldexp(1.0, -8);
  const double u_fp32 = std::ldexp(1.0, -24);
  return u_store + (2 * std::sqrt(static_cast<double>(sum_length)) + 8) * u_fp32;
}

}  // namespace fuseline::lab
