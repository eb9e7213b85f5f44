// Which letters the columns of a draft are: D, F, H d.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/import/draft.h"

namespace fuseline {

// Letters of the block, each with its number. A letter that is taken by another number gets a
// number behind it: "F2".
class Letters {
 public:
  std::string word(const Letter& letter);
  [[nodiscard]] const std::vector<Letter>& all() const { return all_; }  // as they are printed
  [[nodiscard]] std::int64_t number(const std::string& word) const;      // 0: there is none

 private:
  std::vector<Letter> all_;
  std::map<std::pair<std::string, std::int64_t>, std::string> words_;
};

class Widths {
 public:
  Widths(const Draft& draft, Letters& letters);

  // "(H + 2 Hkv) d". Columns of which only parts are known are their sum.
  [[nodiscard]] std::string words(const MatrixColumns& range) const;
  // Columns that live steps read of a matrix, in order: two or more parts that are all of it, or
  // nothing. InputError where parts overlap.
  [[nodiscard]] std::vector<MatrixColumns> parts(std::size_t matrix) const;

 private:
  void collect_parts();
  void collect_spans();
  [[nodiscard]] const std::vector<MatrixColumns>& tiles(std::size_t matrix) const;
  void propagate();
  void name_the_rest();

  const Draft& draft_;
  Letters& letters_;
  std::map<MatrixColumns, Width> known_;
  std::map<std::size_t, std::vector<MatrixColumns>> parts_;
  std::map<std::size_t, std::vector<MatrixColumns>>
      spans_;  // that a step tells apart within one read
};

}  // namespace fuseline
