// The editor of a block's text: right texts are predicted, wrong ones marked at their line, and all
// of it can be undone, saved and found again.
#include "gui/model/block_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "gui/model/choices.h"
#include "gui/model/session_file.h"
#include "gui/model/workbench.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BlockEditor : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        fs::path(testing::TempDir()) /
        (std::string("block_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  static std::string shipped(const std::string& name) {
    return read_input_file(data_dir() / "blocks" / (name + ".block"));
  }
  fs::path folder_;
};

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Without SwiGLU's gate: fewer weights, so other bytes.
std::string without_gate() {
  std::string text = read_input_file(data_dir() / "blocks" / "llama.block");
  text = changed(text, "w_gate_up[2 F, D], b_gate_up[2 F] if mlp_bias", "w_gate_up[F, D]");
  return changed(text, "swiglu(gu)", "gelu(gu)");
}

TEST_F(BlockEditor, ShowsTheTextOfTheModelsOwnFile) {
  const BlockEditorText editor = block_editor_text(test::small_document({"eager"}));
  EXPECT_EQ(editor.name, "llama");
  EXPECT_EQ(editor.text, shipped("llama"));
  EXPECT_FALSE(editor.edited());
  EXPECT_FALSE(editor.problem);
}

TEST_F(BlockEditor, PredictionsFollowARightText) {
  Workbench bench(test::small_document({"eager"}), {});
  bench.wait();
  const RunId run = bench.document().runs.all().front().id;
  const Flops before = bench.results().find(run)->result->totals.flops;
  bench.set_block_text(without_gate());
  bench.wait();
  ASSERT_TRUE(bench.results().find(run)->ok());
  EXPECT_LT(bench.results().find(run)->result->totals.flops.value(), before.value());
  EXPECT_TRUE(block_editor_text(bench.document()).edited());
  EXPECT_THAT(bench.results().find(run)->result->block->model.title, HasSubstr("edited"));
  // The same text again is the file's, and nothing is edited.
  bench.set_block_text(shipped("llama"));
  EXPECT_TRUE(bench.document().setup.change.text.empty());
  bench.wait();
  EXPECT_EQ(bench.results().find(run)->result->totals.flops, before);
}

struct Mistake {
  const char *from, *to;
  int line;
  const char* message;
};

TEST_F(BlockEditor, MarksTheLineOfAMistakeAndKeepsTheLastRightPrediction) {
  const Mistake mistakes[] = {
      {"rms_norm(x,", "rsm_norm(x,", 9, "did you mean 'rms_norm'"},
      {"swiglu(gu)", "swiglu(gu", 23, ""},
      {"linear(attn, w_o[D, H d]", "linear(attn, w_o[D, F]", 18, "columns"},
      {"fuseline.block/1", "fuseline.block/9", 1, "version"},
  };
  for (const Mistake& m : mistakes) {
    Workbench bench(test::small_document({"eager"}), {});
    bench.wait();
    const gui::Setup right = bench.document().setup;
    const std::string text = changed(shipped("llama"), m.from, m.to);
    bench.set_block_text(text, "typing");
    const BlockEditorText editor = block_editor_text(bench.document());
    ASSERT_TRUE(editor.problem) << m.to;
    EXPECT_EQ(editor.text, text);
    const std::string before = text.substr(0, text.find(m.to));
    const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    EXPECT_GE(editor.problem->line, line) << editor.problem->text;
    EXPECT_LE(editor.problem->line, line + 1) << editor.problem->text;
    EXPECT_GE(editor.problem->column, 1) << m.to;
    EXPECT_THAT(editor.problem->text, HasSubstr(m.message));
    EXPECT_EQ(bench.document().setup, right) << "a wrong text is not predicted";
    EXPECT_FALSE(bench.is_computing()) << "nothing is computed for a wrong text";
  }
}

TEST_F(BlockEditor, AnEmptyTextAndOneThatIsTooLongAreWrong) {
  const gui::Setup setup = test::small_setup();
  EXPECT_THAT(with_text(setup, "").problem->text, HasSubstr("empty"));
  EXPECT_THAT(with_text(setup, std::string(2 << 20, '#')).problem->text, HasSubstr("1 MiB"));
}

