#include "tests/error/program_mistakes.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "tests/error/mistake_maker.h"

namespace fuseline::test {

using Rules = std::set<std::string>;

void MistakeMaker::add(const std::string& what, const Text& text, Rules rules,
                       std::set<std::size_t> lines, bool typing) {
  const auto made =
      std::count_if(all_.begin(), all_.end(), [&](const Mistake& m) { return m.what == what; });
  if (made >= each_) return;
  Mistake m{.base = base_,
            .what = what,
            .typing = typing,
            .text = text.joined(),
            .rules = std::move(rules)};
  for (const std::size_t line : lines) m.lines.insert(static_cast<int>(line) + 1);
  all_.push_back(std::move(m));
}

void MistakeMaker::of_partials() {
  for (const Place& p : right_.programs)
    for (std::size_t i = p.begin(); i < p.end; ++i) {
      if (!right_.stores_partials(i) || right_.role(right_.tensor(i)) != "activation") continue;
      const std::string t = right_.tensor(i), operand = right_.operand(i);
      if (const Place* reader = reader_of(t)) {
        Text text = right_;
        std::size_t line = i;
        text.erase(reader->head, reader->end);
        if (reader->head < i) line -= reader->end - reader->head;
        add("the finisher is left out", text, {"no-finisher"}, {line});

        text = right_;
        const std::string space = text.code(reader->mainloop);
        text.lines.emplace_back(
            "output extra_sums[" +
            operand.substr(operand.find('[') + 1, operand.find(',') - operand.find('[') - 1) +
            ",1], fp32");
        // Letters of a plan's tensors have no sizes of their own.
        if (space.find("of [") != std::string::npos && base_.find("plan") != std::string::npos) {
          text.lines.back() =
              "output extra_sums[" +
              space.substr(space.find('[') + 1, space.find(',') - space.find('[') - 1) +
              ",1], fp32";
        }
        const std::string declared = text.lines.back();
        const std::string whole = declared.substr(7, declared.find(']') - 6);
        for (const std::string& added :
             {std::string("program second_finisher"), "  " + space, "  p = load " + operand,
              std::string("  r = row_sum(p)"), "  store_rows " + whole + " = r"})
          text.lines.push_back(added);
        add("two programs finish the same partials", text, {"several-finishers"}, {i});
      }
      Text text = right_;
      text.insert(p.end, text.indent(i), "zz = load " + operand);
      add("partials are read where they are made", text, {"unfinished-partial"}, {p.end});
    }
}

void MistakeMaker::of_memory() {
  for (const Place& p : right_.programs) {
    std::vector<std::size_t> stores;
    for (std::size_t i = p.begin(); i < p.end; ++i)
      if (right_.stores(i)) stores.push_back(i);
    for (const std::size_t i : stores) {
      const std::string t = right_.tensor(i);
      const std::string role = right_.role(t);
      if (role.empty()) continue;
      Text text = right_;
      text.insert(i + 1, text.indent(i), text.code(i));
      add("an element is stored twice", text, {"stored-twice"}, {i, i + 1});

      for (const char* given : {"input", "weight", "table"}) {
        text = right_;
        const std::size_t at = *text.declaration(t);
        text.insert(at + 1, 0, text.declared_as(t, given, "given"));
        text.set(i + 1, replaced(text.code(i + 1), t + "[", "given["));
        add(std::string("the caller's ") + given + " is overwritten", text, {"alias"}, {i + 1});
      }

      text = right_;
      const std::size_t declared = *text.declaration(t);
      text.lines[declared] += ", on_chip";
      add("a tensor that stays on chip is stored", text, {"on-chip"}, {i, declared});

      if (role == "output" && right_.operand(i).find(':') == std::string::npos &&
          stores.size() > 1) {
        text = right_;
        text.erase(i, i + 1);
        add("an output is not stored", text, {"output-not-stored"}, {declared, i});
      }
      for (const Place& later : right_.programs)
        for (std::size_t j = later.begin(); later.head > p.head && j < later.end; ++j) {
          if (right_.stores(j) || right_.code(j).find(" " + t + "[") == std::string::npos ||
              role != "activation" || stores.size() < 2 ||
              right_.operand(i).find(':') != std::string::npos)
            continue;
          text = right_;
          text.erase(i, i + 1);
          add("what is read was not stored", text, {"read-before-stored"}, {j - 1});
        }
    }
    if (!stores.empty()) {
      Text text = right_;
      for (auto i = stores.rbegin(); i != stores.rend(); ++i) text.erase(*i, *i + 1);
      if (p.end - p.begin() > stores.size())
        add("a program stores nothing", text, {"stores-nothing"}, {p.head});
    }
    in_place(p, stores);
  }
  out_of_order();
}

void MistakeMaker::in_place(const Place& p, const std::vector<std::size_t>& stores) {
  if (!right_.is_product(p)) {
    // Or a vector into the tile that it is made of.
    for (std::size_t i = p.begin(); i < p.end; ++i) {
      if (right_.code(i).find("= load ") == std::string::npos) continue;
      const std::string t = right_.tensor(i);
      const std::string rows = right_.operand(i).substr(0, right_.operand(i).find(','));
      for (const std::size_t s : stores) {
        if (!right_.code(s).starts_with("store_rows ") || right_.role(t) != "activation" || s < i)
          continue;
        Text text = right_;
        text.set(s, "store_rows " + rows +
                        ", 0:1] = " + text.code(s).substr(text.code(s).rfind(' ') + 1));
        add("a column of the rows that are read is overwritten", text, {"in-place"}, {s});
      }
    }
    return;
  }
  const std::string a = right_.operand(p.mainloop);
  const std::string t = right_.tensor(p.mainloop);
  for (const std::size_t s : stores) {
    const std::string stored = right_.operand(s);
    if (right_.role(t) != "activation" && right_.role(t) != "input") continue;
    if (stored.substr(stored.find('[')) != a.substr(a.find('[')) || right_.stores_partials(s))
      continue;
    Text text = right_;
    const std::size_t declared = *text.declaration(t);
    // An input that a program may store: what it held is read by its mainloop alone.
    if (right_.role(t) == "input")
      text.set(declared, replaced(text.code(declared), "input", "cache"));
    text.set(s, replaced(text.code(s), right_.tensor(s) + "[", t + "["));
    add("the mainloop's operand is overwritten", text, {"in-place"}, {s});
  }
}

void MistakeMaker::out_of_order() {
  if (right_.programs.size() < 2 || base_.find("plan") != std::string::npos) return;
  for (std::size_t n = 1; n < right_.programs.size(); ++n) {
    const Place &a = right_.programs[n - 1], &b = right_.programs[n];
    Text text = right_;
    const std::vector<std::string> moved(text.lines.begin() + static_cast<std::ptrdiff_t>(b.head),
                                         text.lines.begin() + static_cast<std::ptrdiff_t>(b.end));
    text.erase(b.head, b.end);
    text.lines.insert(text.lines.begin() + static_cast<std::ptrdiff_t>(a.head), moved.begin(),
                      moved.end());
    std::set<std::size_t> reads;
    for (std::size_t i = a.head; i < a.head + moved.size(); ++i)
      if (text.code(i).find("load") != std::string::npos) reads.insert(i);
    add("a program stands above the one that it reads from", text, {"read-before-stored"}, reads);
  }
}

void MistakeMaker::of_values() {
  for (const Place& p : right_.programs) {
    const bool product = right_.is_product(p);
    const bool rows = right_.code(p.mainloop).starts_with("for each row");
    const std::string tile = right_.last_tile(p);
    const std::size_t spaces = right_.indent(p.mainloop);
    const auto inserted = [&](const std::string& what, const std::string& code, Rules rules) {
      Text text = right_;
      text.insert(p.end, spaces, code);
      add(what, text, std::move(rules), {p.end});
    };
    if (!tile.empty() && product) {
      inserted("a tile is reduced as if it had the whole row", "zz = row_sum(" + tile + ")",
               {"whole-row"});
      inserted("a tile's largest of the whole row is asked", "zz = row_max(" + tile + ")",
               {"whole-row"});
      inserted("a tile is reduced as if it had the whole column", "zz = column_sum(" + tile + ")",
               {"whole-column"});
      inserted("a partner of a pair is in another tile",
               "zz = swiglu(" + tile + " pairs, distance = 3)", {"pair-across-tiles"});
      inserted("columns that a value does not have", "zz = " + tile + "[:, 0:99999999]", {"shape"});
      inserted("groups of columns that do not fill a value",
               "zz = group_sum(" + tile + ", group = 7919)", {"shape"});
    }
    if (rows)
      for (std::size_t i = p.begin(); i < p.end; ++i)
        if (right_.code(i).find("= load ") != std::string::npos)
          inserted("rows are reduced as if they were columns",
                   "zz = column_sum(" + right_.result(i) + ")", {"whole-column"});
    for (std::size_t i = p.mainloop + 1; i < p.end; ++i) {
      const std::string code = right_.code(i);
      const std::string made = right_.result(i);
      const std::size_t pairs = code.find(" pairs");
      if (pairs != std::string::npos && product) {
        Text text = right_;
        text.set(p.mainloop, replaced(text.code(p.mainloop), ", pairs", ""));
        add("the weight's rows are not in pairs", text, {"pair-across-tiles"}, {p.mainloop, i});
        const std::string in = code.substr(code.find('(') + 1, pairs - code.find('(') - 1);
        if (made.empty()) continue;
        if (code.find("swiglu") != std::string::npos || code.find("geglu") != std::string::npos) {
          text = right_;
          text.insert(i + 1, spaces, "zz = " + in + " + " + made);
          add("a value of pairs meets one of single columns", text, {"two-layouts"}, {i + 1});
        }
      }
      if (made.empty()) continue;
      Text text = right_;
      if (i + 1 < p.end && mentions(right_.code(i + 1), made)) {
        std::swap(text.lines[i], text.lines[i + 1]);
        add("a value is used above the line that makes it", text, {"undefined-value"}, {i});
      }
      text = right_;
      text.insert(i + 1, spaces, text.code(i));
      add("a value is made twice", text, {"defined-twice"}, {i + 1});
      if (code.find("= load_rows ") != std::string::npos) {
        text = right_;
        text.set(i, replaced(code, "load_rows", "load"));
        // A stream has narrower tiles too: then a line that uses it is to blame.
        std::set<std::size_t> lines = {i};
        for (std::size_t j = i + 1; j < p.end; ++j) lines.insert(j);
        add("a vector is loaded as a tile", text, {"shape", "two-layouts"}, lines);
      }
      if (code.find("= load ") != std::string::npos) {
        text = right_;
        text.set(i, replaced(code, "= load ", "= load_rows "));
        add("a tile is loaded as a vector", text, {"shape"}, {i});
      }
    }
  }
}

void MistakeMaker::of_mainloops() {
  for (const Place& p : right_.programs) {
    const std::size_t spaces = right_.indent(p.mainloop);
    Text text = right_;
    text.erase(p.mainloop, p.mainloop + 1);
    if (!right_.is_product(p) || p.end > p.mainloop + 1)
      add("the mainloop is left out", text, {"mainloop", "undefined-value"}, {p.head, p.mainloop});
    if (!right_.is_product(p)) continue;
    text = right_;
    const std::string product = text.code(p.mainloop);
    text.insert(p.mainloop + 1, spaces, "second" + product.substr(product.find(' ')));
    add("a second product in one program", text, {"second-mainloop"}, {p.mainloop + 1});
    const std::size_t sign = product.find("ᵀ");
    const std::string b = product.substr(product.find(" · ") + 4);
    const std::string shape = b.substr(b.find('['), b.find(']') - b.find('['));
    const std::string rows = shape.substr(1, shape.find(',') - 1);
    if (sign != std::string::npos && rows != shape.substr(shape.find(',') + 1)) {
      text = right_;
      text.set(p.mainloop, replaced(product, "ᵀ", ""));
      add("an operand is not transposed", text, {"mainloop"}, {p.mainloop});
    }
    const std::string pairs = ", pairs";
    if (product.find("ᵀ") == std::string::npos) continue;
    text = right_;
    text.lines.push_back("program again");
    const bool has = product.find(pairs) != std::string::npos;
    text.lines.push_back("  " + (has ? replaced(product, pairs, "") : product + pairs));
    add("one weight in two orders", text, {"two-layouts"}, {text.lines.size() - 1, p.mainloop});
    text = right_;
    std::vector<std::string> loaded;
    for (std::size_t i = p.begin(); i < p.end; ++i)
      if (right_.code(i).find("= load ") != std::string::npos) loaded.push_back(right_.operand(i));
    if (loaded.empty()) continue;
    for (std::size_t i = p.begin(); i < p.end; ++i) {
      if (!right_.code(i).starts_with("store ") || right_.stores_partials(i) ||
          right_.operand(i).substr(right_.operand(i).find('[')) !=
              loaded[0].substr(loaded[0].find('[')))
        continue;
      text = right_;
      std::string sum = right_.code(i).substr(right_.code(i).rfind(' ') + 1);
      text.erase(i, i + 1);
      std::size_t at = p.end - 1;
      for (int n = 0; n < 24; ++n)
        text.insert(at++, spaces, "more" + std::to_string(n) + " = load " + loaded[0]);
      for (int n = 0; n < 24; ++n) {
        text.insert(at++, spaces,
                    "add" + std::to_string(n) + " = " + sum + " + more" + std::to_string(n));
        sum = "add" + std::to_string(n);
      }
      text.insert(at, spaces, right_.code(i).substr(0, right_.code(i).rfind(' ') + 1) + sum);
      add("an epilogue that no tile has room for", text, {"tile"}, {p.mainloop});
    }
  }
}

void MistakeMaker::of_the_file() {
  if (right_.programs.size() > 1 && base_.find("plan") == std::string::npos) {
    Text text = right_;
    const std::size_t first = text.programs[0].head, last = text.programs.back().head;
    text.set(last, text.code(first));
    add("two programs of one name", text, {"kernel-name"}, {first, last});
  }
  std::vector<std::size_t> kernels;
  for (std::size_t i = 0; i < right_.lines.size(); ++i) {
    const std::string code = right_.code(i);
    if (code.starts_with("kernel ")) kernels.push_back(i);
    if (code.starts_with("ops (") && code.find(',') != std::string::npos) {
      const std::string name = code.substr(5, code.find(',') - 5);
      Text text = right_;
      text.set(i, replaced(code, name + ", ", ""));
      std::set<std::size_t> blamed = {i};
      for (std::size_t j = 0; j < right_.lines.size(); ++j)
        if (right_.indent(j) == 0 && right_.code(j).starts_with("op " + name + " "))
          blamed.insert(j);
      add("an operator is in no kernel", text, {"operators"}, blamed);
    }
    for (const char* role : {"input ", "weight ", "table ", "activation ", "output "})
      if (right_.indent(i) == 0 && code.starts_with(role)) {
        Text text = right_;
        text.insert(i + 1, 0, code);
        add("a tensor is declared twice", text, {"defined-twice"}, {i, i + 1});
      }
  }
  if (kernels.size() > 1) {
    Text text = right_;
    const std::string a = text.code(kernels[0]), b = text.code(kernels[1]);
    text.set(kernels[1], a.substr(0, a.find(':')) + b.substr(b.find(':')));
    add("two kernels of one name", text, {"kernel-name"},
        {kernels[0], kernels[1], kernels[0] + 2, kernels[1] + 2});
  }
  Text text = right_;
  text.lines.insert(text.lines.begin() + 1, "hash 0123456789abcdef");
  add("the text was changed after it was written", text, {"hash"}, {1});
}

std::vector<Mistake> mistakes_in(const std::string& base, const std::string& text, int each) {
  return MistakeMaker(base, text, each).run();
}

}  // namespace fuseline::test
