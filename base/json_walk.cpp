#include "base/json_walk.h"

#include <nlohmann/json.hpp>

#include "base/json_problem.h"

namespace fuseline {
namespace {

// Turns the parser's events into visits. path_ has a name for every open object and array.
class Walk : public nlohmann::json_sax<nlohmann::json> {
 public:
  Walk(const std::string& text, const std::string& file, JsonVisitor& visitor)
      : text_(text), file_(file), visitor_(visitor) {}

  bool null() override { return visitor_.other(path_), true; }
  bool boolean(bool /*value*/) override { return visitor_.other(path_), true; }
  bool number_integer(number_integer_t v) override { return number(static_cast<double>(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number(static_cast<double>(v)); }
  bool number_float(number_float_t v, const string_t& /*text*/) override { return number(v); }
  bool string(string_t& v) override { return visitor_.text(path_, v), true; }
  bool binary(binary_t& /*value*/) override { return true; }  // of other formats than JSON
  bool start_object(std::size_t /*elements*/) override { return open(true); }
  bool end_object() override { return close(true); }
  bool start_array(std::size_t /*elements*/) override { return open(false); }
  bool end_array() override { return close(false); }
  bool key(string_t& name) override {
    path_.back() = name;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    if (dynamic_cast<const nlohmann::json::parse_error*>(&error) == nullptr)
      throw_json_number(file_);
    throw_json_syntax(error.what(), byte, text_, file_);
  }

 private:
  bool number(double value) { return visitor_.number(path_, value), true; }
  bool open(bool object) {
    visitor_.begin(path_, object);
    path_.emplace_back();
    return true;
  }
  bool close(bool object) {
    path_.pop_back();
    visitor_.end(path_, object);
    return true;
  }

  const std::string& text_;
  const std::string& file_;
  JsonVisitor& visitor_;
  JsonVisitor::Path path_;
};

}  // namespace

void walk_json(const std::string& text, const std::string& file, JsonVisitor& visitor) {
  check_json_depth(text, file);
  Walk walk(text, file, visitor);
  nlohmann::json::sax_parse(text, &walk);
}

}  // namespace fuseline
