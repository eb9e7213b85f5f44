// fuseline report: one case as a self-contained HTML file.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/html_report.h"
#include "sim/selection/report_request.h"

namespace fuseline {

CommandResult report_command(const Arguments& args) {
  SelectionTexts texts;
  std::optional<std::string> output, measurements, trace;
  std::vector<std::string> scenario;
  Options options(
      "report",
      "One self-contained HTML file of a case: times with bands, traffic, kernels, plans, "
      "commands.",
      {"fuseline report scenarios/llama2-7b-h200.toml --output report.html",
       "fuseline report --model llama3-8b --gpu h200 --policy eager,coda > report.html"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", scenario, 1);
  texts.add_to(options);
  texts.add_simulation_to(options);
  texts.add_image_to(options);
  options.text("--measurements", "FOLDER", "measured runs, in the place of the scenario's",
               measurements);
  options.text("--output", "FILE", "write there instead of standard output", output);
  options.text("--trace", "FILE", "also a trace of the runs, for Perfetto", trace);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (output) check_writable(*output, "--output");
  if (trace) check_writable(*trace, "--trace");

  ProgressBar bar;
  const ReportedCase report = report_case(
      scenario.empty() ? std::nullopt : std::optional(scenario.front()), texts, measurements,
      [&bar](const std::string& what, double done) { bar.show(what, done); });
  bar.clear();
  std::string text = html_report(report), messages;
  if (trace) {
    write_file_atomically(*trace, chrome_trace(report.what, report.predictions), "--trace");
    messages += fmt::format("fuseline: written {}\n", *trace);
  }
  if (!output) return {std::move(text), std::move(messages), ExitStatus::done};
  write_file_atomically(*output, text);
  return {{}, messages + fmt::format("fuseline: written {}\n", *output), ExitStatus::done};
}

}  // namespace fuseline
