#include "sim/report/html_page.h"

#include <fmt/format.h>

#include "sim/draw/svg.h"

namespace fuseline {

namespace {

constexpr const char* kStyle = R"(
:root{--ground:#fff;--ink:#1b1f24;--soft:#5a6470;--rule:#d5dae0;--panel:#f5f7f9;--warn:#8a4b00}
@media(prefers-color-scheme:dark){:root{--ground:#15181c;--ink:#e6e9ec;--soft:#a3adb8;
--rule:#3a424b;--panel:#1e2329;--warn:#ffbf69}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:1.5rem;background:var(--ground);color:var(--ink);
font:15px/1.5 system-ui,"DejaVu Sans",sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}
h2{font-size:1.2rem;margin:2.25rem 0 .5rem;border-bottom:1px solid var(--rule);padding-bottom:.2rem}
h3{font-size:1.02rem;margin:1.5rem 0 .4rem}
p{margin:.5rem 0;max-width:46rem}
.soft{color:var(--soft)}
.standing{border-left:4px solid var(--warn);padding:.35rem .8rem;background:var(--panel)}
figure{margin:1rem 0;overflow-x:auto}
figure svg{display:block;min-width:42rem}
figcaption{color:var(--soft);font-size:.88rem;margin-top:.3rem;max-width:46rem}
.wide{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding-bottom:.3rem}
th,td{padding:.22rem .7rem .22rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--rule)}
th{font-weight:600;white-space:nowrap}
.n{text-align:right;white-space:nowrap}
tbody th{font-weight:500}
pre{background:var(--panel);padding:.7rem .9rem;overflow-x:auto;font-size:.88rem;line-height:1.45}
code,pre{font-family:ui-monospace,"DejaVu Sans Mono",monospace}
nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem}
a{color:inherit}
a:focus-visible,summary:focus-visible,.wide:focus-visible{outline:2px solid currentColor;
outline-offset:2px}
summary{cursor:pointer;margin:.6rem 0}
@media print{body{max-width:none;padding:0}details{display:block}}
)";

}  // namespace

std::string html_table(const std::string& caption, const std::vector<HtmlColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows) {
  // A region that scrolls must be reachable with the keyboard, and have a name.
  std::string out = fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n<table>\n"
      "<caption>{0}</caption>\n<thead><tr>",
      escaped(caption));
  for (const HtmlColumn& c : columns)
    out += fmt::format("<th scope=\"col\"{}>{}</th>", c.number ? " class=\"n\"" : "",
                       escaped(c.header));
  out += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* style = columns[i].number ? " class=\"n\"" : "";
      out += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", style, escaped(row[i]))
                    : fmt::format("<td{}>{}</td>", style, escaped(row[i]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</div>\n";
}

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>{}</style>\n"
      "</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), kStyle, body);
}

}  // namespace fuseline
