// Finds pages by key: a hash table with open addressing over pages that lie one behind the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fuseline {

// `Page` has a member `key`. Pages have numbers from 1 on; a freed one is used again. A new page
// may move the others.
template <class Page>
class PageTable {
 public:
  Page& operator[](std::uint32_t number) { return pages_[number]; }
  const Page& operator[](std::uint32_t number) const { return pages_[number]; }
  template <class Visit>
  void for_each(Visit visit) {
    for (std::uint32_t number = 1; number < end(); ++number) visit(pages_[number]);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t number = 1; number < end(); ++number) visit(pages_[number]);
  }
  // Numbers are below this.
  [[nodiscard]] std::uint32_t end() const { return static_cast<std::uint32_t>(pages_.size()); }

  // The number of the page of that key, made if it is not there: a freed one is as it was left.
  std::uint32_t page_of(std::uint64_t key) {
    std::size_t i = bucket(key);
    for (; table_[i].page != 0; i = (i + 1) & (table_.size() - 1)) {
      if (table_[i].key == key) return table_[i].page;
    }
    if (free_pages_.empty()) {
      free_pages_.push_back(static_cast<std::uint32_t>(pages_.size()));
      pages_.emplace_back();
      if (pages_.size() * 2 > table_.size()) {
        grow_table();
        i = free_bucket(key);
      }
    }
    const std::uint32_t number = free_pages_.back();
    free_pages_.pop_back();
    pages_[number].key = key;
    table_[i] = {key, number};
    return number;
  }

  // Takes all pages out of the table; they are as they were left.
  void free_all() {
    std::fill(table_.begin(), table_.end(), Bucket{});
    free_pages_.clear();
    for (std::uint32_t number = end(); number-- > 1;) free_pages_.push_back(number);
  }

  // Takes a page out of the table. The hole is closed by moving back every later entry of the probe
  // run whose home bucket lies at or before the hole.
  void free(std::uint32_t number) {
    const std::size_t mask = table_.size() - 1;
    std::size_t hole = bucket(pages_[number].key);
    while (table_[hole].page != number) hole = (hole + 1) & mask;
    for (std::size_t next = (hole + 1) & mask; table_[next].page != 0; next = (next + 1) & mask) {
      const std::size_t home = bucket(table_[next].key);
      if (((next - home) & mask) >= ((next - hole) & mask)) {
        table_[hole] = table_[next];
        hole = next;
      }
    }
    table_[hole] = {};
    free_pages_.push_back(number);
  }

 private:
  static constexpr std::uint32_t kFirstBits = 10;
  struct Bucket {
    std::uint64_t key = 0;
    std::uint32_t page = 0;  // 0: the bucket is empty
  };

  // Multiplicative hash: the top bits of key × 2^64 / golden ratio.
  [[nodiscard]] std::size_t bucket(std::uint64_t key) const {
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> shift_);
  }
  [[nodiscard]] std::size_t free_bucket(std::uint64_t key) const {
    std::size_t i = bucket(key);
    while (table_[i].page != 0) i = (i + 1) & (table_.size() - 1);
    return i;
  }
  void grow_table() {
    const std::vector<Bucket> before =
        std::exchange(table_, std::vector<Bucket>(table_.size() * 2));
    --shift_;
    for (const Bucket& b : before) {
      if (b.page != 0) table_[free_bucket(b.key)] = b;
    }
  }

  std::vector<Page> pages_ = std::vector<Page>(1);
  std::vector<std::uint32_t> free_pages_;
  std::vector<Bucket> table_ = std::vector<Bucket>(std::size_t{1} << kFirstBits);  // a power of two
  std::uint32_t shift_ = 64 - kFirstBits;
};

}  // namespace fuseline
