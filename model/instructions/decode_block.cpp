#include "model/instructions/decode_block.h"

#include <array>
#include <map>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include "model/primitives/primitives.h"

namespace fuseline {

namespace {

std::string function_of(const Primitive& p) {
  if (const auto* map = p.as<Map>()) return std::string(":") + map->fn->name.value;
  if (const auto* pair = p.as<PairMap>()) return std::string(":") + pair->fn->name.value;
  if (const auto* reduce = p.as<RowReduce>()) return std::string(":") + reduce->fn->name.value;
  if (const auto* reduce = p.as<TileReduce>()) return std::string(":") + reduce->fn->name.value;
  return "";
}

// The body in one line: "load_vector, map:mul 0 1, ...". Values count in the order in which they
// are made, so that equal bodies have equal lines whatever their values are called.
std::string line_of(const Program& program) {
  std::map<Value, std::size_t> numbers;
  if (!std::holds_alternative<RowMainloop>(program.mainloop)) numbers[0] = 0;
  std::string line;
  for (const Primitive& p : program.body) {
    if (!line.empty()) line += ", ";
    line += std::string(p.name()) + function_of(p);
    for (const Value v : p.uses())
      line += numbers.contains(v) ? fmt::format(" {}", numbers.at(v)) : " ?";
    for (const Value v : p.defines()) numbers.emplace(v, numbers.size());
  }
  return line;
}

constexpr std::string_view kFinish =
    "load_tile, row_reduce:sum 0, map:scale_by_constant 1, map:add_constant 2, map:rsqrt 3, "
    "store_vector 4";
constexpr std::string_view kQkv =
    "load_vector, map:mul 0 1, columns 2, load_table, load_table, pair_map:rope 3 4 5, columns 6, "
    "store_tile 7, columns 6, store_tile 8, columns 2, store_tile 9";
constexpr std::string_view kResidual =
    "load_tile, map:add 0 1, store_tile 2, tile_reduce:sum_squares 2";
constexpr std::string_view kGateUp = "load_vector, map:mul 0 1, pair_map:swiglu 2, store_tile 3";
constexpr std::string_view kAttention = "store_tile 0";

constexpr std::array<std::string_view, 7> kBodies{kFinish, kQkv,    kAttention, kResidual,
                                                  kFinish, kGateUp, kResidual};

// A whole tensor, rows behind each other.
bool is_whole(const Graph& graph, const Operand& o) {
  const Tensor& t = graph.tensor(o.tensor);
  return o.col_begin == 0 && o.cols == t.cols && o.rows == t.rows && o.at == RowRuns{};
}

class Reader {
 public:
  Reader(const Graph& graph, const Kernel& kernel) : graph_(graph), kernel_(kernel) {}

  std::variant<DecodeBlock, std::string> run() {
    for (const Program& p : kernel_.phases)
      if (const auto* a = std::get_if<AttentionMainloop>(&p.mainloop);
          a != nullptr && a->shape.q_tokens != 1)
        return "each sequence has more than one new token";
    if (kernel_.phases.size() != kBodies.size())
      return fmt::format("it has {} phases, not the {} of such a block", kernel_.phases.size(),
                         kBodies.size());
    for (std::size_t i = 0; i < kBodies.size(); ++i)
      if (const std::string line = line_of(phase(i)); line != kBodies.at(i))
        return fmt::format("phase {} is: {}", phase(i).name, line);
    const auto* qkv = product(1);
    const auto* attention = std::get_if<AttentionMainloop>(&phase(2).mainloop);
    const auto* out = product(3);
    const auto* gate_up = product(5);
    const auto* down = product(6);
    if (qkv == nullptr || attention == nullptr || out == nullptr || gate_up == nullptr ||
        down == nullptr)
      return "its products are not plain ones";
    read_norm(0, b_.x_stats, b_.r_norm1, b_.eps1);
    read_qkv(*qkv);
    read_attention(*attention);
    read_residual(3, *out, b_.w_o, b_.residual, b_.h, b_.h_stats);
    b_.attn = out->a;
    read_norm(4, b_.h_stats, b_.r_norm2, b_.eps2);
    b_.w_gate_up = gate_up->b;
    b_.act = body<StoreTile>(5, 3)->to;
    Operand h = b_.h;
    read_residual(6, *down, b_.w_down, h, b_.y, b_.y_stats);
    b_.inner = down->K;
    if (std::string problem = problem_of(*attention); !problem.empty()) return problem;
    if (!(h == b_.h && gate_up->a == b_.h && down->a == b_.act && b_.residual == b_.x &&
          gate_up->N == 2 * b_.inner))
      return "its products do not follow each other";
    return b_;
  }

