// The language of blocks: what is read, what comes back as text, and what is refused where.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/operators/attributes.h"
#include "model/text/lexer.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

std::string file_text(const std::string& name) {
  return read_input_file(data_dir() / "blocks" / (name + ".block"));
}

Graph build(const std::string& text, const ParameterValues& values = {},
            const Workload& work = test::forward(2, 3)) {
  return build_graph(*BlockText::parse(text, "t.block"), values, work);
}

// A block around some lines: x [M, D] with D = 8 comes in, y goes out.
std::string block(const std::string& lines) {
  return "fuseline.block/1\nblock b(D = 8, F = 12)\n  input x[M, D]\n" + lines + "  output y\n";
}

InputProblem block_problem(const std::string& text, const Workload& work = test::forward(2, 3)) {
  try {
    build(text, {}, work);
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "nothing was refused:\n" << text;
  return {};
}

// PyTorch's gradient of the tokens that nobody reads is zero, which no operator here makes.
TEST(BlockLanguage, TrainingOfAPartThatNobodyReadsIsRefused) {
  const Graph graph =
      build(block("  n = rms_norm(x, w_n[D])\n  first, others = split_tokens(n, 1, T - 1)\n"
                  "  y = linear(first, w[D, D])\n"));
  try {
    static_cast<void>(differentiate(graph));
    FAIL() << "nothing was refused";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().value, "n");
    EXPECT_THAT(error.problem().message, HasSubstr("read by nobody"));
  }
}

class ShippedBlock : public testing::TestWithParam<std::string> {};

TEST_P(ShippedBlock, ComesBackAsTheSameText) {
  const BlockFile file = parse_block_file(file_text(GetParam()), GetParam());
  const std::string printed = block_file_text(file);
  EXPECT_EQ(printed, file_text(GetParam())) << "the file is not as the printer writes it";
  EXPECT_EQ(block_file_text(parse_block_file(printed, "again")), printed);
}

