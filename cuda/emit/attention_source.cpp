#include "cuda/emit/attention_source.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/attention_arguments.h"
#include "cuda/emit/comment.h"
#include "cuda/emit/fields.h"
#include "cuda/emit/names.h"
#include "model/attention_kernels.h"
#include "model/primitives/functions.h"

namespace fuseline::cuda {

namespace {

// As many new tokens as decode.cuh takes: each tile of 16 rows reads all keys.
constexpr std::int64_t kDecodeTokens = 16;
constexpr std::int64_t kNarrowestDecode = 32;  // its results must fit its ring
constexpr std::int64_t kWidestHead = widest_joined_head;
constexpr std::int64_t kWidestLatent = 576;  // two blocks of its keys and a tile of queries fit
// Heads from which on decode's ring of three stages is too large for GPUs with 99 KB a block.
constexpr std::int64_t kTwoStages = 128;

const AttentionMainloop& attention_of(const Program& program) {
  const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop);
  FUSELINE_ASSERT(attention != nullptr, "an attention program");
  return *attention;
}

[[noreturn]] void no_kernel(const Program& program, const std::string& why) {
  throw MissingError(fmt::format("no CUDA kernel for {}: {}", program.name, why));
}

// What a part is made of.
struct AttentionParts {
  const char* header;
  std::string arguments;  // type
  std::string call;       // of its body
  std::string bytes;      // of dynamic shared memory
  int threads, blocks;    // launch bounds
  std::size_t size;       // of the host's arguments
};

// The widths of heads, as the kernels' template arguments have them.
struct HeadWidths {
  std::int64_t keys = 0, values = 0;
  std::int64_t first = 0;               // of wide heads: the key's column where the value begins
  int rows = 0;                         // of a tile of wide heads
  std::string stored{};                 // what keys and values are stored in
  bool capped = false, biased = false;  // what is done to scores ahead of the softmax
};

// Of a thread block: AttentionWide::threads, and those of the launch that joins (0 rows).
int wide_threads(int rows) { return rows == 64 ? 256 : 128; }

AttentionParts kernel_of(AttentionPart part, const std::string& element, const HeadWidths& width,
                         const std::string& out, int stages) {
  const auto text = [&](const char* pattern) {
    return fmt::format(fmt::runtime(pattern), element, width.keys, out, stages, width.values,
                       width.first, width.rows, width.stored);
  };
  // Kernels whose scores are capped or biased are others. They need as much shared memory.
  const auto yes = [](bool b) { return b ? "true" : "false"; };
  const auto capped = [&](const char* pattern) {
    return text(pattern) + (width.capped ? ", true>" : ">");
  };
  const auto scored = [&](const std::string& call) {
    return width.biased ? fmt::format("{}, {}, true>", call, yes(width.capped))
                        : call + (width.capped ? ", true>" : ">");
  };
  const auto gradient = [&](const char* of) {
    return AttentionParts{
        "generic",
        text("GenericGradientArgs<{0}, {2}>"),
        scored(text("attention_gradient_generic<{0}, {1}, AttentionGradientOf::") + of +
               text(", {4}")),
        text("generic_gradient_bytes<{0}, {1}, {4}>"),
        128,
        2,
        sizeof(GenericGradientArguments)};
  };
  switch (part) {
    case AttentionPart::prologue:
      return {"prologue",
              text("AttentionPrologueArgs<{0}>"),
              text("attention_prologue<{0}, {1}>"),
              "0",
              256,
              1,
              sizeof(AttentionPrologueArguments)};
    case AttentionPart::forward_sm90:
      return {"forward_sm90",
              text("AttentionForwardArgs<{0}>"),
              scored(text("attention_forward_sm90<{0}, {1}, {4}")),
              text("AttentionSm90<{0}, {1}, {4}>::shared_bytes"),
              384,
              1,
              sizeof(AttentionForwardArguments)};
    case AttentionPart::forward_generic:
      return {"generic",
              text("GenericForwardArgs<{0}>"),
              scored(text("attention_forward_generic<{0}, {1}, {4}")),
              text("generic_forward_bytes<{0}, {1}, {4}>"),
              128,
              2,
              sizeof(GenericForwardArguments)};
    case AttentionPart::decode:
      return {"decode",
              text("AttentionDecodeArgs<{0}, {7}>"),
              text("attention_decode<{0}, {1}, {4}, {3}, ") + yes(width.capped) + text(", {7}") +
                  (width.biased ? ", true>" : ">"),
              text("AttentionDecode<{0}, {1}, {4}, {3}, false, {7}>::shared_bytes"),
              128,
              1,
              sizeof(AttentionDecodeArguments)};
    case AttentionPart::wide:
    case AttentionPart::wide_join: {
      const bool join = part == AttentionPart::wide_join;
      const std::string wide = capped("AttentionWide<{0}, {1}, {4}, {5}, {6}, {3}");
      return {"decode_wide",
              text("AttentionWideArgs<{0}>"),
              (join ? "attention_wide_join<" : "attention_wide<") + wide + ">",
              join ? "0" : wide + "::shared_bytes",
              wide_threads(join ? 0 : width.rows),
              1,
              sizeof(AttentionWideArguments)};
    }
    case AttentionPart::keys_sm90:
      return {"gradient_sm90",
              text("AttentionGradientArgs<{2}>"),
              text("attention_gradient_sm90<{0}, {1}, true, {2}>"),
              text("AttentionGradientSm90<{0}, {1}, true, {2}>::shared_bytes"),
              384,
              1,
              sizeof(AttentionGradientArguments)};
    case AttentionPart::queries_sm90:
      return {"gradient_sm90",
              text("AttentionGradientArgs<{2}>"),
              text("attention_gradient_sm90<{0}, {1}, false, {2}>"),
              text("AttentionGradientSm90<{0}, {1}, false, {2}>::shared_bytes"),
              384,
              1,
              sizeof(AttentionGradientArguments)};
    case AttentionPart::queries_generic:
      return gradient("q");
    case AttentionPart::keys_generic:
      return gradient("k");
    case AttentionPart::values_generic:
      return gradient("v");
  }
  FUSELINE_ASSERT(false, "unknown part of attention");
}

const char* suffix_of(AttentionPart part) {
  switch (part) {
    case AttentionPart::prologue:
      return "_prologue";
    case AttentionPart::wide_join:
      return "_join";
    case AttentionPart::keys_sm90:
      return "_dk_dv";
    case AttentionPart::queries_sm90:
    case AttentionPart::queries_generic:
      return "_dq";
    case AttentionPart::keys_generic:
      return "_dk";
    case AttentionPart::values_generic:
      return "_dv";
    case AttentionPart::forward_sm90:
    case AttentionPart::forward_generic:
    case AttentionPart::decode:
    case AttentionPart::wide:
      return "";
  }
  FUSELINE_ASSERT(false, "unknown part of attention");
}

std::vector<AttentionPart> parts_of(const Graph& graph, const Program& program,
                                    SmTarget architecture) {
  const AttentionMainloop& m = attention_of(program);
  const std::int64_t d = m.shape.head_width;
  const std::int64_t bias_columns = m.bias ? graph.tensor(m.bias->tensor).cols : 0;
  const bool hopper = architecture == SmTarget::sm_90a && has_wgmma_attention(m, bias_columns);
  std::vector<AttentionPart> parts;
  if (!program.prologue.empty()) parts.push_back(AttentionPart::prologue);
  if (d > kWidestHead) {
    parts.push_back(AttentionPart::wide);
    parts.push_back(AttentionPart::wide_join);
    return parts;
  }
  if (!m.gradient) {
    // Only decode's kernel takes codes, of any number of tokens.
    if (m.shape.cache.quantised() || (m.shape.q_tokens <= kDecodeTokens && d >= kNarrowestDecode))
      parts.push_back(AttentionPart::decode);
    else
      parts.push_back(hopper ? AttentionPart::forward_sm90 : AttentionPart::forward_generic);
    return parts;
  }
  const auto type_of = [&](Value v) {
    return graph.tensor(stored_as(graph, program, v).tensor).dtype;
  };
  if (hopper && type_of(m.gradient->dk) == type_of(m.gradient->dv))
    return {AttentionPart::keys_sm90, AttentionPart::queries_sm90};
  return {AttentionPart::keys_generic, AttentionPart::values_generic,
          AttentionPart::queries_generic};
}

// What a part stores.
Value result_of(AttentionPart part, const AttentionMainloop& m) {
  switch (part) {
    case AttentionPart::keys_sm90:
    case AttentionPart::keys_generic:
      return m.gradient->dk;
    case AttentionPart::values_generic:
      return m.gradient->dv;
    default:
      return 0;
  }
}

// Where the value begins in the columns of its key, if the kernel of wide heads takes them.
std::optional<std::int64_t> value_in_key(const AttentionMainloop& m) {
  const std::int64_t first = m.v.col_begin - m.k.col_begin;
  const bool inside = m.v.tensor == m.k.tensor && m.v.rows == m.k.rows && m.v.at == m.k.at &&
                      m.k_value < 0 && m.v_value < 0 && first >= 0 &&
                      first + m.shape.v_width() <= m.shape.head_width;
  const bool taken = !m.gradient && m.shape.kv_heads == 1 && first % 8 == 0 &&
                     m.shape.head_width % 32 == 0 && m.shape.v_width() % 64 == 0 &&
                     m.shape.head_width <= kWidestLatent;
  return inside && taken ? std::optional(first) : std::nullopt;
}

std::string source_text(const AttentionParts& kernel, const std::string& function,
                        const std::string& comment) {
  std::string text = as_comment(comment);
  text += fmt::format(
      "#include \"attention/{}.cuh\"\n#include \"launch_order.cuh\"\n\nnamespace fuseline::gpu "
      "{{\n\n",
      kernel.header);
  text += fmt::format(
      "using Args = {};\nstatic_assert(sizeof(Args) == {}, \"the host lays out the parameters "
      "alike\");\n\n",
      kernel.arguments, kernel.size);
  text += fmt::format("extern \"C\" __constant__ int {}_shared_bytes = {};\n\n", function,
                      kernel.bytes);
  text += fmt::format(
      "extern \"C\" __global__ void __launch_bounds__({}, {})\n{}(const __grid_constant__ Args "
      "args) {{\n  fuseline::gpu::begin_behind_the_kernel_before();\n"
      "  {}(args);\n}}\n\n}}  // namespace fuseline::gpu\n",
      kernel.threads, kernel.blocks, function, kernel.call);
  return text;
}

}  // namespace

