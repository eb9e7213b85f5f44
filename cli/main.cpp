#include <cstdio>
#include <iostream>
#include <new>
#include <string>
#include <vector>

#include "cli/app.h"

int main(int argc, char** argv) {
  try {
    return fuseline::run_cli(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                             std::cout, std::cerr);
  } catch (const std::bad_alloc&) {  // before run_cli: it throws nothing
    std::fputs("fuseline: not available: out of memory\n", stderr);
    return static_cast<int>(fuseline::ExitStatus::something_missing);
  }
}
