// Views of a matrix against the elements themselves: every view is walked through, and its elements
// are compared with those that the calls give on plain arrays.
#include "model/import/tensor_view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace fuseline {
namespace {

using ViewSizes = std::vector<std::int64_t>;

std::int64_t product(const ViewSizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// An array whose elements say where in the matrix they are.
struct Plain {
  ViewSizes sizes;
  ViewSizes elements;
};

// The elements that a view walks through, in its order: row · columns + column of each.
ViewSizes elements_of(const TensorView& view, std::int64_t columns) {
  ViewSizes out{view.first_row * columns + view.first_column};
  for (const Dimension& dim : view.dims) {
    for (const Walk& walk : dim) {
      ViewSizes next;
      for (const std::int64_t base : out)
        for (std::int64_t i = 0; i < walk.size; ++i)
          next.push_back(base + (walk.axis == MatrixAxis::row      ? i * walk.stride * columns
                                 : walk.axis == MatrixAxis::column ? i * walk.stride
                                                                   : 0));
      out = std::move(next);
    }
  }
  return out;
}

// Of every element of the result, from its indices the indices in `from`.
template <class Index>
Plain gathered(const Plain& from, const ViewSizes& sizes, Index index) {
  Plain out{sizes, {}};
  ViewSizes at(sizes.size(), 0);
  for (std::int64_t n = product(sizes); n > 0; --n) {
    const ViewSizes source = index(at);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < source.size(); ++i) offset = offset * from.sizes[i] + source[i];
    out.elements.push_back(from.elements[static_cast<std::size_t>(offset)]);
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < sizes[i]) break;
      at[i] = 0;
    }
  }
  return out;
}

TEST(TensorView, WalksAsTheCallsDoOverRandomShapes) {
  std::mt19937 random(5);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  int reshapes = 0, ranges = 0;
  for (int round = 0; round < 4000; ++round) {
    const ViewSizes first{1 + below(3), 1 + below(5), 12};
    const std::int64_t rows = first[0] * first[1];
    TensorView view = view_of_matrix(0, first);
    Plain plain{first, ViewSizes(static_cast<std::size_t>(product(first)))};
    std::iota(plain.elements.begin(), plain.elements.end(), 0);
    for (int step = 0; step < 5; ++step) {
      std::optional<TensorView> next;
      Plain expected;
      const auto rank = static_cast<std::int64_t>(plain.sizes.size());
      switch (below(4)) {
        case 0: {  // another shape: a dimension in two, or two in one
          ViewSizes sizes = plain.sizes;
          const auto dim = static_cast<std::size_t>(below(rank));
          if (below(2) == 0 && rank > 1 && dim > 0) {
            sizes[dim - 1] *= sizes[dim];
            sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
          } else if (rank < 6) {
            const std::int64_t factor = sizes[dim] % 2 == 0 ? 2 : sizes[dim] % 3 == 0 ? 3 : 1;
            sizes[dim] /= factor;
            sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), factor);
          }
          next = reshaped(view, sizes);
          expected = {sizes, plain.elements};
          ++reshapes;
          break;
        }
        case 1: {
          ViewSizes order(plain.sizes.size());
          std::iota(order.begin(), order.end(), 0);
          std::shuffle(order.begin(), order.end(), random);
          ViewSizes sizes;
          for (const std::int64_t dim : order)
            sizes.push_back(plain.sizes[static_cast<std::size_t>(dim)]);
          next = permuted(view, order);
          expected = gathered(plain, sizes, [&](const ViewSizes& at) {
            ViewSizes source(at.size());
            for (std::size_t i = 0; i < at.size(); ++i)
              source[static_cast<std::size_t>(order[i])] = at[i];
            return source;
          });
          break;
        }
        case 2: {
          const std::int64_t dim = below(rank);
          const std::int64_t size = plain.sizes[static_cast<std::size_t>(dim)];
          const std::int64_t begin = below(size), step_size = 1 + below(2);
          const std::int64_t end = begin + 1 + below(size - begin);
          ViewSizes sizes = plain.sizes;
          sizes[static_cast<std::size_t>(dim)] = (end - begin - 1) / step_size + 1;
          next = sliced(view, dim, begin, end, step_size);
          expected = gathered(plain, sizes, [&](ViewSizes at) {
            at[static_cast<std::size_t>(dim)] =
                begin + at[static_cast<std::size_t>(dim)] * step_size;
            return at;
          });
          break;
        }
        default: {
          ViewSizes sizes = plain.sizes;
          for (std::int64_t& size : sizes)
            if (size == 1) size = 1 + below(3);
          next = expanded(view, sizes);
          const ViewSizes before = plain.sizes;
          expected = gathered(plain, sizes, [&](ViewSizes at) {
            for (std::size_t i = 0; i < at.size(); ++i)
              if (before[i] == 1) at[i] = 0;
            return at;
          });
          break;
        }
      }
      if (!next || product(expected.sizes) > 2000) break;  // no view says it; callers refuse then
      view = *next;
      plain = std::move(expected);
      ASSERT_EQ(sizes_of(view), plain.sizes) << round;
      ASSERT_EQ(elements_of(view, 12), plain.elements) << round;
      // What is called a range of columns is one, in order or in any order.
      const auto range = in_order(view, rows);
      if (range) {
        ++ranges;
        ViewSizes columns;
        for (std::int64_t row = 0; row < rows; ++row)
          for (std::int64_t c = 0; c < range->count; ++c)
            columns.push_back(row * 12 + range->first + c);
        ASSERT_EQ(plain.elements, columns) << round;
        ASSERT_EQ(in_any_order(view, rows), range);
      }
      if (const auto any = in_any_order(view, rows)) {
        ViewSizes sorted = plain.elements;
        std::sort(sorted.begin(), sorted.end());
        ViewSizes columns;
        for (std::int64_t row = 0; row < rows; ++row)
          for (std::int64_t c = 0; c < any->count; ++c)
            columns.push_back(row * 12 + any->first + c);
        ASSERT_EQ(sorted, columns) << round;
      }
    }
  }
  EXPECT_GT(reshapes, 1000);
  EXPECT_GT(ranges, 1000);
}

}  // namespace
}  // namespace fuseline
