// Tables of measured GEMMs (calibrate --gemm-table).
#include "sim/judge/gemm_table.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered gemm_table_csv({.name = "gemm_table_csv",
                                 .dictionary = "csv",
                                 .seeds = {},
                                 .read = [](const std::string& bytes) {
                                   static_cast<void>(load_gemm_table(file_with(bytes, "fuzz.csv")));
                                 }});

}  // namespace
}  // namespace fuseline::fuzz