TEST_F(BlockEditor, TypingIsOneStepOfUndoAndResetAnother) {
  Workbench bench(test::small_document({"eager"}), {});
  const std::string right = without_gate();
  bench.set_block_text(changed(right, "gelu", "gelx"), "typing");
  bench.set_block_text(right, "typing");
  bench.end_gesture();
  EXPECT_TRUE(bench.document().draft.empty());
  bench.reset_block_text();
  EXPECT_EQ(block_editor_text(bench.document()).text, shipped("llama"));
  EXPECT_TRUE(bench.undo());
  EXPECT_EQ(block_editor_text(bench.document()).text, right);
  EXPECT_TRUE(bench.undo());
  EXPECT_EQ(block_editor_text(bench.document()).text, shipped("llama"));
  EXPECT_FALSE(bench.undo());
  EXPECT_TRUE(bench.redo());
  EXPECT_EQ(block_editor_text(bench.document()).text, right);
}

TEST_F(BlockEditor, IsSavedAsAFileThatTheCommandLinePredicts) {
  Workbench bench(test::small_document({"coda"}), {});
  bench.set_block_text(without_gate());
  bench.save_block(path("mine.block"));
  EXPECT_EQ(read_input_file(path("mine.block")), without_gate());
  EXPECT_EQ(bench.document().setup.change, (BlockChange{.block = path("mine.block")}));
  EXPECT_FALSE(block_editor_text(bench.document()).edited());
  EXPECT_EQ(block_editor_text(bench.document()).name, "mine.block");
  bench.wait();
  const auto& totals = bench.results().runs.front().result->totals;
  const CliRun run = cli({"predict", "--model", "tinyllama", "--gpu", bench.document().setup.gpu,
                          "--seq", std::to_string(bench.document().setup.workload.seq), "--policy",
                          "coda", "--block", path("mine.block"), "--format", "csv"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(std::to_string(totals.flops.value())));
  // Saved once more, the results are those of the new text.
  bench.set_block_text(changed(without_gate(), "w_gate_up[F, D]", "w_gate_up[2 F, D]"));
  EXPECT_TRUE(block_editor_text(bench.document()).problem) << "down takes F columns";
}

TEST_F(BlockEditor, RefusesToOverwriteShippedBlocksAndOtherNames) {
  Workbench bench(test::small_document({"eager"}), {});
  EXPECT_THROW(bench.save_block((data_dir() / "blocks/llama.block").string()), InputError);
  EXPECT_THROW(bench.save_block(path("mine.txt")), InputError);
  EXPECT_THROW(bench.save_block((folder_ / "nowhere/mine.block").string()), InputError);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(BlockEditor, AWrongTextMayBeSavedAndIsNotPredicted) {
  Workbench bench(test::small_document({"eager"}), {});
  const std::string wrong = changed(shipped("llama"), "swiglu(gu)", "swigly(gu)");
  bench.set_block_text(wrong);
  bench.save_block(path("draft.block"));
  EXPECT_EQ(read_input_file(path("draft.block")), wrong);
  EXPECT_TRUE(bench.document().setup.change.block.empty());
}

TEST_F(BlockEditor, ASessionKeepsTheTextAndTheDraft) {
  Workbench bench(test::small_document({"eager"}), {});
  bench.set_block_text(without_gate());
  bench.set_block_text(changed(without_gate(), "gelu(gu)", "gelu(\"\\gu"));
  ASSERT_FALSE(bench.document().draft.empty());
  save_document(bench.document(), path("s.toml"));
  const Document read = load_document(path("s.toml")).document;
  EXPECT_EQ(read.draft, bench.document().draft);
  EXPECT_EQ(read.setup, bench.document().setup);
  // The command line predicts the last right text.
  const CliRun run = cli({"predict", path("s.toml"), "--format", "csv"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("tinyllama:llama"));
}

TEST_F(BlockEditor, OneTextServesAllKindsOfLayersOfItsFile) {
  Document d = test::small_document({"eager"});
  d.setup.model = "gemma2-9b";
  d.setup.workload.seq = 64;
  const gui::Setup setup = with_text(d.setup, changed(shipped("gemma2"), "geglu", "swiglu")).setup;
  ASSERT_FALSE(setup.change.text.empty());
  const ModelConfig model = resolve(setup).model;
  ASSERT_EQ(model.blocks.size(), 2u);
  for (const BlockUse& use : model.blocks) EXPECT_NE(use.text, nullptr) << use.label();
}

TEST_F(BlockEditor, ABlockStandsAloneWhereTheModelDoesNotFit) {
  const std::string text =
      "fuseline.block/1\n\nblock small(D = 64, wings = 3)\n  input x[M, D]\n"
      "  y = linear(x, w[wings D, D])\n  output y\n";
  std::ofstream(path("small.block")) << text;
  gui::Setup setup = test::small_setup();
  setup = with_block_of(setup, path("small.block"));
  EXPECT_EQ(setup.change.block, path("small.block"));
  EXPECT_THROW(with_block_of(test::small_setup(), path("none.block")), InputError);
  EXPECT_EQ(kind_of_file(path("small.block")), FileKind::block);
}

TEST_F(BlockEditor, AnotherModelComesWithItsOwnBlock) {
  Workbench bench(test::small_document({"eager"}), {});
  bench.set_block_text(without_gate());
  gui::Setup other = bench.document().setup;
  other.model = "gpt2-xl";
  bench.set_setup(other, "model gpt2-xl");
  EXPECT_EQ(bench.document().setup.change, BlockChange{});
  EXPECT_EQ(block_editor_text(bench.document()).name, "gpt");
}

TEST_F(BlockEditor, WordsOfALineHaveRoles) {
  EXPECT_THAT(words_of_line("  act/swiglu: act = swiglu(gu, 2)  # gate"),
              ElementsAre(WordSpan{2, 3, WordRole::label}, WordSpan{6, 6, WordRole::label},
                          WordSpan{20, 6, WordRole::function}, WordSpan{31, 1, WordRole::number},
                          WordSpan{35, 6, WordRole::comment}));
  EXPECT_THAT(words_of_line("output y -> x"), ElementsAre(WordSpan{0, 6, WordRole::keyword}));
  EXPECT_TRUE(words_of_line("").empty());
}

TEST_F(BlockEditor, FormatsThatTheGpuOrTheModelCannotHaveSayWhy) {
  gui::Setup setup = test::small_setup();
  setup.gpu = "a100-sxm-80gb";
  const auto find = [&](FormatOf of, const std::string& value) {
    for (const Choice& choice : format_choices(setup, of))
      if (choice.value == value) return choice;
    ADD_FAILURE() << value;
    return Choice{};
  };
  EXPECT_TRUE(find(FormatOf::weights, "int4").enabled);
  const Choice fp8 = find(FormatOf::activations, "fp8");
  EXPECT_FALSE(fp8.enabled);
  EXPECT_THAT(fp8.why_not, HasSubstr("a100-sxm-80gb"));
  setup.gpu = "h200";
  EXPECT_TRUE(find(FormatOf::activations, "fp8").enabled);
  // Activations bring their weights, and leave with them.
  gui::Setup coded = with_format(setup, FormatOf::activations, "fp8");
  EXPECT_EQ(format_value(coded, FormatOf::weights), "fp8");
  coded = with_format(coded, FormatOf::weights, "int8");
  EXPECT_EQ(format_value(coded, FormatOf::activations), "");
  setup.workload.phase = Phase::train;
  EXPECT_FALSE(find(FormatOf::weights, "int4").enabled);
  EXPECT_FALSE(find(FormatOf::cache, "int8").enabled);
  EXPECT_THROW(with_format(setup, FormatOf::weights, "int5"), InputError);
}

}  // namespace
}  // namespace fuseline::gui
