#include "model/blocks/block_parts.h"

#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/operators/all_operators.h"

namespace fuseline {

namespace {

std::string shape(const std::string& rows, const std::string& cols) {
  return "[" + rows + ", " + cols + "]";
}

}  // namespace

BlockParts::BlockParts(const ModelConfig& c, const Workload& w) : config(c), workload(w) {
  FUSELINE_ASSERT(c.D > 0 && c.F > 0 && c.H > 0 && c.Hkv > 0 && c.d > 0, c.name);
  FUSELINE_ASSERT(c.H % c.Hkv == 0, c.name);
  FUSELINE_ASSERT(w.batch > 0 && w.seq > 0, c.name);
  FUSELINE_ASSERT(w.kv_tokens() >= w.seq, c.name);
}

TensorId BlockParts::tensor(const std::string& name, const std::string& symbol, Role role,
                            std::int64_t rows, std::int64_t cols) {
  return graph.add_tensor({.name = name,
                           .symbol = symbol,
                           .role = role,
                           .dtype = workload.dtype,
                           .rows = rows,
                           .cols = cols});
}

void BlockParts::op(const std::string& name, OpKind kind, const std::string& site,
                    std::vector<Operand> reads, std::vector<Operand> writes,
                    const Attributes& attributes) {
  graph.add_op({.name = name,
                .kind = kind,
                .reads = std::move(reads),
                .writes = std::move(writes),
                .attributes = attributes,
                .site = site});
}

TensorId BlockParts::norm(const std::string& name, TensorId x, const std::string& result) {
  const std::int64_t width = graph.tensor(x).cols;
  std::vector<Operand> reads{whole(x)};
  reads.push_back(whole(tensor("w_" + name, "[1, D]", Role::weight, 1, width)));
  const bool layer = config.norm == NormKind::layer_norm;
  if (layer) reads.push_back(whole(tensor("b_" + name, "[1, D]", Role::weight, 1, width)));
  const TensorId y =
      tensor(result, graph.tensor(x).symbol, Role::activation, graph.tensor(x).rows, width);
  op(name, layer ? operators::layer_norm : operators::rms_norm, name, std::move(reads), {whole(y)},
     NormEps{config.norm_eps});
  return y;
}

TensorId BlockParts::linear(TensorId x, const Linear& spec) {
  const std::int64_t rows = graph.tensor(x).rows;
  const std::string symbol = shape(spec.rows_symbol, spec.width_symbol);
  const TensorId w = tensor("w_" + spec.weight, shape(spec.width_symbol, spec.inner_symbol),
                            Role::weight, spec.width, graph.tensor(x).cols);
  if (!spec.bias) {
    const TensorId y = tensor(spec.result, symbol, spec.result_role, rows, spec.width);
    op(spec.op, operators::gemm, spec.site, {whole(x), whole(w)}, {whole(y)});
    return y;
  }
  const TensorId product = tensor(spec.result + "_mm", symbol, Role::activation, rows, spec.width);
  op(spec.op, operators::gemm, spec.site, {whole(x), whole(w)}, {whole(product)});
  const TensorId b =
      tensor("b_" + spec.weight, shape("1", spec.width_symbol), Role::weight, 1, spec.width);
  const TensorId y = tensor(spec.result, symbol, spec.result_role, rows, spec.width);
  op(spec.op + "_bias", operators::bias_add, spec.site, {whole(product), whole(b)}, {whole(y)});
  return y;
}

TensorId BlockParts::attention(const Operand& q, const Operand& k, const Operand& v) {
  const std::int64_t T = workload.seq;
  const std::int64_t S = workload.kv_tokens();
  const std::int64_t kv_width = config.Hkv * config.d;
  const AttentionShape attributes = attention_attributes();

  Operand keys = k;
  Operand values = v;
  std::int64_t span = S;  // key tokens read per sequence
  std::string span_symbol = "S";
  if (workload.phase == Phase::decode) {
    const TensorId cache_k =
        tensor("cache_k", "[B·S, Hkv·d]", Role::cache, workload.batch * S, kv_width);
    const TensorId cache_v =
        tensor("cache_v", "[B·S, Hkv·d]", Role::cache, workload.batch * S, kv_width);
    const auto last_rows = [&](TensorId cache, std::int64_t count) {
      return graph.rows_of_parts(cache, workload.batch, S - count, count);
    };
    const Operand new_k = last_rows(cache_k, T);
    const Operand new_v = last_rows(cache_v, T);
    const Sequences rows{workload.batch, T};
    op("append_k", operators::cache_append, "kvcache", {k}, {new_k}, rows);
    op("append_v", operators::cache_append, "kvcache", {v}, {new_v}, rows);
    if (config.sliding_window > 0 && config.sliding_window + T - 1 < S) {
      span = config.sliding_window + T - 1;
      span_symbol = "window+T-1";
    }
    keys = last_rows(cache_k, span);
    values = last_rows(cache_v, span);
  }

  const std::int64_t score_rows = workload.batch * config.H * T;
  const std::string score_symbol = shape("B·H·T", span_symbol);
  const TensorId scores = tensor("scores", score_symbol, Role::activation, score_rows, span);
  op("scores", operators::attention_scores, "attention", {q, keys}, {whole(scores)}, attributes);
  const TensorId probs = tensor("probs", score_symbol, Role::activation, score_rows, span);
  op("softmax", operators::softmax, "attention", {whole(scores)}, {whole(probs)}, attributes);
  const TensorId attn = tensor("attn", shape("M", query_symbol()), Role::activation,
                               workload.rows(), config.H * config.d);
  op("context", operators::attention_context, "attention", {whole(probs), values}, {whole(attn)},
     attributes);
  return attn;
}

TensorId BlockParts::residual(const std::string& name, TensorId branch, TensorId stream,
                              const std::string& result, Role role) {
  const TensorId sum =
      tensor(result, "[M, D]", role, graph.tensor(stream).rows, graph.tensor(stream).cols);
  op(name, operators::residual_add, name, {whole(branch), whole(stream)}, {whole(sum)});
  return sum;
}

AttentionShape BlockParts::attention_attributes() const {
  AttentionShape a;
  a.heads = config.H;
  a.kv_heads = config.Hkv;
  a.head_width = config.d;
  a.batch = workload.batch;
  a.q_tokens = workload.seq;
  a.kv_tokens = workload.kv_tokens();
  a.window = config.sliding_window;
  // A single new token sees all of the cache, so no mask is needed.
  a.causal = workload.phase != Phase::decode || workload.seq > 1;
  a.scale = 1.0 / std::sqrt(static_cast<double>(config.d));
  return a;
}

std::string BlockParts::query_symbol() const {
  return config.H * config.d == config.D ? "D" : "H·d";
}

std::string BlockParts::qkv_symbol() const {
  const bool plain = config.H == config.Hkv && config.H * config.d == config.D;
  return plain ? "3D" : "(H+2Hkv)·d";
}

Graph build_block(const ModelConfig& config, const Workload& workload) {
  Graph forward = config.family == Family::llama ? build_llama_block(config, workload)
                                                 : build_gpt_block(config, workload);
  return workload.phase == Phase::train ? differentiate(forward) : forward;
}

}  // namespace fuseline