TEST_P(ShippedBlock, IsNamedAsItsFile) {
  EXPECT_EQ(load_block_text(GetParam())->name(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, ShippedBlock, testing::ValuesIn(block_names()),
                         [](const auto& p) { return p.param; });

TEST(BlockLanguage, MakesAGraphWithShapesInWords) {
  const Graph g =
      build(block("  up: u = linear(x, w_u[2 F, D], b_u[2 F])\n"
                  "  act/gate: y = swiglu(u)\n"));
  const Tensor& u = g.tensor(*g.find_tensor("u"));
  EXPECT_EQ(u.rows, 6);
  EXPECT_EQ(u.cols, 24);
  EXPECT_EQ(u.symbol, "[M, 2F]");
  EXPECT_EQ(g.tensor(*g.find_tensor("y")).symbol, "[M, F]");
  EXPECT_EQ(g.tensor(*g.find_tensor("y")).role, Role::output);
  EXPECT_EQ(g.tensor(*g.find_tensor("w_u")).role, Role::weight);
  EXPECT_TRUE(g.find_op("up_bias"));
  EXPECT_EQ(g.op(*g.find_op("gate")).site, "act");
}

TEST(BlockLanguage, DefaultsShortenTheWordsOfShapes) {
  const std::string text =
      "fuseline.block/1\nblock b(D, H, Hkv = H, d = D / H)\n  input x[M, D]\n"
      "  y = linear(x, w_y[(H + 2 Hkv) d, D])\n  output y\n";
  const auto symbol = [&](std::int64_t kv_heads, std::int64_t width) {
    const Graph g = build(
        text, {{"D", std::int64_t{24}}, {"H", std::int64_t{4}}, {"Hkv", kv_heads}, {"d", width}});
    return g.tensor(*g.find_tensor("y")).symbol;
  };
  EXPECT_EQ(symbol(4, 6), "[M, 3D]");
  EXPECT_EQ(symbol(2, 6), "[M, (H+2Hkv)·d]");
  EXPECT_EQ(symbol(4, 7), "[M, 3H·d]");
}

TEST(BlockLanguage, AddsBranchesToStreamsAndVectorsToRows) {
  const Graph g =
      build(block("  h = x + gelu(linear(x, w_a[D, D]))\n"
                  "  s = 0.5 * h * w_g[D]\n"
                  "  y = s + b_v[D]\n"));
  std::vector<std::string> kinds;
  for (const Op& op : g.ops()) kinds.emplace_back(name_of(op.kind));
  EXPECT_THAT(
      kinds, testing::ElementsAre("gemm", "gelu", "residual_add", "scale", "mul_cols", "bias_add"));
  // The branch first, then the stream that it left.
  const Op& sum = g.op(*g.find_op("h"));
  EXPECT_EQ(g.tensor(sum.reads[1].tensor).name, "x");
}

TEST(BlockLanguage, ChoosesByPhaseAndOption) {
  const std::string text =
      "fuseline.block/1\nblock b(D = 8, wide = no)\n  input x[M, D]\n  if wide\n"
      "    a = linear(x, w_a[2 D, D])\n    y = linear(a, w_b[D, 2 D])\n  else if decode\n"
      "    y = gelu(x)\n  else\n    y = linear(x, w_a[D, D], b_a[D] if train)\n  output y\n";
  EXPECT_EQ(build(text).ops().size(), 1U);
  EXPECT_EQ(build(text, {}, test::train(1, 2)).ops().size(), 2U);
  EXPECT_EQ(build(text, {{"wide", true}}).ops().size(), 2U);
  EXPECT_STREQ(name_of(build(text, {}, test::decode(1, 1, 4)).ops()[0].kind), "gelu");
}

TEST(BlockLanguage, PartsAreUsedAgainUnderTheirLabels) {
  const Graph g = build(
      "fuseline.block/1\npart mlp(x, N, F)\n  up: u = linear(x, w_up[F, N])\n"
      "  down: d = linear(gelu(u), w_down[N, F])\n  give d\n"
      "block b(D = 8, F = 12)\n  input x[M, D]\n  first: a = mlp(x, D, F)\n"
      "  second: y = mlp(a, N = D, F = 2 F)\n  output y\n");
  EXPECT_TRUE(g.find_tensor("w_first_up"));
  EXPECT_EQ(g.tensor(*g.find_tensor("w_second_up")).rows, 24);
  EXPECT_EQ(g.tensor(*g.find_tensor("w_second_up")).symbol, "[2F, D]");
  EXPECT_TRUE(g.find_op("second_down"));
  EXPECT_EQ(g.op(*g.find_op("first_up")).site, "first_up");
}

TEST(BlockLanguage, StreamsJoinAndPartBySequence) {
  const Graph g = build(
      "fuseline.block/1\nblock b(D = 8, Tt = 2)\n  input x[M, D], c[B Tt, D]\n"
      "  j = join_tokens(x, c)\n  g = gelu(j)\n  a, e = split_tokens(g, T, Tt)\n"
      "  y = linear(a, w_a[D, D])\n  z = linear(e, w_e[D, D])\n  output y, z\n");
  const Operand text_rows = g.op(*g.find_op("e")).reads[0];
  EXPECT_EQ(text_rows.rows, 4);
  EXPECT_EQ(text_rows.at, (RowRuns{.begin = 3, .run = 2, .step = 5}));
}

TEST(BlockLanguage, CachesAreAppendedInDecodeAlone) {
  const std::string text = file_text("llama");
  const ModelConfig c = test::tiny_llama();
  const ParameterValues values = block_values(c, c.blocks.front());
  EXPECT_FALSE(build(text, values).find_tensor("cache_k"));
  const Graph g = build(text, values, test::decode(2, 1, 7));
  EXPECT_EQ(g.tensor(*g.find_tensor("cache_k")).rows, 14);
  EXPECT_EQ(g.op(*g.find_op("append_k")).writes[0].at, (RowRuns{.begin = 6, .run = 1, .step = 7}));
}

TEST(BlockLanguage, AttentionWithoutACacheHasNoDecode) {
  const std::string text = block("  y = attention(x, x, x, heads = 2)\n");
  EXPECT_NO_THROW(build(text));
  const InputProblem p = block_problem(text, test::decode(1, 1, 4));
  EXPECT_EQ(p.line, 4);
  EXPECT_THAT(p.message, HasSubstr("keeps none"));
}

TEST(BlockLanguage, NoRemarkIsLost) {
  const std::string printed = block_file_text(parse_block_file(
      "fuseline.block/1  # first\n# second\nblock b(D = 8)  # third\n  # fourth\n"
      "  input x[M, D]  # fifth\n  if forward  # sixth\n    y = gelu(x)\n  else  # seventh\n"
      "    y = silu(x)\n  output y\n# eighth\n",
      "t.block"));
  for (const char* word :
       {"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"})
    EXPECT_THAT(printed, HasSubstr(std::string("# ") + word)) << printed;
  EXPECT_EQ(block_file_text(parse_block_file(printed, "again")), printed);
}

TEST(BlockLanguage, WhatAModelGivesComesBeforeDefaults) {
  EXPECT_EQ(
      build(block("  y = linear(x, w[F, D])\n"), {{"F", std::int64_t{5}}}).tensor(TensorId{2}).cols,
      5);
  try {
    build("fuseline.block/1\nblock b(D)\n  input x[M, D]\n  y = gelu(x)\n  output y\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().value, "D");
    EXPECT_EQ(error.problem().line, 2);
  }
}

struct Refused {
  const char* name;
  std::string text;
  int line, column;
  const char* message;
};

class RefusedBlock : public testing::TestWithParam<Refused> {};

TEST_P(RefusedBlock, IsRefusedAtItsPlace) {
  const InputProblem p = block_problem(GetParam().text);
  EXPECT_EQ(p.line, GetParam().line) << format_problem(p);
  EXPECT_EQ(p.column, GetParam().column) << format_problem(p);
  EXPECT_THAT(format_problem(p), HasSubstr(GetParam().message));
  EXPECT_THAT(format_problem(p), HasSubstr(" | ")) << "the line is not shown";
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedBlock,
    testing::Values(
        Refused{"NoVersion", "block b(D = 8)\n", 1, 1, "does not begin with its version"},
        Refused{"LaterVersion", "fuseline.block/9\n", 1, 1, "fuseline.block/1"},
        Refused{"UnknownLetter", block("  y = linear(x, w[E, D])\n"), 4, 19, "'E'"},
        Refused{"NearbyName", block("  first = gelu(x)\n  y = gelu(frist)\n"), 5, 12,
                "did you mean 'first'?"},
        Refused{"UnknownOperator", block("  y = gleu(x)\n"), 4, 7, "did you mean 'gelu'?"},
        Refused{"OperatorOfRewrites", block("  y = rms_norm_backward(x)\n"), 4, 7,
                "only rewrites and gradients make"},
        Refused{"ShapeDoesNotFit", block("  y = rms_norm(x, w[F])\n"), 4, 19, "N = 8"},
        Refused{"ProductDoesNotFit", block("  y = linear(x, w[F, F])\n"), 4, 17, "K = 8"},
        Refused{"BiasDoesNotFit", block("  y = linear(x, w[F, D], b[D])\n"), 4, 26, "the bias is"},
        Refused{"NoWholeQuotient", block("  y = linear(x, w[D / 3, D])\n"), 4, 19,
                "is not a multiple"},
        Refused{"ExpertsWithoutEach", block("  y = expert_linear(x, w[5, F, D])\n"), 4, 7,
                "'each' is missing"},
        Refused{"ExpertsWithoutMatrices", block("  y = expert_linear(x, w[F, D], each = 1)\n"), 4,
                24, "three sizes"},
        Refused{"ExpertsDoNotFit", block("  y = expert_linear(x, w[5, F, F], each = 1)\n"), 4, 24,
                "K = 8"},
        Refused{"TooManyExperts", block("  y = expert_linear(x, w[2, F, D], each = 3)\n"), 4, 7,
                "3 of 2 experts"},
        Refused{"RowsWithoutExperts", block("  y = expert_linear(x, w[5, F, D], each = 4)\n"), 4,
                21, "not 4 for each token"},
        Refused{"UnknownWord", block("  y, c = choose_experts(x, count = 2, weights = softmx)\n"),
                4, 49, "did you mean 'softmax'?"},
        Refused{"TooManyChosen", block("  y, c = choose_experts(x, count = 9)\n"), 4, 36, "1 to 8"},
        Refused{"ExactInput", block("  y = gelu(exact(x))\n"), 4, 18, "outside the block"},
        Refused{"ExactPart", block("  a, b = split(gelu(x), 4, 4)\n  y = a * silu(exact(b))\n"), 5,
                22, "part of a tensor"},
        Refused{"HeadsOfUnlikeWidth", block("  y = join_heads(x, x, heads = 3)\n"), 4, 7,
                "whole heads"},
        Refused{"RatesDoNotFit", block("  y = selective_scan(x, x, x, x, w[3, 3], heads = 8)\n"), 4,
                7, "[8, 1] or [8, 8]"},
        Refused{"HeadMatricesDoNotFit", block("  y = head_linear(x, w[6, 3], heads = 2)\n"), 4, 7,
                "6 columns"},
        Refused{"ZeroSize", block("  y = linear(x, w[D - 8, D])\n"), 4, 17, "out of range"},
        Refused{"NegativeSize", block("  y = linear(x, w[-D, D])\n"), 4, 17, "out of range"},
        Refused{"FractionalSize", block("  y = linear(x, w[0.5, D])\n"), 4, 19, "whole numbers"},
        Refused{"HugeSize", block("  y = linear(x, w[D 99999999999, D])\n"), 4, 17, "out of range"},
        Refused{"BeyondBits", block("  y = linear(x, w[9223372036854775807 F, D])\n"), 4, 19,
                "beyond 64 bits"},
        Refused{"HugeNumber", block("  y = linear(x, w[99999999999999999999, D])\n"), 4, 19,
                "whole numbers"},
        Refused{"UsedBeforeGiven", block("  y = gelu(z)\n  z = gelu(y)\n"), 4, 12, "'z'"},
        Refused{"GivenTwice", block("  y = gelu(x)\n  y = gelu(x)\n"), 5, 3, "line 4"},
        Refused{"ReservedLetter", block("  T = gelu(x)\n  y = gelu(x)\n"), 4, 3, "every block"},
        Refused{"UnknownArgument", block("  y = rms_norm(x, w[D], epps = 1)\n"), 4, 25,
                "did you mean 'eps'?"},
        Refused{"MissingArgument", block("  y = rms_norm(x)\n"), 4, 7, "'w' is missing"},
        Refused{"TooManyArguments", block("  y = gelu(x, x)\n"), 4, 15, "takes 1 argument"},
        Refused{"NumberForATensor", block("  y = gelu(8)\n"), 4, 12, "a whole number"},
        Refused{"SplitLeavesColumns", block("  a, b = split(x, 3, 4)\n  y = a + b\n"), 4, 10,
                "7 of the 8 columns"},
        Refused{"WrongCount", block("  a, b = split(x, 8)\n  y = a + b\n"), 4, 10, "gives 1 value"},
        Refused{"HeadsDoNotDivide", block("  y = attention(x, x, x, heads = 3)\n"), 4, 7,
                "are not 3 whole heads"},
        Refused{"UnknownMask", block("  y = attention(x, x, x, heads = 2, mask = casual)\n"), 4, 44,
                "did you mean 'causal'?"},
        Refused{"NothingReadsIt", block("  z = gelu(x)\n  y = gelu(x)\n"), 4, 3,
                "nothing reads it"},
        Refused{"RequirementSaysWhy", block("  require D > 8, \"too narrow for it\"\n"), 4, 11,
                "too narrow for it"},
        Refused{"NoOutput", "fuseline.block/1\nblock b(D = 8)\n  input x[M, D]\n", 2, 1,
                "no output"},
        Refused{"OutputOfAnInput",
                "fuseline.block/1\nblock b(D = 8)\n  input x[M, D]\n  output x\n", 4, 10,
                "not computed"},
        Refused{"NextIsNoInput", block("  h = gelu(x)\n  y = gelu(h)\n  output h -> y\n"), 6, 10,
                "no input"},
        Refused{"OpenBracket", block("  y = gelu(x\n"), 4, 11, "not closed"},
        Refused{"ClosedTwice", block("  y = gelu(x))\n"), 4, 14, "closes no bracket"},
        Refused{"Tab", block("\ty = gelu(x)\n"), 4, 1, "tab"},
        Refused{"FurtherIn", block("  h = gelu(x)\n    y = gelu(h)\n"), 5, 5, "further in"},
        Refused{"OddIndentation", block("  if forward\n      y = gelu(x)\n    z = gelu(x)\n"), 6, 5,
                "column"},
        Refused{"StrangeCharacter", block("  y = gelu(x) ; z\n"), 4, 15, "';'"},
        Refused{"Circle",
                "fuseline.block/1\npart p(x)\n  give q(x)\npart q(x)\n  give p(x)\n"
                "block b(D = 8)\n  input x[M, D]\n  y = p(x)\n  output y\n",
                5, 8, "p -> q -> p"},
        Refused{"SecondBlock", "fuseline.block/1\nblock a(D)\n  output D\nblock b(D)\n  output D\n",
                4, 1, "second block"},
        Refused{"PartWithoutLabelTwice",
                "fuseline.block/1\npart p(x, D)\n  give linear(x, w[D, D])\nblock b(D = 8)\n"
                "  input x[M, D]\n  a = p(x, D)\n  y = p(a, D)\n  output y\n",
                3, 18, "label"}),
    [](const auto& p) { return p.param.name; });

TEST(BlockLanguage, NonsenseOfAnyLengthIsOneMessage) {
  std::string lines = "fuseline.block/1\n";
  for (int i = 0; i < 1'000'000; ++i) lines += "#\n";
  const InputProblem many = block_problem(lines);
  EXPECT_EQ(many.line, kMostLines + 1);
  EXPECT_THAT(many.message, HasSubstr("too many lines"));

  const InputProblem deep = block_problem(block("  y = " + std::string(100'000, '(') + "\n"));
  EXPECT_THAT(deep.message, HasSubstr("too many brackets"));
  std::string sum = "  y = x";
  for (int i = 0; i < 100'000; ++i) sum += " + x";
  EXPECT_THAT(block_problem(block(sum + "\n")).message, HasSubstr("too long"));
  EXPECT_THAT(block_problem(block("  y = " + std::string(199'999, '-') + "x\n")).message,
              HasSubstr("no negative"));
  // Parts that call parts twice each: 2^40 operators.
  std::string parts = "fuseline.block/1\npart p0(x)\n  give gelu(x)\n";
  for (int i = 1; i <= 14; ++i)
    parts += "part p" + std::to_string(i) + "(x)\n  give p" + std::to_string(i - 1) + "(p" +
             std::to_string(i - 1) + "(x))\n";
  EXPECT_THAT(
      block_problem(parts + "block b(D = 8)\n  input x[M, D]\n  y = p14(x)\n  output y\n").message,
      HasSubstr("too many operators"));
}

// What the reader, the check of circles and the builder would go down into, one level a line.
TEST(BlockLanguage, ChainsOfThousandsAreRefusedBeforeTheStackEnds) {
  std::string cases = "  if D == 1\n    y = gelu(x)\n";
  for (int i = 0; i < 6'000; ++i)
    cases += "  else if D == " + std::to_string(i) + "\n    y = gelu(x)\n";
  const InputProblem chosen = block_problem(block(cases));
  EXPECT_THAT(chosen.message, HasSubstr("too many cases"));
  EXPECT_EQ(chosen.line, 4 + 2 * 200);

  std::string parts = "fuseline.block/1\n";
  for (int i = 0; i < 9'000; ++i)
    parts += fmt::format("part p{:05}(x)\n  give p{:05}(x)\n", i, i + 1);
  const InputProblem nested =
      block_problem(parts +
                    "part p09000(x)\n  give gelu(x)\nblock b(D = 8)\n  input x[M, D]\n"
                    "  y = p00000(x)\n  output y\n");
  EXPECT_THAT(nested.message, HasSubstr("go too deep"));
  EXPECT_EQ(nested.line, 33);
}

// Beyond, two places would have the same number, and rows would be lost without a word.
TEST(BlockLanguage, MoreRowsThanFp32HasPlacesForAreRefused) {
  const std::string sort = block("  order = sort_places(x)\n  y = take_rows(x, order, each = 8)\n");
  const std::int64_t most = std::int64_t{1} << 21;  // of 8 numbers each
  const Graph graph = build(sort, {}, test::forward(1, most));
  EXPECT_EQ(graph.tensor(graph.find_tensor("order").value()).rows, std::int64_t{1} << 24);
  const InputProblem p = block_problem(sort, test::forward(1, most + 1));
  EXPECT_EQ(p.line, 4);
  EXPECT_EQ(p.value, "sort_places");
  EXPECT_THAT(p.message, HasSubstr("2097153 rows of 8 numbers"));
  EXPECT_THAT(p.message, HasSubstr("up to 16777216"));
  EXPECT_THAT(p.allowed, HasSubstr("at most 2097152 rows"));
}

// Names are compared with each other for a suggestion, in time that grows with both.
TEST(BlockLanguage, NamesOfMegabytesAreRefusedAtOnce) {
  const std::string name(4'000'000, 'a');
  const InputProblem p =
      block_problem(block("  " + name + " = gelu(x)\n  y = gelu(" + name + "b)\n"));
  EXPECT_EQ(p.line, 5);
  EXPECT_EQ(p.column, 12);
  EXPECT_THAT(p.message, HasSubstr("has no meaning here"));
  EXPECT_LT(format_problem(p).size(), 2'000U);
}

TEST(BlockLanguage, MillionsOfWordsAreRefusedAtTheOneThatIsTooMany) {
  std::string words = "fuseline.block/1\n";
  for (int i = 0; i < 2'000'000; ++i) words += "a ";
  const InputProblem p = block_problem(words + "\n");
  EXPECT_EQ(p.line, 2);
  EXPECT_GT(p.column, 1'900'000);
  EXPECT_THAT(p.message, HasSubstr("too many words"));
}

// Whatever a file holds, it is a block or one InputError.
TEST(BlockLanguage, SurvivesAnyChangeOfAShippedFile) {
  static constexpr const char* pieces[] = {
      "(", ")", "[",   "]", ",",  "=",    ":",   "+",     "-",  "/",        "\n  ", "\n",
      " ", "0", "1e9", "x", "if", "else", "not", "block", "\"", "\xff\xfe", "->",   "9999999999"};
  std::mt19937 random(20);
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::vector<std::string> names = block_names();
  int accepted = 0;
  for (int i = 0; i < 3'000; ++i) {
    std::string text = file_text(names[below(names.size())]);
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size() + 1);
      switch (below(4)) {
        case 0:
          text.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 1:
          text.erase(at, below(12));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
        default:
          text.replace(at, below(3), pieces[below(std::size(pieces))]);
          break;
      }
    }
    ModelConfig c = test::random_model(random);
    c.max_positions = 16;
    const Workload work = test::random_work(random);
    try {
      const auto parsed = BlockText::parse(text, "t.block");
      EXPECT_EQ(block_file_text(parse_block_file(block_file_text(parsed->file()), "again")),
                block_file_text(parsed->file()));
      const Graph g = build_graph(*parsed, block_values(c, c.blocks.front()), work);
      EXPECT_FALSE(topological_order(g).empty());
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
    }
  }
  EXPECT_GT(accepted, 50) << "hardly anything was accepted: the changes are too large to test much";
}

}  // namespace
}  // namespace fuseline
