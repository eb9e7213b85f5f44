#include "cli/man_page.h"

#include <string_view>

#include <fmt/format.h>

#include "base/version.h"

namespace fuseline {

namespace {

// Of text that man(7) would read as its own: backslashes, hyphens that are signs, and a full stop
// or an apostrophe at the beginning of a line.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins = out.empty() || out.back() == '\n';
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

// Lines of a table in a summary keep their ends.
std::string paragraph(const std::string& text) {
  const bool table = text.find("\n  ") != std::string::npos;
  return table ? ".nf\n" + roff(text) + "\n.fi\n" : roff(text) + "\n";
}

std::string entry(const std::string& term, const std::string& help) {
  return ".TP\n" + term + "\n" + roff(help) + "\n";
}

std::string section(const CommandDescription& c) {
  std::string out = fmt::format(".SS {}\n.B fuseline {}", roff(c.name), roff(c.name));
  if (!c.options.empty()) out += " \\fR[\\fIOPTIONS\\fR]";
  if (!c.argument.empty()) out += " \\fR[\\fI" + roff(c.argument) + "\\fR]";
  out += "\n.PP\n" + paragraph(c.summary);
  if (!c.argument.empty()) out += entry("\\fI" + roff(c.argument) + "\\fR", c.argument_help);
  for (const OptionDescription& o : c.options) {
    const std::string value = o.value.empty() ? "" : " \\fI" + roff(o.value) + "\\fR";
    out += entry("\\fB" + roff(o.name) + "\\fR" + value, o.help);
  }
  if (c.examples.empty()) return out;
  out += ".PP\nExamples:\n.PP\n.nf\n.RS 4\n";
  for (const std::string& example : c.examples) out += roff(example) + "\n";
  return out + ".RE\n.fi\n";
}

}  // namespace

std::string man_page(const std::vector<CommandDescription>& commands,
                     const std::string& exit_status) {
  std::string out = fmt::format(
      ".\\\" Made by: fuseline \\-\\-man\n"
      ".TH FUSELINE 1 \"\" \"fuseline {}\" \"User Commands\"\n"
      ".SH NAME\nfuseline \\- predicts what fusing a neural\\-network block is worth on a GPU\n"
      ".SH SYNOPSIS\n.B fuseline\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n"
      "fuseline models, executes and runs fused neural\\-network blocks: predicted time and "
      "traffic, a CPU executor that checks the fused maths, and CUDA kernels.\n"
      ".PP\nResults go to standard output, messages and errors to standard error.\n"
      ".SH COMMANDS\n",
      kVersion);
  for (const CommandDescription& command : commands) out += section(command);
  out += ".SH EXIT STATUS\n" + roff(exit_status) + "\n";
  out +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B FUSELINE_DATA\nthe folder of models, GPUs and measurements, in the place of the "
      "installed one\n"
      ".SH SEE ALSO\nThe handbook and the reference that are installed with the program.\n";
  return out;
}

}  // namespace fuseline
