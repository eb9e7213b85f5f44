#include "cuda/export/export_files.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/version.h"
#include "cuda/compile/device_headers.h"
#include "cuda/export/texts.h"
#include "model/operators/operator.h"
#include "model/programs/file_words.h"

namespace fuseline::cuda {

namespace {

using nlohmann::ordered_json;

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

std::string role_word(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::weight:
      return "weight";
    case Role::table:
      return "table";
    case Role::cache:
      return "cache";
    case Role::activation:
      return "activation";
    case Role::output:
      return "output";
  }
  return {};
}

ordered_json place_json(const AddressPlace& p) {
  return {
      {"parameter", p.parameter}, {"offset", p.offset}, {"target", p.target}, {"addend", p.addend}};
}

ordered_json launch_json(const RecordedLaunch& l) {
  ordered_json parameters = ordered_json::array(), addresses = ordered_json::array(),
               maps = ordered_json::array();
  for (const std::vector<std::byte>& p : l.parameters) parameters.push_back(hex(p));
  for (const AddressPlace& p : l.addresses) addresses.push_back(place_json(p));
  for (const MapPlace& m : l.maps) {
    ordered_json one = place_json(m.at);
    one.update({{"type", m.map.type},
                {"rank", m.map.rank},
                {"sizes", m.map.sizes},
                {"strides", m.map.strides},
                {"box", m.map.box},
                {"swizzle", m.map.swizzle},
                {"promotion", m.map.promotion}});
    maps.push_back(std::move(one));
  }
  ordered_json out = {{"program", l.program},
                      {"function", l.function},
                      {"code", l.code},
                      {"grid", l.shape.grid},
                      {"block", l.shape.block},
                      {"shared_bytes", l.shape.shared_bytes},
                      {"parameters", std::move(parameters)},
                      {"addresses", std::move(addresses)},
                      {"maps", std::move(maps)}};
  if (l.product)
    out["product"] = {{"a", l.product->a},
                      {"b", l.product->b},
                      {"out", l.product->out},
                      {"a_transposed", l.product->a_transposed},
                      {"b_transposed", l.product->b_transposed}};
  return out;
}

ordered_json steps_json(const std::vector<Interleaving>& steps) {
  ordered_json all = ordered_json::array();
  for (const Interleaving& s : steps)
    all.push_back({{"tensor", identifier(s.tensor)},
                   {"columns", s.columns},
                   {"begin", s.begin},
                   {"count", s.count},
                   {"group", s.group}});
  return all;
}

// What the loader computes once from a block's own weights, in order: rows of columns multiplied by
// a vector (mul_cols), a vector times a weight (gemm), sums with a bias (bias_add).
ordered_json preparation_json(const Preparation& p) {
  ordered_json steps = ordered_json::array();
  for (const Op& op : p.graph.ops()) {
    const Tensor& result = p.graph.tensor(op.writes[0].tensor);
    ordered_json reads = ordered_json::array();
    bool of_weights = true;
    for (const Operand& o : op.reads) {
      const Tensor& read = p.graph.tensor(o.tensor);
      of_weights = of_weights && read.role != Role::input && o == p.graph.whole(o.tensor);
      reads.push_back(identifier(read.name));
    }
    if (of_weights)
      steps.push_back({{"result", identifier(result.name)},
                       {"operator", op.kind->name},
                       {"reads", std::move(reads)},
                       {"dtype", name_of(result.dtype)}});
  }
  return {{"steps", std::move(steps)},
          {"interleavings", steps_json(p.interleavings)},
          {"results", steps_json(p.results)}};
}

// ---- tables of the launcher for C ----

std::string number_list(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{}", static_cast<unsigned>(bytes[i]),
                        i + 1 == bytes.size() ? ""
                        : i % 24 == 23        ? ",\n    "
                                              : ",");
  return text.empty() ? "0" : text;
}

constexpr std::int64_t kParameterAlignment = 64;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
}

// All parameters of a launch behind each other, each at a multiple of 64 bytes.
std::vector<std::byte> packed(const RecordedLaunch& l) {
  std::vector<std::byte> all;
  for (const std::vector<std::byte>& p : l.parameters) {
    all.resize(static_cast<std::size_t>(aligned(static_cast<std::int64_t>(all.size()))));
    all.insert(all.end(), p.begin(), p.end());
  }
  return all;
}

}  // namespace

std::string identifier(const std::string& name) {
  std::string out;
  for (const char c : name)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "t" + out;
  return out;
}

