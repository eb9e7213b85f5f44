// Reads a case (matrices and sizes), runs the function of a lab on it, counts every load and store,
// and writes results and counts. `harness CASE RESULT`; exit status 0, 84 (bad case file), 85 (an
// access outside a matrix, a number written twice or never is found by the reader), 86 (memory).
#include "harness.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <sstream>
#include <vector>

namespace {

struct Matrix {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  bool written = false;
  std::vector<float> values;
  std::int64_t loads = 0, stores = 0;
};

std::vector<Matrix> matrices;
std::map<std::string, double> numbers;
std::string token;  // of the reader of the result: who does not know it cannot write one

bool on_chip = false;
std::size_t held = 0;
std::size_t most_held = 0;

[[noreturn]] void stop(int status, const std::string& why) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(status);
}

// To nearest, ties to even; NaN stays NaN.
float to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return value;
  bits += 0x7fffU + ((bits >> 16U) & 1U);
  bits &= 0xffff0000U;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

Matrix& matrix(int index) { return matrices.at(static_cast<std::size_t>(index)); }

std::size_t place(const Matrix& m, std::int64_t row, std::int64_t col, const char* what) {
  if (row < 0 || row >= m.rows || col < 0 || col >= m.cols) {
    std::ostringstream why;
    why << what << " outside the matrix: row " << row << ", column " << col << " of " << m.name
        << " [" << m.rows << ", " << m.cols << "]";
    stop(85, why.str());
  }
  return static_cast<std::size_t>(row * m.cols + col);
}

int index_of(const std::string& name) {
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (matrices[i].name == name) return static_cast<int>(i);
  }
  stop(84, "no matrix " + name);
}

void read_case(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::string word;
  while (in >> word && word != "end") {
    std::string name;
    in >> name;
    if (word == "token") {
      token = name;
      continue;
    }
    if (word == "number") {
      in >> numbers[name];
      continue;
    }
    Matrix m;
    m.name = name;
    m.written = word == "target";
    in >> m.rows >> m.cols;
    m.values.resize(static_cast<std::size_t>(m.rows * m.cols));
    matrices.push_back(m);
  }
  in.get();  // the end of the line
  for (Matrix& m : matrices) {
    if (m.written) continue;
    in.read(reinterpret_cast<char*>(m.values.data()),
            static_cast<std::streamsize>(m.values.size() * sizeof(float)));
  }
  if (!in) stop(84, "the case is cut short");
}

void write_result(const char* path) {
  std::ofstream out(path, std::ios::binary);
  out << "token " << token << "\non_chip " << most_held << "\n";
  for (const Matrix& m : matrices) {
    out << "matrix " << m.name << " " << m.loads << " " << m.stores << "\n";
  }
  out << "end\n";
  for (const Matrix& m : matrices) {
    if (!m.written) continue;
    out.write(reinterpret_cast<const char*>(m.values.data()),
              static_cast<std::streamsize>(m.values.size() * sizeof(float)));
  }
  out.flush();
  if (!out) stop(84, "the result cannot be written");
}

// In front of every block: its size, and whether it counts.
struct Header {
  std::size_t size;
  std::size_t counted;
};
constexpr std::size_t header_space = 64;  // keeps the block aligned
static_assert(sizeof(Header) <= header_space);

void* allocate(std::size_t size) {
  void* block = size > SIZE_MAX - header_space ? nullptr : std::malloc(size + header_space);
  if (block == nullptr) throw std::bad_alloc();
  const Header header{size, on_chip ? 1U : 0U};
  std::memcpy(block, &header, sizeof header);
  if (on_chip) {
    held += size;
    if (held > most_held) most_held = held;
  }
  return static_cast<char*>(block) + header_space;
}

void release(void* pointer) {
  if (pointer == nullptr) return;
  void* block = static_cast<char*>(pointer) - header_space;
  Header header;
  std::memcpy(&header, block, sizeof header);
  if (header.counted != 0) held -= header.size;
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* pointer) noexcept { release(pointer); }
void operator delete[](void* pointer) noexcept { release(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { release(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { release(pointer); }

namespace fuseline_lab {

float Source::load(std::int64_t row, std::int64_t col) const {
  Matrix& m = matrix(index_);
  const std::size_t at = place(m, row, col, "load");
  ++m.loads;
  return m.values[at];
}
std::int64_t Source::rows() const { return matrix(index_).rows; }
std::int64_t Source::cols() const { return matrix(index_).cols; }

void Target::store(std::int64_t row, std::int64_t col, float value) const {
  Matrix& m = matrix(index_);
  const std::size_t at = place(m, row, col, "store");
  ++m.stores;
  m.values[at] = to_bf16(value);
}
std::int64_t Target::rows() const { return matrix(index_).rows; }
std::int64_t Target::cols() const { return matrix(index_).cols; }

std::int64_t size(const std::string& name) { return static_cast<std::int64_t>(numbers.at(name)); }
double constant(const std::string& name) { return numbers.at(name); }
Source source(const std::string& name) { return Source(index_of(name)); }
Target target(const std::string& name) { return Target(index_of(name)); }
const float* values(const std::string& name) { return matrix(index_of(name)).values.data(); }

OnChip::OnChip() { on_chip = true; }
OnChip::~OnChip() { on_chip = false; }

}  // namespace fuseline_lab

int main(int count, char** arguments) {
  if (count != 3) stop(84, "usage: harness CASE RESULT");
  try {
    read_case(arguments[1]);
    std::remove(arguments[1]);  // inputs are loaded and counted, not read from the file
    fuseline_lab::run_case();
    write_result(arguments[2]);
  } catch (const std::bad_alloc&) {
    stop(86, "out of memory");
  } catch (const std::exception& error) {
    stop(87, std::string("an exception left the function: ") + error.what());
  }
  return 0;
}
