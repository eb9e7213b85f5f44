#include "sim/block/mixed_batch.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/format.h"
#include "base/units.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostGroups = 64;
constexpr std::int64_t kMostTokens = 1 << 24;
constexpr std::int64_t kTableEntry = 4;  // bytes: a page's number

[[noreturn]] void refuse_sequences(const std::string& field, const std::string& text,
                                   const std::string& message) {
  throw InputError(
      {.file = "command line",
       .field = field,
       .value = text,
       .message = message,
       .allowed = sequences_allowed() + "; or a CSV file of sequences, tokens, context"});
}

// The number before `end`, which is taken away too.
std::int64_t size_before(std::string_view& text, std::string_view end) {
  const std::size_t at = std::min(text.find_first_of(end), text.size());
  std::int64_t value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + at, value);
  const bool whole = error == std::errc() && last == text.data() + at && at > 0;
  text.remove_prefix(at);
  return whole && value >= 1 && value <= kMostTokens ? value : 0;
}

// Returns what is wrong; empty: nothing.
std::string read_group(std::string_view one, SequenceGroup& group) {
  group.sequences = size_before(one, "x");
  if (one.empty()) return "lacks the number of new tokens";
  one.remove_prefix(1);
  group.tokens = size_before(one, "@");
  group.context = group.tokens;
  if (!one.empty()) {
    one.remove_prefix(1);
    group.context = size_before(one, "");
  }
  if (group.sequences < 1 || group.tokens < 1 || group.context < 1)
    return "has a size that is none";
  if (group.context < group.tokens)
    return "has a cache shorter than the new tokens, which it holds too";
  return "";
}

bool of_attention(const KernelEstimate& kernel) { return kernel.kind == KernelKind::attention; }

void add_kernel(const KernelEstimate& k, CallPart& part) {
  part.time += k.time;
  part.hbm += k.hbm_read + k.hbm_write;
  part.launches += k.launches;
}

Bytes caches_of(const Graph& block) {
  Bytes sum;
  for (const Tensor& t : block.tensors())
    if (t.role == Role::cache) sum += t.bytes();
  return sum;
}

void add_part(const CallPart& more, CallPart& part) {
  part.time += more.time;
  part.hbm += more.hbm;
  part.launches += more.launches;
}

}  // namespace

std::string sequences_allowed() {
  return fmt::format(
      "SEQUENCESxNEW@CACHE, several with a plus between them, such as 31x1@4096+1x512@2560 (at "
      "most {})",
      kMostGroups);
}

std::string read_sequences(const std::string& text, std::vector<SequenceGroup>& groups) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    if (std::string why =
            read_group(std::string_view(text).substr(begin, end - begin), groups.emplace_back());
        !why.empty())
      return why;
    if (groups.size() > kMostGroups) return "are too many groups";
    begin = end + 1;
  }
  return "";
}

std::vector<SequenceGroup> parse_sequences(const std::string& field, const std::string& text) {
  std::vector<SequenceGroup> groups;
  if (text.ends_with(".csv")) {
    const CsvTable table(text);
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const auto size = [&](const std::string& column) {
        const std::int64_t value = table.whole(row, column, 1);
        if (value > kMostTokens)
          table.fail(row, column, "is too large", fmt::format("1 to {}", kMostTokens));
        return value;
      };
      groups.push_back(
          {.sequences = size("sequences"), .tokens = size("tokens"), .context = size("context")});
      if (groups.back().context < groups.back().tokens)
        table.fail(row, "context", "is shorter than the new tokens, which it holds too",
                   "at least as many tokens");
    }
  } else {
    if (const std::string why = read_sequences(text, groups); !why.empty())
      refuse_sequences(field, text, why);
  }
  if (groups.size() > kMostGroups) refuse_sequences(field, text, "are too many groups");
  return groups;
}

std::string describe(const SequenceGroup& g) {
  return fmt::format("{} x {} of {}", grouped(g.sequences), grouped(g.tokens), grouped(g.context));
}

std::int64_t rows_of(const std::vector<SequenceGroup>& groups) {
  std::int64_t rows = 0;
  for (const SequenceGroup& g : groups) rows += g.sequences * g.tokens;
  return rows;
}

CallPart MixedCall::whole() const {
  CallPart sum = rows;
  for (const CallPart& a : attention) add_part(a, sum);
  add_part(tables, sum);
  return sum;
}

Workload workload_of(const Workload& work, const SequenceGroup& g) {
  Workload at = work;
  at.phase = Phase::decode;
  at.batch = g.sequences;
  at.seq = g.tokens;
  at.context = g.context;
  return at;
}

Workload workload_of_rows(const Workload& work, const std::vector<SequenceGroup>& groups) {
  return workload_of(work, {.sequences = rows_of(groups)});
}

CallPart page_tables(const std::vector<SequenceGroup>& groups, std::int64_t page, const Gpu& gpu) {
  CallPart tables;
  for (const SequenceGroup& g : groups)
    tables.hbm += Bytes(g.sequences * ceil_div(g.context, page) * kTableEntry);
  tables.time = tables.hbm / (gpu.hbm_bandwidth_sustained * gpu.constants.stream.hbm_fraction);
  return tables;
}

MixedCall predict_mixed(const std::string& policy, const ModelConfig& model, const Gpu& gpu,
                        const Workload& work, const std::vector<SequenceGroup>& groups,
                        std::optional<std::int64_t> page, Launching launching) {
  const auto estimate = [&](const Workload& at) {
    check_workload(at, model);
    return simulate(make_plan(policy, model, at, plan_target(gpu)), gpu, Fidelity::hierarchy,
                    {.launching = launching});
  };
  MixedCall out;
  out.policy = policy;
  const PlanEstimate all = estimate(workload_of_rows(work, groups));
  if (std::ranges::none_of(all.kernels, of_attention))
    throw InputError({.file = "command line",
                      .field = "--policy",
                      .value = policy,
                      .message = "has no attention in a kernel of its own, which each group of "
                                 "sequences would run at its sizes",
                      .allowed = "policies that fuse attention and nothing else into its kernel"});
  for (const KernelEstimate& k : all.kernels)
    if (!of_attention(k)) add_kernel(k, out.rows);
  Bytes caches;
  for (const SequenceGroup& g : groups) {
    const PlanEstimate alone = estimate(workload_of(work, g));
    CallPart attention;
    for (const KernelEstimate& k : alone.kernels)
      if (of_attention(k)) add_kernel(k, attention);
    out.attention.push_back(attention);
    add_part({alone.time, alone.hbm_read + alone.hbm_write, alone.launches}, out.apart);
    caches += caches_of(build_block(model, workload_of(work, g)));
  }
  if (!page) return out;
  out.tables = page_tables(groups, *page, gpu);
  const BytesPerSecond rate = gpu.hbm_bandwidth_sustained * gpu.constants.stream.hbm_fraction;
  out.gathering.hbm = caches + caches;
  out.gathering.time = gpu.tiny_kernel + out.gathering.hbm / rate;
  out.gathering.launches = 1;
  return out;
}

}  // namespace fuseline
