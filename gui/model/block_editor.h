// The text of the block that is predicted: what stands in the editor, where it is wrong, and what
// its words are.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/model/document.h"

namespace fuseline::gui {

// What is wrong with a text, and where: 1-based, columns count bytes; line 0 says that no place of
// the text is to blame.
struct BlockProblem {
  int line = 0;
  int column = 0;
  std::string text;  // "'linaer': there is no function of this name; did you mean 'linear'?"
  std::string file;  // where the line stands, when it is another file than the edited one
};

struct BlockEditorText {
  std::string name;      // "llama", "mine.block"
  std::string file;      // of the original
  std::string original;  // what the file says
  std::string text;      // what stands in the editor
  std::optional<BlockProblem> problem{};

  [[nodiscard]] bool edited() const { return text != original; }
};

// Of the document's setup; its draft where there is one. What cannot be read at all has an empty
// text and a problem.
BlockEditorText block_editor_text(const Document& document);

// A text in the place of the setup's, or what is wrong with it: syntax, names, shapes, and what the
// model and the workload do not fit. A text that is the file's own is no change.
struct CheckedText {
  Setup setup;
  std::optional<BlockProblem> problem{};
};
CheckedText with_text(const Setup& setup, const std::string& text);

// Another block for the setup's model: one of its kinds of layers, a shipped one, a file. A file
// whose sizes have defaults stands alone where the model does not give it its sizes. InputError:
// it fits neither.
Setup with_block_of(Setup setup, const std::string& block);

// Writes the text whole or not at all. InputError: it cannot be written, it does not end in .block,
// or it is one of the shipped blocks.
void save_block_text(const std::string& text, const std::string& path);

// What the words of a line are, from left to right, in bytes; words between them are plain.
enum class WordRole : std::uint8_t { comment, keyword, label, function, number };
struct WordSpan {
  std::size_t begin = 0;
  std::size_t length = 0;
  WordRole role = WordRole::comment;
  friend bool operator==(const WordSpan&, const WordSpan&) = default;
};
std::vector<WordSpan> words_of_line(std::string_view line);

}  // namespace fuseline::gui
