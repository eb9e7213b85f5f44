// fuseline audit: published claims against the simulator, the limits and what was measured.
#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/audit_table.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/shared_run.h"
#include "sim/judge/audit/claim_file.h"
#include "sim/judge/audit/report.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostIds = 1000;

// Those with the ids, in the order of the ids; all when there is none.
std::vector<audit::Claim> chosen(const std::vector<audit::Claim>& all,
                                 const std::vector<std::string>& ids) {
  if (ids.empty()) return all;
  std::vector<std::string> names;
  for (const audit::Claim& c : all) names.push_back(c.id);
  std::vector<audit::Claim> out;
  for (const std::string& id : ids) {
    const auto found = std::find(names.begin(), names.end(), id);
    if (found == names.end()) {
      throw InputError({.file = kCommandLine,
                        .field = "CLAIM-ID",
                        .value = id,
                        .message = "there is no such claim",
                        .allowed = fmt::format("{}", fmt::join(names, ", ")),
                        .nearest = nearest_name(id, names)});
    }
    out.push_back(all[static_cast<std::size_t>(found - names.begin())]);
  }
  return out;
}

CommandResult audited(const Arguments& args) {
  std::vector<std::string> ids;
  bool resume = false;
  std::optional<std::string> claims_path, format_text, output;
  Options options("audit",
                  "Published claims about fusion: what the simulator predicts of them over the "
                  "choices their sources leave open, what no implementation can pass, what was "
                  "measured, and a verdict.",
                  {"fuseline audit", "fuseline audit llama2-7b-inference whole-block-fusion",
                   "fuseline audit --claims my-claim.toml --format json",
                   "fuseline audit --format markdown --output docs/claims.md",
                   "mpirun -n 4 fuseline audit --claims my-claims --output verdicts.txt"});
  options.positional("CLAIM-ID", "claims to audit (all), with their details", ids, kMostIds);
  options.text("--claims", "DIR|FILE", "claims to read (scenarios/claims)", claims_path);
  options.text("--format", "table|json|markdown", "what to print (table)", format_text);
  options.text("--output", "FILE", "write there instead of standard output", output);
  options.flag("--resume", "go on with what an unfinished audit into --output left behind", resume);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", format_text.value_or("table"), {"table", "json", "markdown"});
  SharedRun run("audit", args, output, resume);
  const std::vector<audit::Claim> claims =
      chosen(audit::load_claims(claims_path.value_or(audit::shipped_claims())), ids);

  audit::Audit audit;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    audit = audit_claims(claims, audit::shipped_measurements(), run.sharing(),
                         [&](std::size_t done, std::size_t count) {
                           bar.show(fmt::format("{} of {} workloads", done, count),
                                    static_cast<double>(done) / static_cast<double>(count));
                         });
  }
  if (audit.stopped) end_as_interrupted();
  if (!run.first()) return {};

  std::string text;
  if (format == "json") {
    text = audit_json(audit);
  } else if (format == "markdown") {
    text = audit_markdown(audit, "fuseline audit --format markdown > docs/claims.md");
  } else {
    text = audit_table(audit, !ids.empty());
  }
  if (!output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*output, text);
  run.done();
  return {{}, fmt::format("fuseline: written {}\n", *output), ExitStatus::done};
}

}  // namespace

CommandResult audit_command(const Arguments& args) {
  return one_rank_speaks([&] { return audited(args); });
}

}  // namespace fuseline
