// Graphs as torch.export writes them become the blocks that we ship. make_graphs.py wrote graphs/.
#include "model/import/import_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "base/data_files.h"
#include "base/error.h"
#include "model/blocks/block_text.h"
#include "model/policy.h"
#include "tests/model/import/imported_families.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using test::exported_path;
using test::imported;
using testing::HasSubstr;
using testing::Not;

// Without the remarks, which name the file.
std::string block_of(const std::string& text) { return text.substr(text.find("\nblock ")); }

class ImportedFamily : public testing::TestWithParam<test::Family> {};

// Under one policy, for the sanitizers, to which the reader and the builder matter; under all of
// them in imported_families_test.cpp.
TEST_P(ImportedFamily, HasThePlansOfTheShippedBlock) {
  std::vector<PolicyInfo> one = policies();
  std::erase_if(one, [](const PolicyInfo& p) { return p.name != "coda"; });
  ASSERT_EQ(one.size(), 1U);
  test::expect_plans_of_the_shipped_block(GetParam(), one);
}

INSTANTIATE_TEST_SUITE_P(All, ImportedFamily, testing::ValuesIn(test::imported_families()),
                         test::family_name);

TEST(ImportGraph, WritesTheTextAsAPersonWould) {
  EXPECT_EQ(imported("llama").text, R"(fuseline.block/1

# Imported from llama.json (LlamaDecoderLayer, PyTorch 2.7.1).
# One product has the weights self_attn.q_proj.weight, self_attn.k_proj.weight,
# self_attn.v_proj.weight as w_qkv, as frameworks that serve models run them (--separate keeps them
# apart).
# One product has the weights mlp.gate_proj.weight, mlp.up_proj.weight as w_gate_up, as frameworks
# that serve models run them (--separate keeps them apart).

block llama(D = 32, F = 48, H = 4, Hkv = 2, d = D / H, sliding_window = 0, norm_eps = 1e-5)
  input x[M, D]
  norm1: xn1 = rms_norm(x, w_norm1[D], eps = norm_eps)
  qkv: qkv = linear(xn1, w_qkv[(H + 2 Hkv) d, D])
  q, k, v = split(qkv, H d, Hkv d, Hkv d)
  table cos[T, d], sin[T, d]
  rope/rope_q: q_rot = rope(q, cos, sin, d = d)
  rope/rope_k: k_rot = rope(k, cos, sin, d = d)
  kvcache: keys, values = cache(k = k_rot, v = v, heads = Hkv, window = sliding_window)
  attention: attn = attention(q_rot, keys, values, heads = H, kv_heads = Hkv, mask = causal,
                              window = sliding_window)
  oproj: o = linear(attn, w_o[D, H d])
  residual1: h = x + o
  norm2: xn2 = rms_norm(h, w_norm2[D], eps = norm_eps)
  gateup/gate_up: gu = linear(xn2, w_gate_up[2 F, D])
  act/swiglu: act = swiglu(gu)
  down: dn = linear(act, w_down[D, F])
  residual2: y = h + dn
  output y -> x
)");
}

TEST(ImportGraph, BothFormsOfFileSayTheSame) {
  for (const std::string name : {"llama", "gpt2"}) {
    const std::string own = block_of(imported(name, {.name = "b"}).text);
    EXPECT_EQ(own, block_of(imported(name + ".program", {.name = "b"}).text));
    EXPECT_THAT(own, HasSubstr("block b("));
  }
}

TEST(ImportGraph, LeavesProductsApartWhereAsked) {
  const ImportedBlock apart = imported("llama", {.separate = true});
  EXPECT_TRUE(apart.remarks.empty());
  EXPECT_THAT(apart.text, HasSubstr("  qkv/q: q = linear(xn1, w_q[H d, D])\n"
                                    "  qkv/k: k = linear(xn1, w_k[Hkv d, D])\n"
                                    "  qkv/v: v = linear(xn1, w_v[Hkv d, D])\n"));
  EXPECT_THAT(apart.text, HasSubstr("  gateup/gate: g = linear(xn2, w_gate[F, D])\n"
                                    "  act: opened = silu(g)\n"
                                    "  gateup/up: u = linear(xn2, w_up[F, D])\n"
                                    "  act/gated: act = opened * u\n"));
  // The same weights, in more products: 3 and 2 in the place of 1 and 1.
  const auto graph = [](const ImportedBlock& block) {
    return build_graph(*BlockText::parse(block.text, "t"), {}, test::forward(1, 5));
  };
  const Graph one = graph(imported("llama"));
  const Graph several = graph(apart);
  Bytes bytes_one, bytes_several;
  for (const Tensor& t : one.tensors())
    if (t.role == Role::weight) bytes_one += t.bytes();
  for (const Tensor& t : several.tensors())
    if (t.role == Role::weight) bytes_several += t.bytes();
  EXPECT_EQ(bytes_one, bytes_several);
  EXPECT_EQ(make_plan("eager", several).kernels.size(), make_plan("eager", one).kernels.size() + 3);
}