 private:
  [[nodiscard]] const Program& phase(std::size_t i) const { return kernel_.phases.at(i); }
  template <class P>
  [[nodiscard]] const P* body(std::size_t i, std::size_t at) const {
    return phase(i).body.at(at).as<P>();
  }
  [[nodiscard]] const GemmMainloop* product(std::size_t i) const {
    const auto* m = std::get_if<GemmMainloop>(&phase(i).mainloop);
    const bool plain = m != nullptr && m->batch == 1 && !m->a_is_km && !m->b_is_kn &&
                       m->groups.empty() && !m->weight.quantised() && !m->activation.quantised();
    return plain && is_whole(graph_, m->b) ? m : nullptr;
  }

  void read_norm(std::size_t i, Operand& stats, Operand& r, double& eps) const {
    stats = body<LoadTile>(i, 0)->from;
    eps = body<Map>(i, 3)->constant;
    r = body<StoreVector>(i, 5)->to;
  }

  void read_qkv(const GemmMainloop& m) {
    b_.batch = m.M;
    b_.model = m.K;
    b_.x = m.a;
    b_.w_qkv = m.b;
    b_.cos = body<LoadTable>(1, 3)->from;
    b_.sin = body<LoadTable>(1, 4)->from;
    b_.q = body<StoreTile>(1, 7)->to;
    b_.new_k = body<StoreTile>(1, 9)->to;
    b_.new_v = body<StoreTile>(1, 11)->to;
  }

  void read_attention(const AttentionMainloop& m) {
    b_.heads = m.shape.heads;
    b_.kv_heads = m.shape.kv_heads;
    b_.width = m.shape.head_width;
    b_.context = m.shape.kv_tokens;
    b_.scale = m.shape.scale;
    b_.k = m.k;
    b_.v = m.v;
  }

  void read_residual(std::size_t i, const GemmMainloop& m, Operand& weight, Operand& residual,
                     Operand& to, Operand& stats) const {
    weight = m.b;
    residual = body<LoadTile>(i, 0)->from;
    to = body<StoreTile>(i, 2)->to;
    stats = body<TileReduce>(i, 3)->partial;
  }

  [[nodiscard]] std::string problem_of(const AttentionMainloop& m) const {
    const AttentionShape& a = m.shape;
    if (a.window > 0 || a.softcap > 0 || a.prefix > 0 || m.bias || m.gradient ||
        a.cache.quantised() || a.v_width() != a.head_width || m.q_value >= 0 || m.k_value >= 0 ||
        m.v_value >= 0 || m.log_sum_exp >= 0 || !(m.q == b_.q))
      return "its attention is not the plain one of all keys";
    if (!is_whole(graph_, m.k) || !is_whole(graph_, m.v)) return "its attention skips keys";
    const auto* first = body<Columns>(1, 6);
    const auto* keys = body<Columns>(1, 8);
    const auto* values = body<Columns>(1, 10);
    const auto* turned = body<Columns>(1, 2);
    const std::int64_t q = b_.q_rows(), kv = b_.kv_rows();
    if (!(turned->begin == 0 && turned->cols == q + kv && first->begin == 0 && first->cols == q &&
          keys->begin == q && keys->cols == kv && values->begin == q + kv && values->cols == kv))
      return "its queries, keys and values are not columns behind each other";
    const auto* rope = body<PairMap>(1, 5);
    if (rope->distance != 1 || b_.cos.rows != 1 || b_.cos.cols != b_.width || b_.width % 2 != 0)
      return "its rotation is not one of adjacent columns of whole heads";
    for (std::int64_t b = 0; b < b_.batch; ++b)
      for (const Operand* o : {&b_.new_k, &b_.new_v})
        if (o->tensor_row(b) != (b + 1) * b_.context - 1) return "its cache does not grow behind";
    return "";
  }

  const Graph& graph_;
  const Kernel& kernel_;
  DecodeBlock b_;
};

}  // namespace

std::variant<DecodeBlock, std::string> decode_block(const Graph& graph, const Kernel& kernel) {
  return Reader(graph, kernel).run();
}

}  // namespace fuseline