int wide_rows(const AttentionShape& shape, SmTarget architecture) {
  // Tiles of 64 rows leave no room in the 99 KB that some GPUs of sm_80's family have.
  return architecture == SmTarget::sm_90a && shape.heads / shape.kv_heads * shape.q_tokens > 16
             ? 64
             : 16;
}

Operand stored_as(const Graph& graph, const Program& program, Value result) {
  for (const Primitive& p : program.body) {
    if (const auto* tile = p.as<StoreTile>();
        tile != nullptr && tile->in == result && !tile->accumulate)
      return tile->to;
    if (const auto* vector = p.as<StoreVector>(); vector != nullptr && vector->in == result) {
      if (graph.tensor(vector->to.tensor).dtype != Dtype::fp32)
        no_kernel(program, "its log-sum-exp is not stored in fp32");
      return vector->to;
    }
  }
  no_kernel(program, "a result is not stored as it comes");
}

std::vector<AttentionMove> prologue_moves(const Graph& graph, const Program& program) {
  const AttentionMainloop& m = attention_of(program);
  const auto unknown = [&] { no_kernel(program, "it does more to Q, K and V than RoPE"); };
  std::map<Value, AttentionMove> made;
  std::map<Value, LoadTable> tables;
  std::vector<AttentionMove> moves;
  const auto add = [&](Value v, const AttentionMove& where) {
    const auto found = made.find(v);
    if (found == made.end()) return unknown();
    AttentionMove move = found->second;
    move.stored = where.stored;
    move.to = where.to;
    move.value = where.value;
    moves.push_back(move);
  };
  for (const Primitive& p : program.prologue) {
    if (const auto* load = p.as<LoadTile>()) {
      made[load->out].from = load->from;
    } else if (const auto* table = p.as<LoadTable>()) {
      tables.insert_or_assign(table->out, *table);
    } else if (const auto* pair = p.as<PairMap>();
               pair != nullptr && pair->fn == pairs::rope && pair->in.size() == 3 &&
               made.contains(pair->in[0]) && !made.at(pair->in[0]).rotated) {
      AttentionMove move = made.at(pair->in[0]);
      move.rotated = true;
      move.distance = pair->distance;
      const LoadTable& cos = tables.at(pair->in[1]);
      move.cos = cos.from;
      move.sin = tables.at(pair->in[2]).from;
      // Threads have units of 8 columns, both of a pair: the pairs fill the head, and what is
      // turned of it is whole units.
      const std::int64_t apart = move.distance;
      const bool fill = apart == 1 || (apart % 8 == 0 && m.shape.head_width % (2 * apart) == 0);
      if (!fill || cos.width() != m.shape.head_width || cos.from.cols % 8 != 0)
        no_kernel(program, "it turns pairs of columns that its kernel does not have");
      made[pair->out.at(0)] = move;
    } else if (const auto* store = p.as<StoreTile>(); store != nullptr && !store->accumulate) {
      add(store->in, {.stored = true, .to = store->to});
    } else {
      unknown();
    }
  }
  for (const Value v : {m.q_value, m.k_value, m.v_value})
    if (v >= 0) add(v, {.value = v});
  FUSELINE_ASSERT(moves.size() <= AttentionPrologueArguments::most_parts, program.name);
  for (const AttentionMove& move : moves)
    if (move.rotated && graph.tensor(move.cos.tensor).dtype != graph.tensor(move.from.tensor).dtype)
      no_kernel(program, "its tables have another type than its operands");
  return moves;
}

