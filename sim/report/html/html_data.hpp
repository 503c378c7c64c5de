/// The data of an HTML report: a page is a title and a list of sections, whatever command writes
/// it. Runs, sweeps and capacity plans share the sections, the page that draws them
/// (tools/report) and this form.
///
/// In the page the data are one JSON object, `{"form": 1, "title", "subtitle", "program",
/// "sections": [...]}`; a section is an object with its `kind` ("text", "table", "runs", "scatter",
/// "bars", "heatmap", "mesh"), `heading`, `note`, and the members below by name. What is absent (an
/// `optional`) is left out, in `cells` of a heat map null. The page reads the form whose number it
/// carries, and nothing else; a change of a meaning takes the next number (kHtmlForm and
/// tools/report/src/form.js).
///
/// Units of axes and cells are "bytes", "seconds", "joules", "watts" or "share" (of 1), and values
/// are in that unit; any other word, such as "samples/s", is printed after the number.
///
/// Text is text: whatever it holds, it is shown as it is and never becomes markup.
#pragma once

#include "scenario/run/run.hpp"

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace plimsoll {

inline constexpr int kHtmlForm = 1;

struct HtmlText {
  std::string heading, note;
  std::vector<std::string> paragraphs;
  bool preformatted = false;
};

struct HtmlTable {
  enum class Mark : std::uint8_t { none, best, bad };
  struct Column {
    std::string header;
    bool right = false;
  };
  struct Cell {
    std::string text;
    Mark mark = Mark::none;
    std::optional<double> bar;  ///< a bar of this share before the text
    std::string hint;           ///< a smaller line below it
  };
  std::string heading, note;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< one cell a column
};

/// The runs of a scenario over time: words, timelines, memories, power. Refers to both.
struct HtmlRuns {
  std::string heading, note;
  const Scenario* scenario = nullptr;
  std::span<const RunResult> results;
};

struct HtmlAxis {
  std::string label, unit;
  bool log = false;
};

/// Points in two quantities; those that are `best` are joined by a line, a Pareto front, or filled
/// among hollow ones. Or curves: the points of each series are joined, and by a dashed line their
/// bounds.
struct HtmlScatter {
  struct Point {
    double x = 0, y = 0;
    std::string label;
    std::string series;  ///< points of one series share colour and shape
    bool best = false;
    std::optional<double> bound = {};  ///< which `y` cannot pass
  };
  std::string heading, note;
  HtmlAxis x, y;
  bool joined = true;
  bool curves = false;
  std::vector<Point> points;
};

/// What changes would move, as bars to both sides of nothing.
struct HtmlBars {
  struct Item {
    std::string label;
    std::string group;  ///< items of one group stand together below its name
    double value = 0;   ///< the length of the bar, in whatever unit all items share
    std::string text;   ///< the value in words: "+31 % throughput"
  };
  std::string heading, note;
  std::string baseline;  ///< what the changes are measured against
  std::vector<Item> items;
};

/// A quantity over two paths of a sweep.
struct HtmlHeatmap {
  struct Side {
    std::string label;                ///< the path
    std::vector<std::string> values;  ///< as they are to be shown
  };
  std::string heading, note;
  std::string what, unit;  ///< what the cells hold
  bool low_is_good = false;
  bool unranked = false;  ///< no cell is better than another
  bool log = false;       ///< shades by the logarithm
  /// What the shades stand for where maps are to be compared; else from the least to the most.
  struct Range {
    double least = 0, most = 0;
  };
  std::optional<Range> range;
  Side x, y;
  std::vector<std::vector<std::optional<double>>> cells;  ///< [y][x]
  std::vector<std::vector<std::string>> texts;    ///< shown instead of the number, if not empty
  std::vector<std::vector<std::string>> remarks;  ///< on cells, which are marked; may be empty
};

/// Ranks on machines (html_mesh.hpp).
struct HtmlMesh {
  struct Axis {
    std::string name;
    std::int64_t size = 1;
    std::string inside,
        across;           ///< the links within and across machines that join neighbours on it
    std::string carries;  ///< what they exchange
  };
  struct Gpu {
    std::string name, label;    ///< "gpu3"; its coordinates in short: "t3 d0"
    std::string words;          ///< all that is known of it and its likes
    std::size_t colour = 0;     ///< by its coordinate on `coloured`
    std::optional<double> use;  ///< of its memory, at the peak
  };
  struct Machine {
    std::string title;
    std::int64_t count = 1;  ///< of those that are like it, itself among them
    std::vector<Gpu> gpus;
  };
  std::string heading, note;
  std::string coloured;  ///< the axis; empty where none varies
  std::vector<Axis> axes;
  std::vector<Machine> machines;
};

using HtmlSection =
    std::variant<HtmlText, HtmlTable, HtmlRuns, HtmlScatter, HtmlBars, HtmlHeatmap, HtmlMesh>;

struct HtmlPage {
  std::string title, subtitle;
  std::string program;  ///< what wrote it: "plimsoll 0.1.0"
  std::vector<HtmlSection> sections;
};

}  // namespace plimsoll
