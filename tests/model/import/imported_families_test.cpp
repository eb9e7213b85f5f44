// What is imported has the plans of the block that we ship, under every policy.
#include "tests/model/import/imported_families.h"

namespace fuseline {
namespace {

class ImportedFamilies : public testing::TestWithParam<test::Family> {};

TEST_P(ImportedFamilies, HaveThePlansOfTheShippedBlockUnderEveryPolicy) {
  test::expect_plans_of_the_shipped_block(GetParam(), policies());
}

INSTANTIATE_TEST_SUITE_P(All, ImportedFamilies, testing::ValuesIn(test::imported_families()),
                         test::family_name);

}  // namespace
}  // namespace fuseline