TEST(ImportGraph, SaysWhatAMaskIsTakenFor) {
  const ImportedBlock causal = imported("llama_eager_masked");
  EXPECT_THAT(causal.remarks,
              testing::Contains(HasSubstr("mask attention_mask are not saved with the graph: it is "
                                          "taken as causal (--mask)")));
  EXPECT_THAT(causal.text, HasSubstr("mask = causal"));
  const ImportedBlock open = imported("llama_eager_masked", {.mask = ImportedMask::none});
  EXPECT_THAT(open.remarks,
              testing::Contains(HasSubstr("every token is taken to see every token")));
  EXPECT_THAT(open.text, Not(HasSubstr("mask = causal")));
  EXPECT_THAT(open.text, Not(HasSubstr("cache(")));
  // A call that says it is causal needs no remark.
  for (const std::string& remark : imported("llama").remarks)
    EXPECT_THAT(remark, Not(HasSubstr("mask")));
}

TEST(ImportGraph, NamesEveryUnknownOperatorWithItsLine) {
  try {
    imported("strange");
    FAIL() << "nothing was refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.problem().message,
                HasSubstr("aten.cumprod.default (strange.py, line 12), aten.mode.default "
                          "(strange.py, line 14)"));
    EXPECT_THAT(error.problem().message, Not(HasSubstr("aten.add")));  // it only reads them
    EXPECT_THAT(error.problem().allowed, HasSubstr("aten.scaled_dot_product_attention"));
    EXPECT_EQ(error.problem().file, exported_path("strange"));
  }
}

// Replaces the first `from` of the text; each round is another mistake.
std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    import_graph(text, "g.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().file, "g.json");
    return error.what();
  }
  return "nothing was refused";
}

TEST(ImportGraph, ImportsLayersOfWhichWeShipNoBlock) {
  const std::string text = imported("pytorch/olmo2").text;  // norms of all of Q and of all of K
  EXPECT_THAT(text, HasSubstr("xn1 = rms_norm(q_proj, w_norm1[H d], eps = norm_eps)"));
  const Graph graph = build_graph(*BlockText::parse(text, "olmo2"), {}, test::forward(1, 5));
  for (const PolicyInfo& policy : policies())
    EXPECT_FALSE(make_plan(policy.name, graph).kernels.empty()) << policy.name;
}

TEST(ImportGraph, LeavesOutProbabilitiesThatALayerGivesBesideItsResult) {
  EXPECT_THAT(imported("pytorch/gptj_eager").remarks,
              testing::Contains(HasSubstr("output dropout is left out: it is a tensor within")));
}

TEST(ImportGraph, RefusesCallsThatItKnowsInAnotherForm) {
  const std::string llama = read_input_file(exported_path("llama"));
  // A norm over another dimension, a rotation of the wrong half, attention with dropout.
  EXPECT_THAT(refusal(changed(llama, R"({"node": "pow"}, [-1])", R"({"node": "pow"}, [1])")),
              HasSubstr("in a form that is not"));
  EXPECT_THAT(refusal(changed(llama, R"([{"node": "neg"}, {"node": "slice"}])",
                              R"([{"node": "neg"}, {"node": "slice_1"}])")),
              HasSubstr("in a form that is not"));
  EXPECT_THAT(refusal(changed(llama, "null, 0.0, true]", "null, 0.1, true]")),
              HasSubstr("aten.scaled_dot_product_attention.default"));
  const std::string gpt = read_input_file(exported_path("gpt2"));
  EXPECT_THAT(refusal(changed(gpt, "0.1, false]", "0.1, true]")), HasSubstr("aten.dropout"));
  EXPECT_THAT(refusal(changed(gpt, "0.044715", "0.144715")), HasSubstr("in a form that is not"));
}

