#include "model/programs/mainloop_syntax.h"

#include <optional>
#include <utility>

#include "model/programs/syntax_arguments.h"

namespace fuseline {

namespace {

// An operand by name that is there in this kind of mainloop.
void needed(MainloopSyntax& line, std::string_view name, Operand& o) {
  std::optional<Operand> there = o.tensor.index >= 0 ? std::optional(o) : std::nullopt;
  line.named(name, there);
  if (there) o = *there;
}

}  // namespace

void gemm_syntax(GemmMainloop& m, Value& y, MainloopSyntax& line) {
  line.makes(y);
  line.operand(m.a);
  line.transposed(m.a_is_km);
  line.times();
  line.operand(m.b);
  bool transposed = !m.b_is_kn;
  line.transposed(transposed);
  m.b_is_kn = !transposed;
  line.flag("pairs", m.interleaved);
  line.number("batch", m.batch, 1);
  line.number("summed", m.summed, 1);
  const std::int64_t usual_m = m.a_is_km ? m.a.cols : m.a.rows;
  const std::int64_t usual_k = m.a_is_km ? m.a.rows : m.a.cols;
  const std::int64_t usual_n = m.b_is_kn ? m.b.cols : m.b.rows;
  if (m.M == 0) m.M = usual_m;
  if (m.N == 0) m.N = usual_n;
  if (m.K == 0) m.K = usual_k;
  line.number("M", m.M, usual_m);
  line.number("N", m.N, usual_n);
  line.number("K", m.K, usual_k);
  line.numbers("groups", m.groups);
  line.numbers("depths", m.depths);
  weight_argument(line, "weight", m.weight);
  line.named("beside", m.beside_b);
  activation_argument(line, "activation", m.activation);
  line.named("scale", m.a_scale);
  line.remark("mainloop, fp32 accumulate");
}

namespace {

void attention_operands(AttentionMainloop& m, MainloopSyntax& line) {
  line.named_value_of(m.q_value, m.q);
  line.named_value_of(m.k_value, m.k);
  line.named_value_of(m.v_value, m.v);
  if (m.gradient) {
    line.operand(m.gradient->dy);
    line.operand(m.gradient->log_sum_exp);
    line.operand(m.gradient->delta);
    line.flag("per_query_head", m.gradient->per_query_head);
  }
  line.named("bias", m.bias);
  line.named("k_scale", m.k_scale);
  line.named("v_scale", m.v_scale);
  attention_arguments(line, m.shape);
  line.close();
}

}  // namespace

void attention_syntax(AttentionMainloop& m, Value& y, MainloopSyntax& line) {
  line.makes_some(y, m.log_sum_exp);
  line.word("attention");
  line.open();
  attention_operands(m, line);
  line.remark("online softmax");
}

void attention_gradient_syntax(AttentionMainloop& m, Value& y, MainloopSyntax& line) {
  if (!m.gradient) m.gradient.emplace();
  Value* const all[] = {&y, &m.gradient->dk, &m.gradient->dv};
  line.makes(all);
  line.word("attention_gradient");
  line.open();
  attention_operands(m, line);
}

void scan_syntax(ScanMainloop& m, Value& y, MainloopSyntax& line) {
  line.makes(y);
  line.word("scan");
  line.open();
  for (Operand* o : {&m.x, &m.log_decay, &m.k, &m.q}) line.operand(*o);
  line.named("rates", m.rates);
  line.named("state", m.state);
  line.named("state_after", m.state_after);
  scan_arguments(line, m.shape);
  line.close();
  line.remark("a state that is carried along the tokens");
}

void scan_gradient_syntax(ScanMainloop& m, Value& y, MainloopSyntax& line) {
  if (!m.gradient) m.gradient.emplace();
  ScanGradient& g = *m.gradient;
  line.makes(y);
  line.word("scan_gradient");
  line.open();
  for (Operand* o : {&g.dy, &m.x, &m.log_decay, &m.k, &m.q}) line.operand(*o);
  line.named("rates", m.rates);
  line.named("states", g.states);
  needed(line, "d_decay", g.d_decay);
  needed(line, "dk", g.dk);
  needed(line, "dq", g.dq);
  line.named("d_rates", g.d_rates);
  scan_arguments(line, m.shape);
  line.close();
  line.remark("backwards, in pieces between kept states");
}

void stream_syntax(StreamMainloop& m, MainloopSyntax& line) { line.space(m.rows, m.cols); }

void row_syntax(RowMainloop& m, MainloopSyntax& line) {
  line.space(m.rows, m.cols);
  line.number("heads", m.heads, 1);
  line.number("tokens", m.tokens, 0);
}

}  // namespace fuseline