std::string kernels_json(const Exported& e) {
  ordered_json tensors = ordered_json::array(), workspaces = ordered_json::array(),
               codes = ordered_json::array(), launches = ordered_json::array(),
               operators = ordered_json::array();
  for (const ExportedTensor& t : e.tensors)
    tensors.push_back({{"name", identifier(t.name)},
                       {"shape", t.symbol},
                       {"role", role_word(t.role)},
                       {"dtype", name_of(t.dtype)},
                       {"rows", t.rows},
                       {"cols", t.cols},
                       {"row_bytes", t.row_bytes},
                       {"bytes", t.bytes}});
  for (const RecordedWorkspace& w : e.workspaces)
    workspaces.push_back({{"bytes", w.bytes}, {"contents", hex(w.contents)}});
  for (const RecordedCode& c : e.codes) codes.push_back({{"name", c.name}});
  for (const RecordedLaunch& l : e.launches) launches.push_back(launch_json(l));
  for (const ExportedOperator& o : e.operators) {
    ordered_json gradients = ordered_json::array();
    for (const auto& [gradient, of] : o.gradients) gradients.push_back({gradient, of});
    operators.push_back({{"name", identifier(o.name)},
                         {"launches", o.launches},
                         {"inputs", o.inputs},
                         {"changed", o.changed},
                         {"outputs", o.outputs},
                         {"temporaries", o.temporaries},
                         {"gradient", o.gradient},
                         {"gradients", std::move(gradients)}});
  }
  return json_text(ordered_json{{"schema", "fuseline.kernels/1"},
                                {"name", identifier(e.name)},
                                {"version", kVersion},
                                {"command", e.command},
                                {"gpu", e.gpu},
                                {"architecture", e.architecture},
                                {"toolkit", e.toolkit},
                                {"policy", e.policy},
                                {"hash", e.hash},
                                {"layers", e.layers},
                                {"checked", e.checked},
                                {"tensors", std::move(tensors)},
                                {"workspaces", std::move(workspaces)},
                                {"codes", std::move(codes)},
                                {"operators", std::move(operators)},
                                {"preparation", preparation_json(e.preparation)},
                                {"launches", std::move(launches)}});
}

