#include "model/programs/attributes_syntax.h"

#include "base/error.h"
#include "model/programs/syntax_arguments.h"

namespace fuseline {

namespace {

void fields(AttentionShape& a, Syntax& line) { attention_arguments(line, a); }
void fields(HeadCount& a, Syntax& line) { line.number("heads", a.heads, 1); }
void fields(ScanShape& a, Syntax& line) { scan_arguments(line, a); }
void fields(ConvolutionShape& a, Syntax& line) { convolution_arguments(line, a); }
void fields(Devices& a, Syntax& line) { line.number("count", a.count, 0); }
void fields(GemmLayout& a, Syntax& line) {
  line.flag("a_is_km", a.a_is_km);
  line.flag("b_is_kn", a.b_is_kn);
  weight_argument(line, "weight", a.weight);
  activation_argument(line, "activation", a.activation);
  line.flag("chained", a.chained);
}
void fields(RowCodes& a, Syntax& line) { activation_argument(line, "activation", a.activation); }
void fields(Pairs& a, Syntax& line) {
  line.number("head_width", a.head_width, 0);
  line.flag("interleaved", a.interleaved);
  line.number("rotated", a.rotated, 0);
}
void fields(Halves& a, Syntax& line) {
  line.number("head_width", a.head_width, 0);
  line.flag("swapped", a.swapped);
}
void fields(HeadPart& a, Syntax& line) {
  part_arguments(line, a.part);
  line.number("joined", a.joined, 0);
  line.flag("behind", a.behind);
}
void fields(NormEps& a, Syntax& line) { line.real("eps", a.eps, 0); }
void fields(HeadNorm& a, Syntax& line) {
  line.number("head_width", a.head_width, 0);
  line.real("eps", a.eps, 0);
}
void fields(Normalise& a, Syntax& line) {
  line.real("eps", a.eps, 0);
  bool off = !a.centred;
  line.flag("not_centred", off);
  a.centred = !off;
}
void fields(RowStatistics& a, Syntax& line) {
  line.number("norm_width", a.norm_width, 0);
  line.real("eps", a.eps, 0);
  line.flag("in_epilogue", a.in_epilogue);
}
void fields(PartialTile& a, Syntax& line) {
  line.number("rows", a.rows, 128);
  line.number("columns", a.cols, 128);
}
void fields(Scalar& a, Syntax& line) { line.real("value", a.value, 0); }
void fields(Sequences& a, Syntax& line) {
  line.number("batch", a.batch, 0);
  line.number("tokens", a.tokens, 0);
}
void fields(ScaledHeads& a, Syntax& line) {
  line.number("heads", a.heads, 1);
  cache_argument(line, "cache", a.cache);
}
void fields(Positions& a, Syntax& line) { line.number("tokens", a.tokens, 0); }
void fields(RaggedRows& a, Syntax& line) { rows_arguments(line, a); }
void fields(RaggedSums& a, Syntax& line) { line.numbers("groups", a.groups); }
void fields(ExpertChoice& a, Syntax& line) { choice_arguments(line, a); }
void fields(Places& a, Syntax& line) { line.number("each", a.each, 1); }
void fields(JointSequences& a, Syntax& line) { line.number("count", a.count, 1); }
void fields(Conversion& a, Syntax& line) { line.flag("of_attention", a.of_attention); }
void fields(TwoLayouts& a, Syntax& line) { line.flag("differ", a.differ); }

struct Kind {
  const char* word;
  bool (*holds)(const Attributes&);
  Attributes (*walk)(const Attributes&, Syntax&);
};

template <class T>
constexpr Kind kind(const char* word) {
  return {word, [](const Attributes& a) { return a.get<T>() != nullptr; },
          [](const Attributes& a, Syntax& line) {
            T copy = a.get<T>() != nullptr ? *a.get<T>() : T{};
            fields(copy, line);
            return Attributes(std::move(copy));
          }};
}

constexpr Kind kKinds[] = {kind<AttentionShape>("attention"),
                           kind<HeadCount>("head_count"),
                           kind<ScanShape>("scan"),
                           kind<ConvolutionShape>("convolution"),
                           kind<Devices>("devices"),
                           kind<GemmLayout>("layout"),
                           kind<RowCodes>("row_codes"),
                           kind<Pairs>("pairs"),
                           kind<Halves>("halves"),
                           kind<HeadPart>("head_part"),
                           kind<NormEps>("norm"),
                           kind<HeadNorm>("head_norm"),
                           kind<Normalise>("normalise"),
                           kind<RowStatistics>("statistics"),
                           kind<PartialTile>("partial_tile"),
                           kind<Scalar>("scalar"),
                           kind<Sequences>("sequences"),
                           kind<ScaledHeads>("scaled_heads"),
                           kind<Positions>("positions"),
                           kind<RaggedRows>("ragged_rows"),
                           kind<RaggedSums>("ragged_sums"),
                           kind<ExpertChoice>("expert_choice"),
                           kind<Places>("places"),
                           kind<JointSequences>("joint_sequences"),
                           kind<Conversion>("conversion"),
                           kind<TwoLayouts>("two_layouts")};

}  // namespace

std::string attributes_word(const Op& op) {
  for (const Kind& k : kKinds)
    if (k.holds(op.attributes)) return k.word;
  return "";
}

std::vector<std::string> attribute_words() {
  std::vector<std::string> words;
  for (const Kind& k : kKinds) words.emplace_back(k.word);
  return words;
}

Attributes attributes_syntax(const std::string& word, const Attributes& now, Syntax& line) {
  for (const Kind& k : kKinds)
    if (word == k.word) return k.walk(now, line);
  FUSELINE_ASSERT(false, "an unknown word of attributes");
}

}  // namespace fuseline
