#include "model/programs/mends.h"

#include <fmt/format.h>

#include "model/programs/line_writer.h"

namespace fuseline {

namespace {

std::string shape_text(const Tensor& t) {
  std::string letters;
  for (const char c : t.symbol)
    if (c != ' ') letters += c;
  return letters.empty() ? fmt::format("[{},{}]", t.rows, t.cols) : letters;
}

}  // namespace

std::string declaration(const Tensor& t, Role role) {
  std::string text = std::string(name_of(role)) + " " + name_text(t.name) + shape_text(t);
  if (t.dtype != Dtype::bf16) text += std::string(", ") + name_of(t.dtype);
  return text;
}

std::string finisher_of(const Graph& graph, TensorId partials, const std::string& reduction) {
  const Tensor& t = graph.tensor(partials);
  const std::string operand = operand_text(graph, graph.whole(partials));
  return fmt::format(
      "activation {0}_all[{1},1], fp32\n"
      "program finish_{0}\n"
      "  for each row of [{1}, {2}]\n"
      "  p = load {3}\n"
      "  r = row_{4}(p)\n"
      "  store_rows {0}_all[{1},1] = r",
      t.name, t.rows, t.cols, operand, reduction);
}

std::string partials_of(const std::string& value, const std::string& reduction, std::int64_t rows,
                        std::int64_t width) {
  const bool mean = reduction == "mean";
  const std::int64_t count = (width + partial_tile - 1) / partial_tile;
  return fmt::format(
      "activation {0}_parts[{2},{3}], fp32\n"
      "store {0}_parts[{2},{3}] = {1}({0})\n"
      "and behind this program another one:\n"
      "program finish_{0}\n"
      "  for each row of [{2}, {3}]\n"
      "  p = load {0}_parts[{2},{3}]\n"
      "  r = row_{4}(p){5}",
      value, mean ? "sum" : reduction, rows, count, reduction == "max" ? "max" : "sum",
      mean ? fmt::format("\n  m = r * {}", 1.0 / static_cast<double>(width)) : "");
}

std::string other_tensor(const Graph& graph, const Operand& stored, const std::string& value) {
  Tensor t = graph.tensor(stored.tensor);
  t.name += "_2";
  return fmt::format("{}\nstore {}{} = {}", declaration(t, Role::output), name_text(t.name),
                     shape_text(t), value);
}

std::string exchanged_product(const Graph& graph, const GemmMainloop& mainloop,
                              const std::string& result) {
  if (mainloop.batch != 1 || !mainloop.groups.empty() || !mainloop.depths.empty()) return "";
  for (const bool second : {true, false}) {
    GemmMainloop m = mainloop;
    if (second)
      m.b_is_kn = !m.b_is_kn;
    else
      m.a_is_km = !m.a_is_km;
    const std::int64_t k_of_a = m.a_is_km ? m.a.rows : m.a.cols;
    const std::int64_t k_of_b = m.b_is_kn ? m.b.rows : m.b.cols;
    if (k_of_a != k_of_b) continue;
    m.M = m.N = m.K = 0;
    const std::vector<std::string> names = {result};
    const ProgramNames named(graph, names);
    LineWriter writer(graph, named);
    Value y = 0;
    gemm_syntax(m, y, writer);
    return writer.take().code;
  }
  return "";
}

std::string code_of_line(const std::string& line) {
  std::string code = line.substr(0, line.find('#'));
  while (!code.empty() && code.back() == ' ') code.pop_back();
  const std::size_t begin = code.find_first_not_of(' ');
  return begin == std::string::npos ? "" : code.substr(begin);
}

std::string with_flag(const std::string& line, const std::string& flag) {
  return code_of_line(line) + ", " + flag;
}

std::string without_flag(const std::string& line, const std::string& flag) {
  std::string code = code_of_line(line);
  const std::size_t at = code.find(", " + flag);
  if (at != std::string::npos) code.erase(at, flag.size() + 2);
  return code;
}

}  // namespace fuseline