std::string launcher_header(const Exported& e) {
  std::string text = export_text("launcher_head.h");
  text += fmt::format("enum {{\n  FUSELINE_TENSORS = {},\n", e.tensors.size());
  for (std::size_t i = 0; i < e.tensors.size(); ++i)
    text += fmt::format("  FUSELINE_TENSOR_{} = {},\n", identifier(e.tensors[i].name), i);
  text += "};\nenum {\n";
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    const ExportedOperator& o = e.operators[i];
    const auto names = [&](const std::vector<int>& all) {
      std::string list;
      for (const int t : all)
        list +=
            (list.empty() ? "" : ", ") + identifier(e.tensors[static_cast<std::size_t>(t)].name);
      return list.empty() ? std::string("nothing") : list;
    };
    text += fmt::format("  // reads {}\n  // changes {}; writes {}\n  // memory to work in: {}\n",
                        names(o.inputs), names(o.changed), names(o.outputs), names(o.temporaries));
    text += fmt::format("  FUSELINE_OPERATOR_{} = {},\n", identifier(o.name), i);
  }
  return text +
         "};\n\nextern const fuseline_tensor fuseline_tensors[FUSELINE_TENSORS];\n\n"
         "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string launcher_source(const Exported& e) {
  std::string text = fmt::format(
      "// Tables of the kernels, then the launcher. Made by fuseline {} for {}.\n"
      "#include \"fuseline_kernels.h\"\n\n#include <stddef.h>\n\n"
      "typedef struct {{\n  int parameter;\n  int64_t offset;\n  int target;  // a tensor, or -1 - "
      "a workspace\n  int64_t addend;\n  int map;  // -1: an address\n}} place;\n"
      "typedef struct {{\n  int type;\n  uint32_t rank;\n  uint64_t sizes[4], strides[3];\n"
      "  uint32_t box[4];\n  int swizzle, promotion;\n}} map;\n"
      "typedef struct {{\n  const char *function;\n  int code;\n  unsigned grid[3], block[3], "
      "shared;\n  int parameters;\n  size_t begin[4];\n  const unsigned char *bytes;\n  size_t "
      "size;\n  const place *places;\n  int places_count;\n}} launch;\n"
      "typedef struct {{\n  int64_t bytes;\n  const unsigned char *contents;\n}} workspace;\n"
      "typedef struct {{\n  const int *launches;\n  int count;\n}} run_of;\n\n",
      kVersion, e.gpu_title);
  text += "const fuseline_tensor fuseline_tensors[FUSELINE_TENSORS] = {\n";
  for (const ExportedTensor& t : e.tensors)
    text += fmt::format("    {{\"{}\", \"{}\", \"{}\", \"{}\", {}, {}, {}, {}}},\n",
                        identifier(t.name), t.symbol, name_of(t.dtype), role_word(t.role), t.rows,
                        t.cols, t.row_bytes, t.bytes);
  text += "};\n\nstatic const char *const codes[] = {\n";
  for (const RecordedCode& c : e.codes) text += fmt::format("    \"{}\",\n", c.name);
  std::string maps;
  int map_count = 0;
  std::size_t most_bytes = 64, most_parameters = 1;
  std::string launches, places, bytes;
  for (std::size_t i = 0; i < e.launches.size(); ++i) {
    const RecordedLaunch& l = e.launches[i];
    std::string here;
    for (const AddressPlace& p : l.addresses)
      here +=
          fmt::format("    {{{}, {}, {}, {}, -1}},\n", p.parameter, p.offset, p.target, p.addend);
    for (const MapPlace& m : l.maps) {
      here += fmt::format("    {{{}, {}, {}, {}, {}}},\n", m.at.parameter, m.at.offset, m.at.target,
                          m.at.addend, map_count++);
      maps += fmt::format("    {{{}, {}, {{{}}}, {{{}}}, {{{}}}, {}, {}}},\n", m.map.type,
                          m.map.rank, fmt::join(m.map.sizes, ", "), fmt::join(m.map.strides, ", "),
                          fmt::join(m.map.box, ", "), m.map.swizzle, m.map.promotion);
    }
    const std::size_t count = l.addresses.size() + l.maps.size();
    if (here.empty()) here = "    {0, 0, 0, 0, -1},\n";
    places += fmt::format("static const place places_{}[] = {{\n{}}};\n", i, here);
    const std::vector<std::byte> all = packed(l);
    bytes +=
        fmt::format("static const unsigned char bytes_{}[] = {{\n    {}}};\n", i, number_list(all));
    std::vector<std::int64_t> begin;
    std::int64_t at = 0;
    for (const std::vector<std::byte>& p : l.parameters) {
      at = aligned(at);
      begin.push_back(at);
      at += static_cast<std::int64_t>(p.size());
    }
    launches += fmt::format(
        "    {{\"{}\", {}, {{{}}}, {{{}}}, {}, {}, {{{}}}, bytes_{}, sizeof bytes_{}, places_{}, "
        "{}}},\n",
        l.function, l.code, fmt::join(l.shape.grid, ", "), fmt::join(l.shape.block, ", "),
        l.shape.shared_bytes, l.parameters.size(), fmt::join(begin, ", "), i, i, i, count);
    most_bytes = std::max(most_bytes, all.size());
    most_parameters = std::max(most_parameters, l.parameters.size());
  }
  text += "};\n\n" + places + bytes;
  text += fmt::format("static const map maps[] = {{\n{}}};\n\n",
                      maps.empty() ? "    {0, 0, {0}, {0}, {0}, 0, 0},\n" : maps);
  text += fmt::format("static const launch launches[] = {{\n{}}};\n\n", launches);
  std::string contents, workspaces;
  for (std::size_t i = 0; i < e.workspaces.size(); ++i) {
    const RecordedWorkspace& w = e.workspaces[i];
    if (!w.contents.empty())
      contents += fmt::format("static const unsigned char contents_{}[] = {{\n    {}}};\n", i,
                              number_list(w.contents));
    workspaces += fmt::format("    {{{}, {}}},\n", w.bytes,
                              w.contents.empty() ? "NULL" : fmt::format("contents_{}", i));
  }
  text += contents + fmt::format("static const workspace workspaces[] = {{\n{}}};\n\n",
                                 workspaces.empty() ? "    {0, NULL},\n" : workspaces);
  std::string runs, operators;
  for (std::size_t i = 0; i < e.operators.size(); ++i) {
    runs += fmt::format("static const int run_{}[] = {{{}}};\n", i,
                        fmt::join(e.operators[i].launches, ", "));
    operators += fmt::format("    {{run_{}, {}}},\n", i, e.operators[i].launches.size());
  }
  text += runs + fmt::format("static const run_of operators[] = {{\n{}}};\n\n", operators);
  text += fmt::format(
      "enum {{\n  CODES = {},\n  LAUNCHES = {},\n  WORKSPACES = {},\n  OPERATORS = {},\n"
      "  NEEDS_MAPS = {},\n  MOST_PARAMETERS = {},\n  MOST_PARAMETER_BYTES = {},\n}};\n",
      e.codes.size(), e.launches.size(), e.workspaces.size(), e.operators.size(),
      map_count > 0 ? 1 : 0, most_parameters, most_bytes);
  return text + export_text("launcher_body.c");
}

