#include "report/html/html_page.hpp"

#include "base/diagnostic.hpp"
#include "report/html/html_runs.hpp"
#include "scenario/document/search_path.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlaceOfData = "@DATA@";

Json cell_json(const HtmlTable::Cell& cell) {
  Json object{{"text", cell.text}};
  if (cell.mark == HtmlTable::Mark::best) object["mark"] = "best";
  if (cell.mark == HtmlTable::Mark::bad) object["mark"] = "bad";
  if (cell.bar) object["bar"] = *cell.bar;
  if (!cell.hint.empty()) object["hint"] = cell.hint;
  return object;
}

Json members(const HtmlText& text) {
  return {{"kind", "text"}, {"paragraphs", text.paragraphs}, {"preformatted", text.preformatted}};
}

Json members(const HtmlTable& table) {
  Json columns = Json::array(), rows = Json::array();
  for (const auto& [header, right] : table.columns)
    columns.push_back({{"header", header}, {"right", right}});
  for (const auto& row : table.rows) {
    Json& cells = rows.emplace_back(Json::array());
    for (const HtmlTable::Cell& cell : row) cells.push_back(cell_json(cell));
  }
  return {{"kind", "table"}, {"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

Json axis_json(const HtmlAxis& axis) {
  return {{"label", axis.label}, {"unit", axis.unit}, {"log", axis.log}};
}

Json members(const HtmlScatter& scatter) {
  Json points = Json::array();
  for (const HtmlScatter::Point& point : scatter.points) {
    Json& it = points.emplace_back(Json{{"x", point.x},
                                        {"y", point.y},
                                        {"label", point.label},
                                        {"series", point.series},
                                        {"best", point.best}});
    if (point.bound) it["bound"] = *point.bound;
  }
  return {{"kind", "scatter"},        {"x", axis_json(scatter.x)}, {"y", axis_json(scatter.y)},
          {"joined", scatter.joined}, {"curves", scatter.curves},  {"points", std::move(points)}};
}

Json members(const HtmlBars& bars) {
  Json items = Json::array();
  for (const HtmlBars::Item& item : bars.items)
    items.push_back(
        {{"label", item.label}, {"group", item.group}, {"value", item.value}, {"text", item.text}});
  return {{"kind", "bars"}, {"baseline", bars.baseline}, {"items", std::move(items)}};
}

Json members(const HtmlHeatmap& map) {
  const auto side = [](const HtmlHeatmap::Side& it) {
    return Json{{"label", it.label}, {"values", it.values}};
  };
  Json cells = Json::array();
  for (const auto& row : map.cells) {
    Json& values = cells.emplace_back(Json::array());
    for (const std::optional<double>& value : row) values.push_back(value ? Json(*value) : Json());
  }
  Json object{
      {"kind", "heatmap"}, {"what", map.what}, {"unit", map.unit}, {"low_is_good", map.low_is_good},
      {"log", map.log},    {"x", side(map.x)}, {"y", side(map.y)}, {"cells", std::move(cells)}};
  if (map.unranked) object["unranked"] = true;
  if (map.range) object["range"] = {map.range->least, map.range->most};
  if (!map.texts.empty()) object["texts"] = map.texts;
  if (!map.remarks.empty()) object["remarks"] = map.remarks;
  return object;
}

Json members(const HtmlMesh& mesh) {
  Json axes = Json::array(), machines = Json::array();
  for (const HtmlMesh::Axis& axis : mesh.axes)
    axes.push_back({{"name", axis.name},
                    {"size", axis.size},
                    {"inside", axis.inside},
                    {"across", axis.across},
                    {"carries", axis.carries}});
  for (const HtmlMesh::Machine& machine : mesh.machines) {
    Json gpus = Json::array();
    for (const HtmlMesh::Gpu& gpu : machine.gpus) {
      Json& it = gpus.emplace_back(Json{
          {"name", gpu.name}, {"label", gpu.label}, {"words", gpu.words}, {"colour", gpu.colour}});
      if (gpu.use) it["use"] = *gpu.use;
    }
    machines.push_back(
        {{"title", machine.title}, {"count", machine.count}, {"gpus", std::move(gpus)}});
  }
  return {{"kind", "mesh"},
          {"coloured", mesh.coloured},
          {"axes", std::move(axes)},
          {"machines", std::move(machines)}};
}

std::string text_of(const Json& json) {
  // Names of files may hold any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// `json`, an object, with the members of the text of another one.
std::string joined(const std::string& json, const std::string& more) {
  return json.substr(0, json.size() - 1) + "," + more.substr(1);
}

std::string section_json(const HtmlSection& section) {
  return std::visit(
      [](const auto& it) {
        const std::string head = text_of(Json{{"heading", it.heading}, {"note", it.note}});
        if constexpr (std::is_same_v<std::decay_t<decltype(it)>, HtmlRuns>)
          return joined(joined(head, R"({"kind":"runs"})"), html_runs_json(it));
        else
          return joined(head, text_of(members(it)));
      },
      section);
}

std::string page_json(const HtmlPage& page) {
  std::string sections;
  for (const HtmlSection& section : page.sections)
    sections += (sections.empty() ? "" : ",") + section_json(section);
  return joined(text_of(Json{{"form", kHtmlForm},
                             {"title", page.title},
                             {"subtitle", page.subtitle},
                             {"program", page.program}}),
                "{\"sections\":[" + sections + "]}");
}

/// JSON that ends no element of HTML: a `<` can only be part of a text, where it may be written so.
std::string without_tags(const std::string& json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

bool is_template(const std::string& text) {
  return text.find(fmt::format(R"(name="plimsoll-report" content="{}")", kHtmlForm)) !=
         std::string::npos;
}

}  // namespace

std::string read_html_template() {
  bool is_old = false;
  for (const std::filesystem::path& folder : share_folders()) {
    std::ifstream file(folder / "report.html", std::ios::binary);
    if (!file) continue;
    std::ostringstream text;
    text << file.rdbuf();
    if (is_template(text.str())) return std::move(text).str();
    is_old = true;
  }
  refuse(Location{"--html", 0, 0},
         is_old
             ? "the page of the reports, report.html, is of another version of the program"
             : "the page of the reports, report.html, is not built; it needs npm, which the rest "
               "of the program does not",
         "build it with `./tools/setup report && cmake --preset release && cmake --build "
         "build/release --target report`, or put one into a folder of PLIMSOLL_PATH");
}

std::string html_of(const HtmlPage& page, const std::string& html_template) {
  const std::size_t place = html_template.find(kPlaceOfData);
  if (place == std::string::npos)
    throw std::invalid_argument("the page of the reports has no place for data");
  return html_template.substr(0, place) + without_tags(page_json(page)) +
         html_template.substr(place + kPlaceOfData.size());
}

}  // namespace plimsoll