TEST(ImportGraph, NamesWhatItDoesNotKnowOfAMixture) {
  const std::string mixtral = read_input_file(exported_path("pytorch/mixtral"));
  const std::string other = refusal(changed(mixtral, "aten.topk.default", "aten.kthvalue.default"));
  EXPECT_THAT(other, HasSubstr("aten.kthvalue.default"));
  EXPECT_THAT(other, HasSubstr("(transformers/models/mixtral/modeling_mixtral.py, line 108)"));
  // Experts that are counted up to another number, rows of another order, the smallest scores.
  for (const auto& [from, to] :
       {std::pair(R"({"node": "getitem_2"}, 8])", R"({"node": "getitem_2"}, 7])"),
        {R"({"node": "getitem_3"}, 2])", R"({"node": "getitem_3"}, 3])"},
        {R"({"node": "softmax"}, 2])", R"({"node": "softmax"}, 2, -1, false])"}})
    EXPECT_THAT(refusal(changed(mixtral, from, to)), HasSubstr(", line ")) << to;
}

TEST(ImportGraph, GatesThatAreNotDividedAreSharesOfAllExperts) {
  std::string mixtral = read_input_file(exported_path("pytorch/mixtral"));
  EXPECT_THAT(import_graph(mixtral, "m.json").text,
              HasSubstr("choose_experts(logits, count = k, weights = softmax)"));
  mixtral = changed(mixtral, R"("args": [{"node": "div_"}, [-1]])",
                    R"("args": [{"node": "getitem"}, [-1]])");
  EXPECT_THAT(import_graph(mixtral, "m.json").text,
              HasSubstr("choose_experts(logits, count = k, weights = softmax_of_all)"));
}

// Q, K and V of every head lie behind each other in one product; other parts of heads are refused.
TEST(ImportGraph, PutsTheColumnsOfHeadsInOrderAndSaysSo) {
  const std::string neox = read_input_file(exported_path("pytorch/gpt_neox"));
  const ImportedBlock block = import_graph(neox, "neox.json");
  EXPECT_THAT(
      block.remarks,
      testing::Contains(HasSubstr("attention.query_key_value.weight (first rows of each head)")));
  EXPECT_THAT(refusal(changed(neox, R"({"node": "transpose"}, 3, -1])",
                              R"({"node": "transpose"}, 4, -1])")),
              HasSubstr("(transformers/models/gpt_neox/modeling_gpt_neox.py, line 2"));
}

TEST(ImportGraph, ACallInPlaceIsRefusedWhereItsOperandIsReadAgain) {
  // y = x wᵀ; y.add_(x); the sum is read, and y once more.
  const std::string text = R"({"format": "fuseline.graph/1",
 "inputs": [{"name": "x", "kind": "input", "shape": [1, 3, 4], "dtype": "float32"},
            {"name": "w", "kind": "parameter", "shape": [4, 4], "dtype": "float32"}],
 "nodes": [
  {"name": "y", "target": "aten.linear.default", "args": [{"node": "x"}, {"node": "w"}], "shape": [1, 3, 4]},
  {"name": "s", "target": "aten.add_.Tensor", "args": [{"node": "y"}, {"node": "x"}], "shape": [1, 3, 4]},
  {"name": "z", "target": "aten.add.Tensor", "args": [{"node": "s"}, {"node": "x"}], "shape": [1, 3, 4]}],
 "outputs": ["z"]})";
  EXPECT_THAT(import_graph(text, "g.json").text, HasSubstr("residual2: y = h + x"));
  EXPECT_THAT(
      refusal(changed(text, R"({"node": "s"}, {"node": "x"})", R"({"node": "s"}, {"node": "y"})")),
      HasSubstr("aten.add_.Tensor"));
}

// 3,000 sums of which each reads the one before: their steps are as many, not their pairs.
TEST(ImportGraph, ALongChainOfSumsHasAStepForEach) {
  std::string nodes, last = "x";
  constexpr int kSums = 3000;
  for (int i = 0; i < kSums; ++i) {
    const std::string name = fmt::format("s{}", i);
    nodes += fmt::format(
        R"({}{{"name": "{}", "target": "aten.add.Tensor", "args": [{{"node": "{}"}}, {{"node": "x"}}],
 "shape": [1, 3, 4]}})",
        i == 0 ? "" : ",", name, last);
    last = name;
  }
  const ImportedBlock block = import_graph(
      fmt::format(R"({{"format": "fuseline.graph/1", "inputs": [{{"name": "x", "kind": "input",
 "shape": [1, 3, 4], "dtype": "float32"}}], "nodes": [{}], "outputs": ["{}"]}})",
                  nodes, last),
      "chain.json");
  const Graph graph = build_graph(*BlockText::parse(block.text, "chain"), {}, test::forward(1, 3));
  EXPECT_EQ(graph.ops().size(), kSums);
}

