// The command that the window copies, and the page: both give the window's numbers.
#include "gui/model/command_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "gui/model/export.h"
#include "gui/model/session_page.h"
#include "model/formats/stored_weight.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Runs a copied command whose words need no shell, as JSON.
std::string output_of(const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> args;
  for (std::string word; in >> word;) args.push_back(word);
  args.erase(args.begin());  // fuseline
  args.insert(args.end(), {"--format", "json"});
  const CliRun run = cli(args);
  EXPECT_EQ(run.status, 0) << command << "\n" << run.err;
  return run.out;
}

std::string predictions_of(const Document& d) {
  const Results results = test::results_of(d);
  for (const ExportFile& f : export_data({.results = &results}))
    if (f.name == "predictions.json") return f.text;
  return {};
}

TEST(CommandText, GivesTheWindowsNumbers) {
  Document d = test::small_document({"eager", "coda"});
  for (const auto& change : std::vector<std::function<void(Document&)>>{
           [](Document&) {}, [](Document& x) { x.layers = std::nullopt; },
           [](Document& x) {
             x.setup = with_phase(x.setup, Phase::decode);
             x.setup.workload.batch = 3;
             x.setup.workload.formats.weights = parse_stored_weight("int8", "weights", "bf16");
           },
           [](Document& x) { x.setup.fidelity = Fidelity::roofline; },
           [](Document& x) { x.setup.gpu = "h100-sxm"; }}) {
    Document changed = d;
    change(changed);
    const CommandText text = command_of(changed, "");
    EXPECT_THAT(text.command, StartsWith("fuseline predict --model tinyllama --gpu "));
    EXPECT_EQ(text.note, "");
    EXPECT_EQ(output_of(text.command), predictions_of(changed)) << text.command;
  }
}

TEST(CommandText, NamesTheSessionWhereWordsCannotSayIt) {
  Document d = test::small_document({"eager"});
  d.setup.what_if.sm_clock = 2;
  EXPECT_EQ(command_of(d, "my file.toml").command, "fuseline predict 'my file.toml'");
  EXPECT_THAT(command_of(d, "").note, HasSubstr("save the session first"));
  d = test::small_document({"eager"});
  d.runs.add({.policy = kCustomPolicy});
  EXPECT_EQ(command_of(d, "a.toml").command, "fuseline predict a.toml");
  EXPECT_THAT(command_of(d, "a.toml").note, HasSubstr("chosen edges"));
  EXPECT_THAT(command_of_run(d, d.runs.all()[0], "").command, HasSubstr("--policy eager"));
}

TEST(CommandText, WordsAreQuotedForAShell) {
  EXPECT_EQ(shell_word("h100-sxm"), "h100-sxm");
  EXPECT_EQ(shell_word("int4:128"), "int4:128");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's; rm $x"), "'it'\\''s; rm $x'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(SessionPage, HoldsRunsCommandPicturesAndDataAndNoMarkupOfItsInput) {
  Document d = test::small_document({"eager", "coda"});
  d.title = "<script>alert(1)</script> & \"more\"";
  const Results results = test::results_of(d);
  Table table{"t", {"run", "time_us"}, {}};
  add_row(table, {std::string("<b>"), 1.5}, subject_of(results.runs[0]));
  const std::string page = session_page(
      d, results, {{"traffic", "HBM traffic", "bytes & more", "<svg>abcd</svg>", {table}}}, "");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(page, HasSubstr("fuseline predict --model tinyllama"));
  EXPECT_THAT(page, HasSubstr("base64,PHN2Zz5hYmNkPC9zdmc+\""));
  EXPECT_THAT(page, HasSubstr("<td>&lt;b&gt;</td><td>1.5</td>"));
  EXPECT_THAT(page, HasSubstr("coda"));
  EXPECT_THAT(page, Not(HasSubstr("http")));  // nothing is fetched
}

}  // namespace
}  // namespace fuseline::gui
