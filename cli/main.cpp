#include <iostream>
#include <string>
#include <vector>

#include "cli/app.h"

int main(int argc, char** argv) {
  return fuseline::run_cli(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                           std::cout, std::cerr);
}