TEST(ImportGraph, RefusesFilesThatAreNoGraph) {
  const std::map<std::string, std::string> wrong = {
      {"[]", "is no saved graph"},
      {"{}", "is no saved graph"},
      {"{", "JSON syntax error"},
      {R"({"format": "fuseline.graph/2"})", "there is no such form"},
      {R"({"format": 1})", "is no text"},
      {R"({"format": "fuseline.graph/1"})", "inputs: the field is missing"},
      {R"({"graph_module": 1})", "is no object"},
      {R"({"graph_module": {}})", "graph_module.graph: the field is missing"},
      {R"({"graph_module": {"graph": {}}, "schema_version": {"major": 7, "minor": 0}})",
       "is another version of the form"}};
  for (const auto& [text, message] : wrong) EXPECT_THAT(refusal(text), HasSubstr(message)) << text;
  const std::string llama = read_input_file(exported_path("llama"));
  const std::map<std::pair<std::string, std::string>, std::string> changes = {
      {{R"("kind": "input")", R"("kind": "inputs")"}, "there is no such kind"},
      {{R"("shape": [1, 5, 32])", R"("shape": [1, -5, 32])"}, "is out of range"},
      {{R"("shape": [1, 5, 32])", R"("shape": [1, 0, 32])"}, "holds a size out of range"},
      {{R"("shape": [1, 5, 32])", R"("shape": [9000000, 9000000, 9000000])"},
       "has too many elements"},
      {{R"("shape": [1, 5, 32])", R"("shape": "big")"}, "is no list"},
      {{R"({"node": "pow"})", R"({"node": "pwo"})"}, "did you mean 'pow'"},
      {{R"({"node": "pow"})", R"({"node": "mean"})"}, "nothing above has this name"},  // a circle
      {{R"("name": "mean")", R"("name": "pow")"}, "the name is given twice"},
      {{R"("name": "mean")", R"("name": "")"}, "is an empty name"},
      {{R"("target": "aten.pow.Tensor_Scalar")", R"("target": 7)"}, "nodes[2].target"},
      {{R"("outputs": ["add_5"])", R"("outputs": [])"}, "no output that is a tensor"},
      {{R"("outputs": ["add_5"])", R"("outputs": ["hidden_states"])"}, "no output of the graph"}};
  for (const auto& [change, message] : changes)
    EXPECT_THAT(refusal(changed(llama, change.first, change.second)), HasSubstr(message))
        << change.second;
  for (std::size_t length : {std::size_t{1}, llama.size() / 3, llama.size() - 3})
    EXPECT_THAT(refusal(llama.substr(0, length)), HasSubstr("JSON syntax error"));
}

TEST(ImportGraph, ACheckOfATensorIsNoReaderOfIt) {
  // (x + y) + y where the inner sum is checked too: one chain of branches, as without the check.
  const std::string text = R"({"format": "fuseline.graph/1",
 "inputs": [{"name": "x", "kind": "input", "shape": [1, 3, 4], "dtype": "float32"},
            {"name": "w", "kind": "parameter", "shape": [4, 4], "dtype": "float32"}],
 "nodes": [
  {"name": "y", "target": "aten.linear.default", "args": [{"node": "x"}, {"node": "w"}], "shape": [1, 3, 4]},
  {"name": "s", "target": "aten.add.Tensor", "args": [{"node": "y"}, {"node": "y"}], "shape": [1, 3, 4]},
  {"name": "c", "target": "aten._assert_tensor_metadata.default", "args": [{"node": "s"}]},
  {"name": "z", "target": "aten.add.Tensor", "args": [{"node": "s"}, {"node": "x"}], "shape": [1, 3, 4]}],
 "outputs": ["z"]})";
  // The stream is summed first, which only happens where the inner sum has one reader.
  EXPECT_THAT(import_graph(text, "g.json").text, HasSubstr("h = x + "));
  EXPECT_THAT(
      import_graph(changed(text, "aten._assert_tensor_metadata", "aten.sym_size"), "g.json").text,
      Not(HasSubstr("h = x + ")));
}

TEST(ImportGraph, TakesSizesThatWereLeftOpenFromTheExample) {
  std::string program = read_input_file(exported_path("llama.program"));
  const std::string open = R"({"as_expr": {"expr_str": "s0", "hint": {"as_int": 5}}})";
  for (std::size_t at = 0; (at = program.find(R"({"as_int": 5})", at)) != std::string::npos;
       at += open.size())
    program.replace(at, std::string(R"({"as_int": 5})").size(), open);
  EXPECT_EQ(block_of(import_graph(program, "b.json").text),
            block_of(import_graph(read_input_file(exported_path("llama.program")), "b.json").text));
  EXPECT_THAT(refusal(changed(program, R"("hint": {"as_int": 5})", R"("hint": null)")),
              HasSubstr("is a size that the file does not say"));
}

}  // namespace
}  // namespace fuseline
