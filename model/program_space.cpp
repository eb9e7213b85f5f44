#include "model/program_space.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace fuseline {

namespace {

std::string size_text(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

class Description {
 public:
  Description(const Graph& graph, const Program& program, std::vector<std::string>& problems)
      : graph_(graph), program_(program), problems_(problems) {}

  IndexSpace run() {
    std::visit([this](const auto& m) { describe(m); }, program_.mainloop);
    return space_;
  }

 private:
  void problem(const std::string& text) { problems_.push_back(program_.name + ": " + text); }
  std::string name(const Operand& o) const { return graph_.tensor(o.tensor).name; }
  void expect(const Operand& o, std::int64_t rows, std::int64_t cols, const char* what) {
    const std::string wrong = wrong_shape(graph_, o, rows, cols, what);
    if (!wrong.empty()) problem(wrong);
  }

  void describe(const GemmMainloop& m) {
    space_.rows = m.M * m.batch;
    space_.cols = m.N;
    space_.batch = m.batch;
    space_.interleaved = m.interleaved;
    if (m.M < 1 || m.N < 1 || m.K < 1 || m.batch < 1) problem("a GEMM dimension is below 1");
    describe_weight(m);
    describe_activation(m);
    if (!m.groups.empty()) return describe_groups(m);
    if (!m.depths.empty()) return describe_depths(m);
    if (m.batch == 1) {
      expect(m.a, m.a_is_km ? m.K : m.M, m.a_is_km ? m.M : m.K, "operand a =");
      expect(m.b, m.b_is_kn ? m.K : m.N, m.b_is_kn ? m.N : m.K, "operand b =");
      return;
    }
    // Heads may share an operand: its elements divide those of all batches.
    for (const auto& [operand, elements] :
         {std::pair{&m.a, m.batch * m.M * m.K}, std::pair{&m.b, m.batch * m.N * m.K}}) {
      if (elements % (operand->rows * operand->cols) != 0)
        problem("operand " + name(*operand) + " " + size_text(operand->rows, operand->cols) +
                " is no batch of " + std::to_string(m.batch) + " matrices");
    }
    if (m.summed < 1 || m.batch % m.summed != 0)
      problem("a batch of " + std::to_string(m.batch) + " in sums of " + std::to_string(m.summed));
    else
      space_.rows /= m.summed;
  }

  // Codes without their scales are no weight, and scales of other numbers are none of them.
  void describe_weight(const GemmMainloop& m) {
    const std::vector<ScaleTensor> beside = m.weight.beside(m.N, m.K);
    const Dtype stored = graph_.tensor(m.b.tensor).dtype;
    if (m.weight.quantised() && stored != m.weight.element())
      problem("operand " + name(m.b) + " is " + name_of(stored) + ", not " +
              name_of(m.weight.element()));
    if (m.weight.quantised() && (m.batch != 1 || m.a_is_km || m.b_is_kn))
      problem("a weight in " + m.weight.name() + " in a batch or with exchanged operands");
    if (beside.size() != m.beside_b.size())
      return problem("operand " + name(m.b) + " has " + std::to_string(m.beside_b.size()) +
                     " tensors beside it, not " + std::to_string(beside.size()));
    const std::int64_t groups = std::max<std::int64_t>(1, std::ssize(m.groups));
    for (std::size_t i = 0; i < beside.size(); ++i) {
      const ScaleTensor& t = beside[i];
      const std::int64_t matrices = t.kind == ScaleKind::tensor_scale ? 1 : groups;
      expect(m.beside_b[i], matrices * t.rows, t.cols, "scale");
      if (graph_.tensor(m.beside_b[i].tensor).dtype != t.type)
        problem("scale " + name(m.beside_b[i]) + " is not " + name_of(t.type));
    }
  }

  // Codes are multiplied by codes, and have a scale for each row or for each group of its columns.
  void describe_activation(const GemmMainloop& m) {
    const Dtype stored = graph_.tensor(m.a.tensor).dtype;
    if (m.activation.quantised() != m.a_scale.has_value())
      return problem("operand " + name(m.a) +
                     (m.a_scale ? " has scales, its format none" : " has no scales beside it"));
    if (!m.activation.quantised()) {
      if (size_of(stored).bits() <= 8)
        problem("operand " + name(m.a) + " is codes without a format");
      return;
    }
    if (stored != m.activation.element())
      problem("operand " + name(m.a) + " is " + name_of(stored) + ", not " +
              name_of(m.activation.element()));
    if (!m.weight.quantised() || m.weight.element() != m.activation.element())
      problem("codes of " + name(m.a) + " are multiplied by other numbers");
    const ScaleTensor scale = m.activation.beside(m.M, m.K).front();
    expect(*m.a_scale, scale.rows, scale.cols, "scale");
    if (graph_.tensor(m.a_scale->tensor).dtype != scale.type)
      problem("scale " + name(*m.a_scale) + " is not " + name_of(scale.type));
  }

  void describe_groups(const GemmMainloop& m) {
    std::int64_t rows = 0;
    for (const std::int64_t count : m.groups) {
      rows += count;
      if (count < 1) problem("a group of " + std::to_string(count) + " rows");
    }
    if (rows != m.M)
      problem("groups of " + std::to_string(rows) + " rows, the product has " +
              std::to_string(m.M));
    if (m.batch != 1 || m.summed != 1 || m.a_is_km || !m.depths.empty())
      problem("groups of rows in a batch or with an exchanged first operand");
    const std::int64_t matrices = std::ssize(m.groups);
    expect(m.a, m.M, m.K, "operand a =");
    expect(m.b, matrices * (m.b_is_kn ? m.K : m.N), m.b_is_kn ? m.N : m.K, "operand b =");
  }

  void describe_depths(const GemmMainloop& m) {
    std::int64_t sum = 0;
    for (const std::int64_t depth : m.depths) {
      sum += depth;
      if (depth < 0) problem("a product that sums " + std::to_string(depth) + " rows");
    }
    if (sum != m.K)
      problem("products of " + std::to_string(sum) + " rows, the operands have " +
              std::to_string(m.K));
    if (m.batch != std::ssize(m.depths) || m.summed != 1 || !m.a_is_km || !m.b_is_kn)
      problem("products of parts of k that are no batch or whose operands are not stored k first");
    expect(m.a, m.K, m.M, "operand a =");
    expect(m.b, m.K, m.N, "operand b =");
  }

  void describe(const AttentionMainloop& m) {
    const AttentionShape& s = m.shape;
    space_.rows = s.batch * s.q_tokens;
    space_.cols = s.heads * (m.gradient ? s.head_width : s.v_width());
    expect(m.q, space_.rows, s.heads * s.head_width, "query");
    if (m.gradient) space_.key_rows = s.batch * s.kv_tokens;
    if (m.k.cols != s.kv_heads * s.head_width || m.k.rows % s.batch != 0 ||
        m.k.rows > s.batch * s.kv_tokens)
      problem("key " + name(m.k) + " is " + size_text(m.k.rows, m.k.cols));
    expect(m.v, m.k.rows, s.kv_heads * s.v_width(), "value");
    if (m.bias) expect(*m.bias, s.heads * s.q_tokens, m.k.rows / s.batch, "bias");
    describe_cache(m);
  }

  // Codes without their scales are no keys, and other numbers are no codes.
  void describe_cache(const AttentionMainloop& m) {
    const StoredCache& cache = m.shape.cache;
    for (const auto& [codes, scale] : {std::pair{&m.k, &m.k_scale}, {&m.v, &m.v_scale}}) {
      const Dtype stored = graph_.tensor(codes->tensor).dtype;
      if (cache.quantised() ? stored != cache.element() : size_of(stored).bits() <= 8)
        problem("operand " + name(*codes) + " is " + name_of(stored) + ", not " +
                (cache.quantised() ? name_of(cache.element()) : "a number without a format"));
      if (cache.scaled() != scale->has_value())
        problem("operand " + name(*codes) +
                (cache.scaled() ? " has no scales beside it" : " has scales, its format none"));
      if (*scale) expect(**scale, codes->rows, m.shape.kv_heads, "scale");
    }
  }

  void describe(const ScanMainloop& m) {
    const ScanShape& s = m.shape;
    space_.rows = s.batch * s.tokens;
    space_.cols = s.heads * s.head_width;
    if (s.batch < 1 || s.tokens < 1 || s.heads < 1 || s.head_width < 1 || s.state_width < 1)
      return problem("a dimension of the scan is below 1");
    if (s.chunk < 1) problem("a chunk of " + std::to_string(s.chunk) + " tokens");
    if (s.groups < 1 || s.heads % s.groups != 0)
      problem(std::to_string(s.heads) + " heads do not share " + std::to_string(s.groups) +
              " groups evenly");
    expect(m.x, space_.rows, space_.cols, "scanned operand x =");
    expect(m.log_decay, space_.rows, s.heads, "decay =");
    expect(m.k, space_.rows, s.groups * s.state_width, "key =");
    expect(m.q, space_.rows, s.groups * s.state_width, "query =");
    if (m.rates) expect(*m.rates, s.heads, m.rates->cols == 1 ? 1 : s.state_width, "rates =");
    const std::int64_t state_rows = s.batch * space_.cols;
    if (m.state) expect(*m.state, state_rows, s.state_width, "state =");
    const std::int64_t kept = s.chunk < 1 ? 1 : s.kept_states(m.has_rates_of_columns());
    if (m.state_after)
      expect(*m.state_after, m.keeps_states() ? kept * state_rows : state_rows, s.state_width,
             "state =");
    if (m.gradient) describe_gradient(m, (kept - 1) * state_rows);
    for (const Operand& exact :
         {m.log_decay, m.state.value_or(m.log_decay), m.state_after.value_or(m.log_decay)})
      if (graph_.tensor(exact.tensor).dtype != Dtype::fp32) problem(name(exact) + " is not fp32");
  }

  void describe_gradient(const ScanMainloop& m, std::int64_t kept_rows) {
    const ScanGradient& g = *m.gradient;
    const ScanShape& s = m.shape;
    expect(g.dy, space_.rows, space_.cols, "gradient of the result =");
    expect(g.d_decay, space_.rows, s.heads, "gradient of the decay =");
    expect(g.dk, space_.rows, m.k.cols, "gradient of the key =");
    expect(g.dq, space_.rows, m.q.cols, "gradient of the query =");
    if (m.rates.has_value() != g.d_rates.has_value())
      problem("rates and their gradient are not together");
    else if (m.rates)
      expect(*g.d_rates, m.rates->rows, m.rates->cols, "gradient of the rates =");
    if (g.states) expect(*g.states, kept_rows, s.state_width, "kept states =");
    if (!g.states && kept_rows > 0)
      problem("pieces of a sequence begin with states, none are kept");
    if (m.state || m.state_after) problem("a scan's gradient takes and leaves no state");
    for (const Operand& exact :
         {g.d_decay, g.dk, g.dq, g.d_rates.value_or(g.dk), g.states.value_or(g.dk)})
      if (graph_.tensor(exact.tensor).dtype != Dtype::fp32) problem(name(exact) + " is not fp32");
  }

  void describe(const StreamMainloop& m) {
    stream(m.rows, m.cols);
    space_.columns_resident = true;
  }
  void describe(const RowMainloop& m) {
    stream(m.rows, m.cols);
    space_.rows_resident = true;
    space_.heads = m.heads;
    if (m.heads < 1 || (m.heads > 1 && (m.tokens < 1 || m.rows % (m.heads * m.tokens) != 0)))
      problem("rows of heads: " + std::to_string(m.rows) + " are no " + std::to_string(m.heads) +
              " heads of " + std::to_string(m.tokens) + " tokens");
  }
  void stream(std::int64_t rows, std::int64_t cols) {
    space_.rows = rows;
    space_.cols = cols;
    space_.tiles_of_pairs = true;
    if (rows < 1 || cols < 1) problem("the index space is empty");
  }

  const Graph& graph_;
  const Program& program_;
  std::vector<std::string>& problems_;
  IndexSpace space_;
};

}  // namespace

IndexSpace index_space_of(const Graph& graph, const Program& program,
                          std::vector<std::string>& problems) {
  return Description(graph, program, problems).run();
}

std::string wrong_shape(const Graph& graph, const Operand& o, std::int64_t rows, std::int64_t cols,
                        const std::string& what) {
  if (o.rows == rows && o.cols == cols) return "";
  return what + " " + graph.tensor(o.tensor).name + " is " + size_text(o.rows, o.cols) + ", not " +
         size_text(rows, cols);
}

}  // namespace fuseline
