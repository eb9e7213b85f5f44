#include <iostream>

#include "gui/widgets/app.h"

int main(int argc, char** argv) { return fuseline::gui::run_app(argc, argv, std::cout, std::cerr); }
