#include "cuda/emit/chain_source.h"

#include <algorithm>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/comment.h"
#include "cuda/emit/epilogue_source.h"
#include "cuda/emit/names.h"
#include "model/chain.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kChainWarps = chain_threads / 32;

std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

const GemmMainloop& gemm_of_chain(const Program& program) {
  return std::get<GemmMainloop>(program.mainloop);
}

// As Chain::shared_bytes of cuda/kernels/chain.cuh.
std::int64_t chain_shared_bytes(const Kernel& kernel, const ChainLayout& layout) {
  constexpr std::int64_t kStageOfWarp = 4096, kRows = most_chained_rows, kSumColumns = 128;
  const GemmMainloop& first = gemm_of_chain(kernel.phases[0]);
  const auto row_bytes = [](std::int64_t columns) { return rounded_up(columns * 2, 128) + 64; };
  const std::int64_t sums = std::max(kChainWarps * rounded_up(layout.first_columns, 16) * first.M,
                                     kChainWarps * kSumColumns);
  return kChainWarps * kStageOfWarp + kRows * (row_bytes(first.K) + row_bytes(layout.columns)) +
         sums * 4;
}

// The field by which the first epilogue stores what is handed over.
const Field* kept_field(const EpilogueSource& epilogue, TensorId kept) {
  const auto found = std::ranges::find_if(epilogue.fields, [&](const Field& f) {
    return f.kind == FieldKind::tile_out && f.operand.tensor == kept;
  });
  return found == epilogue.fields.end() ? nullptr : &*found;
}

// The struct with one more function, which lets that field store to shared memory.
std::string with_keep(std::string text, const std::string& field) {
  const std::size_t end = text.rfind("};");
  FUSELINE_ASSERT(end != std::string::npos, "an epilogue is a struct");
  text.insert(end, fmt::format("  template <class Element>\n"
                               "  static FUSELINE_DEVICE void keep(Params& p, Element* h, int ld, "
                               "int cols) {{\n"
                               "    p.{0}.data = h;\n    p.{0}.ld = ld;\n    p.{0}.cols = cols;\n"
                               "  }}\n",
                               field));
  return text;
}

bool rows_apart(const Program& program) {
  const auto apart = [](const Operand& o) { return o.at.run > 1; };
  return std::ranges::any_of(loads(program), apart) || std::ranges::any_of(stores(program), apart);
}

Layout whole_of(const std::vector<Field>& fields, StructLayout& layout) {
  std::vector<Layout> each;
  for (const Field& f : fields) each.push_back(layout_of(f.kind));
  layout = lay_out(each);
  return layout.whole;
}

}  // namespace

ChainArguments chain_arguments(const ChainKernelSource& kernel) {
  ChainArguments a;
  const Layout first = whole_of(kernel.first, a.first), second = whole_of(kernel.second, a.second);
  a.whole = lay_out({{40, 8}, {32, 4}, first, second});
  return a;
}

std::string chain_not_built(const Graph& graph, const Kernel& kernel, const ChainLayout& layout,
                            std::int64_t shared_bytes_per_block) {
  for (const Program& program : kernel.phases) {
    if (rows_apart(program)) return "a chain of products whose rows lie apart";
    if (epilogue_source(graph, program, "Epilogue").gathered_cols > 1)
      return "a chain of products with sums over wide groups of columns";
  }
  const EpilogueSource first = epilogue_source(graph, kernel.phases[0], "First");
  if (kept_field(first, handed_over(kernel)->tensor) == nullptr)
    return "a chain whose first product does not store tiles";
  if (layout.first_columns > 2 * layout.columns)
    return "a chain whose columns are made of more than two";
  const std::int64_t bytes = chain_shared_bytes(kernel, layout);
  if (bytes > shared_bytes_per_block)
    return fmt::format("a chain that takes {} KiB of shared memory, of {}", bytes / 1024,
                       shared_bytes_per_block / 1024);
  return "";
}

ChainKernelSource chain_kernel_source(const Graph& graph, const Kernel& kernel,
                                      const ChainLayout& layout, const std::string& title) {
  const TensorId kept = handed_over(kernel).value().tensor;
  const EpilogueSource first = epilogue_source(graph, kernel.phases[0], "First");
  const EpilogueSource second = epilogue_source(graph, kernel.phases[1], "Second");
  const Field* field = kept_field(first, kept);
  FUSELINE_ASSERT(field != nullptr, kernel.name);
  ChainKernelSource out;
  out.function = Names().unique(kernel.name);
  out.first = first.fields;
  out.second = second.fields;
  out.layout = layout;
  out.shared_bytes = chain_shared_bytes(kernel, layout);
  out.source.name = out.function + ".cu";
  std::string& text = out.source.text;
  text = as_comment(title) + "//\n";
  for (const Program& program : kernel.phases) text += as_comment(print_program(graph, program));
  text +=
      "#include \"chain.cuh\"\n#include \"epilogue/log_sum_exp.cuh\"\n"
      "#include \"epilogue/pair.cuh\"\n#include \"epilogue/reduce.cuh\"\n"
      "#include \"epilogue/vector.cuh\"\n\nnamespace fuseline::gpu {\n\n";
  text += with_keep(first.text, field->name) + "\n" + second.text + "\n";
  text +=
      fmt::format("using ChainOfProducts = Chain<{}, First, Second, {}>;\n\n",
                  element_name(graph.tensor(kept).dtype), layout.first_columns / layout.columns);
  text += "}  // namespace fuseline::gpu\n\n";
  // What the host reckons with.
  text += fmt::format(
      "static_assert(sizeof(fuseline::gpu::ChainOfProducts::Args) == {}, \"parameters\");\n"
      "static_assert(fuseline::gpu::ChainOfProducts::shared_bytes({}, {}, {}) == {}, \"shared\");\n"
      "static_assert(fuseline::gpu::ChainOfProducts::threads == {}, \"threads\");\n\n",
      chain_arguments(out).whole.whole.size, gemm_of_chain(kernel.phases[0]).K, layout.columns,
      gemm_of_chain(kernel.phases[0]).M, out.shared_bytes, chain_threads);
  text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__(fuseline::gpu::ChainOfProducts::threads, 1)\n"
      "{}(const __grid_constant__ fuseline::gpu::ChainOfProducts::Args args) {{\n"
      "  extern __shared__ __align__(1024) unsigned char shared[];\n"
      "  fuseline::gpu::begin_behind_the_kernel_before();\n"
      "  fuseline::gpu::ChainOfProducts(args, shared).run();\n}}\n",
      out.function);
  return out;
}

}  // namespace fuseline::cuda