std::string export_page(const Exported& e) {
  std::string text = fmt::format(
      "# {}\n\nKernels made by fuseline {} for {} ({}, {}).\n\n"
      "| | |\n|---|---|\n| command | `{}` |\n| policy | {} |\n| hash of the plan | {} |\n"
      "| layers | {} |\n| checked | {} |\n\n",
      e.name, kVersion, e.gpu_title, e.architecture, e.toolkit, e.command,
      e.policy.empty() ? "programs of one's own" : e.policy, e.hash,
      e.layers == 0 ? "-" : std::to_string(e.layers), e.checked);
  text +=
      "The kernels are for these shapes, types and this kind of GPU alone. "
      "Inputs that lie otherwise in memory are copied first by the loader for Python; the launcher "
      "for C expects them as the tables say.\n\n"
      "| file | is |\n|---|---|\n"
      "| `NAME.cubin`, `NAME.ptx` | machine code of a kernel, and the text it was assembled from "
      "|\n"
      "| `NAME.cu`, `source/` | its CUDA source, and the headers that it includes: `nvcc -I source "
      "-std=c++17 -default-device` |\n"
      "| `fuseline_kernels.h`, `.c` | a launcher for C (C11, the CUDA driver, nothing else) |\n"
      "| `fuseline_kernels.py` | a loader for Python: ctypes, and custom operators of PyTorch |\n"
      "| `kernels.json` | what the loader reads |\n\n";
  for (const ExportedOperator& o : e.operators) {
    const auto names = [&](const std::vector<int>& all) {
      std::string list;
      for (const int t : all)
        list += (list.empty() ? "`" : ", `") +
                identifier(e.tensors[static_cast<std::size_t>(t)].name) + "`";
      return list.empty() ? std::string("nothing") : list;
    };
    text += fmt::format("## {}\n\nTakes {}.\n", identifier(o.name), names(o.inputs));
    if (!o.changed.empty()) text += fmt::format("Changes {}.\n", names(o.changed));
    text += fmt::format("Gives {}.\n", names(o.outputs));
    text += fmt::format("{} launches. Gradient: {}.\n\n", o.launches.size(),
                        o.gradient.empty() ? "none is known" : "operator " + o.gradient);
  }
  if (!e.no_gradient.empty())
    text += fmt::format("The programs have no gradient: {}.\n\n", e.no_gradient);
  text +=
      "## Tensors\n\n| name | role | type | rows x columns | bytes from row to row |\n"
      "|---|---|---|---|---|\n";
  for (const ExportedTensor& t : e.tensors)
    text += fmt::format("| `{}` | {} | {} | {} x {} | {} |\n", identifier(t.name),
                        role_word(t.role), name_of(t.dtype), t.rows, t.cols, t.row_bytes);
  const ordered_json preparation = preparation_json(e.preparation);
  if (!preparation["steps"].empty() || !preparation["interleavings"].empty())
    text +=
        "\n## Weights\n\nThe kernels take some weights in another form than the block has them. "
        "`prepare()` of the loader makes them:\n\n";
  for (const ordered_json& s : preparation["steps"])
    text += fmt::format("* `{}` is {} of {}.\n", s["result"].get<std::string>(),
                        s["operator"].get<std::string>(), s["reads"].dump());
  for (const ordered_json& s : preparation["interleavings"])
    text += fmt::format(
        "* `{}`: in every group of {} of {} {} from {} on, the first half goes to even places and "
        "the second to odd ones.\n",
        s["tensor"].get<std::string>(), s["group"].get<std::int64_t>(),
        s["count"].get<std::int64_t>(), s["columns"].get<bool>() ? "columns" : "rows",
        s["begin"].get<std::int64_t>());
  text += "\n## Programs\n";
  for (const std::string& p : e.programs) text += "\n```\n" + p + "```\n";
  return text;
}

std::map<std::string, std::string> export_files(const Exported& e) {
  std::map<std::string, std::string> files;
  for (const RecordedCode& c : e.codes) {
    files[c.name + ".cu"] = c.text;
    files[c.name + ".ptx"] = c.ptx;
    files[c.name + ".cubin"] = std::string(c.cubin.begin(), c.cubin.end());
  }
  for (const DeviceHeader& h : device_headers())
    files[fmt::format("source/{}", h.path)] = std::string(h.text);
  files["kernels.json"] = kernels_json(e);
  files["fuseline_kernels.h"] = launcher_header(e);
  files["fuseline_kernels.c"] = launcher_source(e);
  files["fuseline_kernels.py"] = export_text("fuseline_kernels.py");
  files["README.md"] = export_page(e);
  return files;
}

}  // namespace fuseline::cuda
