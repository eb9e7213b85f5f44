// What a compiler made of a student's source: an ELF object.
#include "lab/object_file.h"
#include "tests/fuzz/target.h"

namespace fuseline::fuzz {
namespace {

const Registered object_file({.name = "object_file",
                              .dictionary = "bytes",
                              .seeds = {},
                              .read = [](const std::string& bytes) {
                                static_cast<void>(lab::read_object(bytes));
                              }});

}  // namespace
}  // namespace fuseline::fuzz