std::vector<AttentionKernelSource> attention_sources(const Graph& graph, const Program& program,
                                                     SmTarget architecture,
                                                     const std::string& title) {
  const AttentionMainloop& m = attention_of(program);
  const std::int64_t d = m.shape.head_width;
  const Dtype type = graph.tensor(m.q.tensor).dtype;
  HeadWidths width{d,
                   m.shape.v_width(),
                   0,
                   wide_rows(m.shape, architecture),
                   element_name(graph.tensor(m.k.tensor).dtype),
                   m.shape.softcap > 0,
                   m.bias.has_value()};
  if (const auto first = value_in_key(m); d > kWidestHead && first)
    width.first = *first;
  else
    for (const std::int64_t each : {d, width.values})
      if (each % 16 != 0 || each > kWidestHead)
        no_kernel(program,
                  fmt::format("heads are {} wide; allowed: multiples of 16 up to {}, or one "
                              "head of keys up to {} whose columns the values are",
                              each, kWidestHead, kWidestLatent));
  if (m.bias && graph.tensor(m.bias->tensor).dtype != type)
    no_kernel(program, "what is added to its scores has another type than its operands");
  if (m.bias && d > kWidestHead) no_kernel(program, "something is added to scores of wide heads");
  if (type == Dtype::fp32) no_kernel(program, "its operands are fp32; allowed: bf16 and fp16");
  const auto plain_store = [&](const Primitive& p) {
    const auto* tile = p.as<StoreTile>();
    return (tile != nullptr && !tile->accumulate) || p.is<StoreVector>();
  };
  if (!std::ranges::all_of(program.body, plain_store))
    no_kernel(program, "more than stores follows it");
  if (!program.prologue.empty())
    for (const AttentionMove& move : prologue_moves(graph, program))
      if (move.from.cols % d != 0) no_kernel(program, "it moves heads of several widths");

  const bool two =
      d > kWidestHead ? width.rows == 16 : architecture == SmTarget::sm_80 && d >= kTwoStages;
  const int stages = two ? 2 : 3;
  const std::string name = Names().unique(program.name);
  std::vector<AttentionKernelSource> sources;
  for (const AttentionPart part : parts_of(graph, program, architecture)) {
    const Dtype out = graph.tensor(stored_as(graph, program, result_of(part, m)).tensor).dtype;
    if (!m.gradient && out != type) no_kernel(program, "its result has another type");
    AttentionKernelSource s;
    s.part = part;
    s.function = name + suffix_of(part);
    s.source.name = s.function + ".cu";
    s.source.text =
        source_text(kernel_of(part, element_name(type), width, element_name(out), stages),
                    s.function, title + "\n\n" + print_program(graph, program));
    sources.push_back(std::move(s));
  }
  return sources;
}

}  // namespace fuseline::cuda
